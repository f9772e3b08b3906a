package load

import (
	"math/rand/v2"
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
	var ss []stretch
	if e.p.ramping() {
		ss = e.p.stretches()
		e.cap = int(peak(ss))
	}
	var users sync.WaitGroup
	for i := range e.cap {
		users.Go(func() { e.closedUser(i, e.shifts(ss, i)) })
	}
	users.Wait()
	if e.p.Iterations > 0 && e.stopped.Load() == 0 {
		e.dropped = max(0, e.p.Iterations-e.tickets.Load())
	}
}

// shifts are when the i-th user is at work: in the stages where it is asked for, or
// from its place in the ramp-up on.
func (e *engine) shifts(ss []stretch, i int) []shift {
	if ss != nil {
		return shiftsOf(ss, i)
	}
	return []shift{{e.p.RampUp * time.Duration(i) / time.Duration(e.p.VUs), forever}}
}

// closedUser is a user's life: a connection in each of its shifts.
func (e *engine) closedUser(i int, shifts []shift) {
	u := e.newUser(i)
	think := e.thinking(i)
	next := int64(i)
	for _, s := range shifts {
		e.sleepUntil(min(s.on, e.until))
		next = e.work(u, next, s.off, think)
		u.hangUp()
	}
}

// work sends a user's requests one after the other, from the i-th of the run: each
// is due when the one before is done and the user has thought about it. What is in
// flight at the end of a shift is awaited like what is in flight at the end of the
// run. Users take turns in the numbers of requests, without asking each other.
func (e *engine) work(u *user, i int64, off time.Duration, think func() time.Duration) (next int64) {
	for due := e.now(); !e.over(due) && due < off && e.ticket(due); i += int64(e.cap) {
		done := u.send(i, due)
		pause := think()
		if u.dialError {
			pause = max(pause, redialPause)
		}
		due = done
		if pause > 0 {
			// A user that wakes late has thought for longer: its request is
			// due now, not when the timer should have gone off.
			e.sleepUntil(min(done+pause, off, e.until))
			due = e.now()
		}
	}
	return i
}

// thinking gives the i-th user's next think time.
func (e *engine) thinking(i int) func() time.Duration {
	mean := e.p.ThinkTime
	if e.p.ThinkDistribution != Exponential {
		return func() time.Duration { return mean }
	}
	r := rand.New(rand.NewPCG(e.p.Seed, uint64(i)))
	return func() time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// ticket reports whether a request may be sent that is due at due, and takes one
// of the shared iterations for it. Warm-up takes none.
func (e *engine) ticket(due time.Duration) bool {
	if e.p.Iterations == 0 || !e.measured(due) {
		return true
	}
	n := e.tickets.Add(1)
	if n == e.p.Iterations {
		e.spentAt.Store(int64(due))
		close(e.spent)
	}
	if n > e.p.Iterations {
		e.tickets.Add(-1)
		return false
	}
	return true
}
