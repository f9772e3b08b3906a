package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadCPU is the CPU time that the calling thread has used, to the nanosecond. Who
// takes a difference locks the goroutine to its thread. ok is false where the system
// does not tell.
func ThreadCPU() (used time.Duration, ok bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
