package load

import "time"

// waker wakes the pacer at a moment of the run, as late as it must and no later.
type waker interface {
	// wait returns at t, or at once after wake.
	wait(t time.Duration)
	// wake ends a wait, and every later one, at once.
	wake()
	close()
}

// sleepWaker waits with Go's own timers.
type sleepWaker struct{ e *engine }

func (w sleepWaker) wait(t time.Duration) { w.e.sleepUntil(t) }
func (w sleepWaker) wake()                {} // sleepUntil watches the run's context
func (w sleepWaker) close()               {}
