//go:build !unix

package process

import "time"

func cpuTime() (user, system time.Duration, ok bool) { return 0, 0, false }
