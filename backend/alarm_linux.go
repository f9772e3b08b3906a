package backend

import (
	"container/heap"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gatebench/internal/lead"
)

// An alarm wakes those who wait on time. Go's own timers are late by up to a
// millisecond in an idle process, since the runtime sleeps in epoll_wait, which
// counts in whole ones (golang/go#53824): a simulated latency of 2 ms would be 2.5.
// A timerfd has the kernel's resolution, and the runtime's poller wakes on it as
// on a socket. One descriptor serves all who wait; it is set to the first of them.
//
// On a busy process Go's timers are the more punctual ones (every scheduling
// round looks at them, but not at the poller). So each waits for both.
type alarm struct {
	timer *os.File
	fd    int // of timer; File.Fd would make it blocking

	mu     sync.Mutex
	due    sleepers
	set    time.Time // what the timer is set to; zero if that was past already
	lead   lead.Lead
	closed bool
	done   chan struct{}
}

// A sleeper waits for its time to come.
type sleeper struct {
	at    time.Time
	wake  chan struct{}
	index int // in the heap, -1 outside
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer for the latency: %w", err)
	}
	a := &alarm{timer: os.NewFile(uintptr(fd), "timerfd"), fd: fd, done: make(chan struct{})}
	go a.ring()
	return a, nil
}

// wait returns nil when d is over, never before, and an error when ctx ends or
// the alarm closes first.
func (a *alarm) wait(ctx context.Context, d time.Duration) error {
	s := &sleeper{at: time.Now().Add(d), wake: make(chan struct{})}
	if err := a.add(s); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.wake:
		return nil
	case <-t.C:
		a.remove(s)
		return nil
	case <-ctx.Done():
		a.remove(s)
		return ctx.Err()
	case <-a.done:
		return os.ErrClosed
	}
}

func (a *alarm) add(s *sleeper) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return os.ErrClosed
	}
	heap.Push(&a.due, s)
	if s.index == 0 {
		return a.arm(time.Now())
	}
	return nil
}

// remove leaves the timer as it is: it may ring for nobody, once.
func (a *alarm) remove(s *sleeper) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.index >= 0 {
		heap.Remove(&a.due, s.index)
	}
}

// arm sets the timer to the first sleeper, less the lead.
func (a *alarm) arm(now time.Time) error {
	a.set = a.due[0].at.Add(-a.lead.Ahead())
	in := a.set.Sub(now)
	if in <= 0 {
		in, a.set = time.Nanosecond, time.Time{} // set to zero, it would be switched off
	}
	return unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(in))}, nil)
}

// ring wakes all whose time has come, whenever the timer says so.
func (a *alarm) ring() {
	defer close(a.done)
	var expirations [8]byte
	for {
		if _, err := a.timer.Read(expirations[:]); err != nil {
			return
		}
		a.mu.Lock()
		now := a.rang()
		for len(a.due) > 0 && !a.due[0].at.After(now) {
			close(heap.Pop(&a.due).(*sleeper).wake)
		}
		if len(a.due) > 0 && !a.closed {
			_ = a.arm(now) // cannot fail on a valid descriptor; Go's timer stands behind it
		}
		a.mu.Unlock()
	}
}

// rang takes in that the timer rang, and waits awake for the first sleeper's time if
// the lead was more than was needed.
func (a *alarm) rang() time.Time {
	now := time.Now()
	if a.set.IsZero() {
		return now
	}
	a.lead.Rang(now.Sub(a.set))
	a.set = time.Time{}
	if len(a.due) == 0 {
		return now
	}
	for at := a.due[0].at; now.Before(at) && at.Sub(now) <= lead.Most; now = time.Now() {
		// Some microseconds, in which nobody else need be woken.
	}
	return now
}

// close ends all waits.
func (a *alarm) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	_ = a.timer.Close()
	<-a.done
}

// sleepers is a heap by time.
type sleepers []*sleeper

func (h sleepers) Len() int           { return len(h) }
func (h sleepers) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h sleepers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *sleepers) Push(x any) {
	s := x.(*sleeper)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *sleepers) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.index = -1
	return s
}
