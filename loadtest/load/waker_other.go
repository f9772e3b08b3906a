//go:build !linux

package load

// newWaker falls back on Go's timers, late by up to a millisecond on an idle
// process. The lag in the summary shows what that costs.
func newWaker(e *engine) (waker, error) { return sleepWaker{e}, nil }
