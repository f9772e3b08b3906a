package clients

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clock is an exchange's timeouts, on one timer. What can strike depends on the
// phase:
//
//	uploading ── body read ──▶ waiting ── head accepted ──▶ relaying ──▶ over
//	body_idle                  request                      body_idle
//	                           per_try_timeout              while a read waits
//	                           response_header
//
// A request without a body starts in waiting. A response that comes before the
// upload is through goes straight to relaying, where bytes in either direction
// break the silence. Time that downstream takes between two reads of the response
// is not silence of upstream's.
//
// The timer is not set anew for every byte: it fires at the earliest time at which
// something could be due, looks, and sleeps on.
type clock struct {
	mu        sync.Mutex
	phase     phase
	reading   bool      // a read of the response body is waiting for upstream
	active    time.Time // when a body last moved
	requestBy time.Time // deadlines; zero is none
	tryBy     time.Time
	headBy    time.Time
	due       time.Time // when the timer will fire; zero if it is not set
	alarm     *alarm
	expired   *Error // why the exchange was ended
	lapsed    *Error // why the current attempt was ended
}

type phase uint8

const (
	uploading phase = iota
	waiting
	relaying
	over
)

// drainWait is how long the rest of a response that is not wanted may take. What
// has not arrived by then is dearer than a new connection.
const drainWait = 50 * time.Millisecond

// alarm is a timer that goes from one exchange to the next, through a pool.
type alarm struct {
	timer *time.Timer
	x     *Exchange
	stray bool // it may ring once more than it was set: not for the pool
}

func (a *alarm) ring() { a.x.ring() }

func (x *Exchange) startClock(upload bool) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active = now
	if upload {
		x.phase = uploading
	} else {
		x.startWaiting(now)
	}
	x.set(now)
}

func (x *Exchange) startWaiting(now time.Time) {
	x.phase = waiting
	x.requestBy = after(now, x.c.timeouts.Request)
	x.tryBy = after(now, x.c.perTry)
}

// beginTry starts the attempt that stop ends.
func (x *Exchange) beginTry(stop context.CancelCauseFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stop != nil {
		x.stop(errDone)
	}
	x.stop, x.conn, x.lapsed = stop, nil, nil
	x.headBy, x.tryBy = time.Time{}, time.Time{}
	if x.phase == waiting && x.c.perTry > 0 {
		now := time.Now()
		x.tryBy = after(now, x.c.perTry)
		x.set(now)
	}
}

// boundTry gives the current attempt d from now.
func (x *Exchange) boundTry(d time.Duration) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tryBy = now.Add(d)
	x.set(now)
}

// moved notes that some of the request body was read, the last of it if whole.
func (x *Exchange) moved(whole bool) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active = now
	if whole && x.phase == uploading {
		x.startWaiting(now)
		x.set(now)
	}
}

// requestWritten starts the wait for the response head.
func (x *Exchange) requestWritten() {
	if x.c.timeouts.ResponseHeader == 0 {
		return
	}
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.headBy = now.Add(x.c.timeouts.ResponseHeader)
	x.set(now)
}

// headCame ends what bounds a single attempt, unless that was up just before.
func (x *Exchange) headCame() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lapsed != nil {
		return x.lapsed
	}
	x.tryBy, x.headBy = time.Time{}, time.Time{}
	return nil
}

// relay moves on to the response body, unless the time was up just before.
func (x *Exchange) relay() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.expired != nil {
		return x.expired
	}
	x.phase = relaying
	return nil
}

// startRead and endRead stand around each read of the response body.
func (x *Exchange) startRead() {
	if x.c.timeouts.BodyIdle == 0 {
		return
	}
	now := time.Now()
	x.mu.Lock()
	x.reading, x.active = true, now
	x.set(now)
	x.mu.Unlock()
}

func (x *Exchange) endRead() {
	x.mu.Lock()
	x.reading = false
	x.mu.Unlock()
}

// stopClock returns the timer to the pool if it is certain not to ring any more.
func (x *Exchange) stopClock() {
	x.mu.Lock()
	x.phase = over
	a := x.alarm
	x.alarm = nil
	x.mu.Unlock()
	if a != nil && a.timer.Stop() && !a.stray {
		a.x = nil
		x.c.alarms.Put(a)
	}
}

// next is the earliest time at which something is due, zero if nothing ever is.
func (x *Exchange) next() (at time.Time, what string) {
	t := &x.c.timeouts
	switch x.phase {
	case uploading:
		return after(x.active, t.BodyIdle), "timeouts.body_idle"
	case relaying:
		if x.reading {
			return after(x.active, t.BodyIdle), "timeouts.body_idle"
		}
	case waiting:
		at, what = x.requestBy, "timeouts.request"
		if earlier(x.headBy, at) {
			at, what = x.headBy, "timeouts.response_header"
		}
		if earlier(x.tryBy, at) {
			at, what = x.tryBy, "retry.per_try_timeout"
		}
	}
	return at, what
}

// set makes sure that the timer fires no later than something is due. mu is held.
func (x *Exchange) set(now time.Time) {
	at, _ := x.next()
	if at.IsZero() || !x.due.IsZero() && !at.Before(x.due) {
		return
	}
	expected := !x.due.IsZero()
	x.due = at
	if x.alarm != nil {
		if active := x.alarm.timer.Reset(at.Sub(now)); expected && !active {
			x.alarm.stray = true // it went off and waits for mu
		}
		return
	}
	if a, ok := x.c.alarms.Get().(*alarm); ok {
		a.x = x
		x.alarm = a
		a.timer.Reset(at.Sub(now))
		return
	}
	x.alarm = &alarm{x: x}
	x.alarm.timer = time.AfterFunc(at.Sub(now), x.alarm.ring)
}

// ring is the timer's: it ends the exchange, or the attempt alone, if its time is
// up.
func (x *Exchange) ring() {
	now := time.Now()
	x.mu.Lock()
	if x.phase == over {
		x.mu.Unlock()
		return
	}
	x.due = time.Time{}
	at, what := x.next()
	if at.IsZero() || now.Before(at) {
		x.set(now)
		x.mu.Unlock()
		return
	}
	err := &Error{Kind: TimeoutHeader, Err: fmt.Errorf("no response head within %s", what)}
	if x.phase != waiting {
		err = &Error{Kind: TimeoutBody, Err: fmt.Errorf("no byte within %s", what)}
	}
	stop := x.cancel
	if whole := at.Equal(x.requestBy) || x.phase != waiting; whole || x.stop == nil {
		x.expired = err
	} else {
		x.lapsed, stop = err, x.stop
		x.tryBy, x.headBy = time.Time{}, time.Time{}
		x.set(now)
	}
	x.mu.Unlock()
	stop(err)
}

func after(t time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return t.Add(d)
}

// earlier reports whether a is set and before b, which may be unset.
func earlier(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }
