package load

import (
	"context"
	"math"
	"sync"
	"time"
)

// openLoad runs a schedule of arrivals.
func (e *engine) openLoad(w waker) {
	e.cap = e.p.VUs
	if e.cap == 0 {
		e.cap = defaultCap(e.p.highestRate(), e.p.Timeout)
	}
	l := &line{e: e, schedule: e.schedule, losses: e.newLosses()}
	stop := context.AfterFunc(e.ctx, w.wake)
	defer stop()
	defer l.users.Wait()

	total := e.schedule.before(e.until)
	for i := range total {
		due := l.due(i)
		now := e.now()
		if now < due {
			w.wait(due)
			now = e.now()
		}
		if e.ctx.Err() != nil {
			e.interrupt()
			break
		}
		l.arrive(now)
	}
	// What is still in line may start until the window ends.
	if e.stopped.Load() == 0 && e.now() < e.until {
		w.wait(e.until)
	}
	if e.ctx.Err() != nil {
		e.interrupt()
		// What was due by now and did not even get into the line.
		total = min(total, e.schedule.before(time.Duration(e.stopped.Load())))
	}
	l.close(total)
}

// defaultCap is as many users as a rate can keep waiting: after a timeout the
// first of them is free again. More than the machine has descriptors for would
// only turn a slow target into errors of our own.
func defaultCap(rate float64, timeout time.Duration) int {
	want := math.Ceil(rate*timeout.Seconds()) + 1
	return int(max(1, min(want, float64(descriptorRoom()), maxVUs)))
}

// line is where arrivals meet users. An arrival takes an idle user, or a new one
// up to the cap, or waits in line, first come first served. It leaves the line
// unserved (dropped) when its timeout passes or the window ends.
//
// Since arrivals come in the order of the schedule, the line is two indices into
// it, however long it grows:
//
//	0 … taken … arrived … total
//	    └─ waiting ─┘
//
// There are idle users only while nobody waits.
type line struct {
	schedule
	e     *engine
	users sync.WaitGroup

	mu             sync.Mutex
	taken, arrived int64
	idle           []*openUser // the last to become idle is the first to go: few connections stay busy
	made           int
	closed         bool
	waited         int64

	losses
}

// losses are the dropped arrivals by how long they had been due then: all, those of
// each stage and those of each kind.
type losses struct {
	lost           distribution
	lostIn, lostOf []distribution
}

func (e *engine) newLosses() losses {
	return losses{lostIn: make([]distribution, len(e.stages)), lostOf: make([]distribution, len(e.mix.kinds))}
}

// openUser is a user that is told which arrival it has.
type openUser struct {
	*user
	next chan int64
}

// arrive lets the next arrival in.
func (l *line) arrive(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.arrived
	l.arrived++
	switch {
	case l.e.over(now): // too late to start: close counts it
	case len(l.idle) > 0:
		u := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		l.taken++
		u.next <- i
	case l.made < l.e.cap:
		u := &openUser{l.e.newUser(l.made), make(chan int64, 1)}
		l.made++
		l.taken++
		u.next <- i
		l.users.Go(func() { l.serve(u) })
	}
}

// serve is a user's life.
func (l *line) serve(u *openUser) {
	defer u.hangUp()
	for i := range u.next {
		for ok := true; ok; {
			now := u.send(i, l.due(i))
			i, ok = l.takeOrIdle(u, now)
		}
	}
}

// takeOrIdle gives a free user the first arrival in line, or makes it idle.
func (l *line) takeOrIdle(u *openUser, now time.Duration) (i int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.taken < l.arrived && !l.e.over(now) {
		i, due := l.taken, l.due(l.taken)
		l.taken++
		if due+l.e.p.Timeout <= now {
			l.drop(i, due, l.e.p.Timeout)
			continue
		}
		if l.e.measured(due) {
			l.waited++
		}
		return i, true
	}
	if l.closed {
		close(u.next)
	} else {
		l.idle = append(l.idle, u)
	}
	return 0, false
}

// drop gives up an arrival that has waited for a time.
func (l *line) drop(i int64, due, waited time.Duration) {
	if !l.e.measured(due) {
		return
	}
	l.lost.record(waited)
	if step := l.e.stepAt(due); step >= 0 && len(l.e.stages) > 0 {
		l.lostIn[step].record(waited)
	}
	if len(l.lostOf) > 1 {
		kind, _ := l.e.mix.pick(i)
		l.lostOf[kind].record(waited)
	}
}

// close sends everyone home. Whoever still waits, and every arrival below total
// that has not come in, is dropped.
func (l *line) close(total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	now := l.e.now()
	for ; l.taken < max(total, l.arrived); l.taken++ {
		due := l.due(l.taken)
		l.drop(l.taken, due, min(now-due, l.e.p.Timeout))
	}
	l.arrived = l.taken
	for _, u := range l.idle {
		close(u.next)
	}
	l.idle = nil
	l.e.dropped, l.e.losses, l.e.waited = l.lost.count(), l.losses, l.waited
}
