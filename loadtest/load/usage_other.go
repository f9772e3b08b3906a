//go:build !unix

package load

import "time"

// cpuTime is not known here: the summary then has no CPU per request.
func cpuTime() (time.Duration, bool) { return 0, false }

// descriptorRoom has no bound to go by here.
func descriptorRoom() int { return maxVUs }
