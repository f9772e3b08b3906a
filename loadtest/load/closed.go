package load

import (
	"sync"
	"time"
)

// redialPause is how long a user waits after it could not connect. Closed load has
// no rate: without the pause a dead target would be asked as often as the machine
// can, which helps neither the target nor whatever else is being measured.
const redialPause = 10 * time.Millisecond

// closedLoad runs the users to their end.
func (e *engine) closedLoad() {
	e.cap = e.p.VUs
	var users sync.WaitGroup
	for i := range e.p.VUs {
		users.Go(func() { e.closedUser(i) })
	}
	users.Wait()
	if e.p.Iterations > 0 && e.stopped.Load() == 0 {
		e.dropped = max(0, e.p.Iterations-e.tickets.Load())
	}
}

// closedUser sends its requests one after the other: each is due when the one
// before is done.
func (e *engine) closedUser(i int) {
	u := e.newUser(i)
	defer u.hangUp()
	e.sleepUntil(e.p.RampUp * time.Duration(i) / time.Duration(e.p.VUs))
	for due := e.now(); !e.over(due) && e.ticket(due); {
		due = u.send(due)
		if u.dialError {
			e.sleepUntil(due + redialPause)
			due = e.now()
		}
	}
}

// ticket reports whether a request may be sent that is due at due, and takes one
// of the shared iterations for it. Warm-up takes none.
func (e *engine) ticket(due time.Duration) bool {
	if e.p.Iterations == 0 || !e.measured(due) {
		return true
	}
	n := e.tickets.Add(1)
	if n == e.p.Iterations {
		close(e.spent)
	}
	if n > e.p.Iterations {
		e.tickets.Add(-1)
		return false
	}
	return true
}
