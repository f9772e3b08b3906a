//go:build unix

package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has used, user and system.
func cpuTime() (time.Duration, bool) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}

// spareDescriptors are left for whatever else the process opens meanwhile.
const spareDescriptors = 32

// descriptorRoom is how many more connections this process may open.
func descriptorRoom() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > maxVUs {
		return maxVUs
	}
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return max(1, int(limit.Cur)-spareDescriptors)
	}
	return max(1, int(limit.Cur)-len(open)-spareDescriptors)
}
