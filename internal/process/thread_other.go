//go:build !linux

package process

import "time"

// ThreadCPU is the CPU time that the calling thread has used; ok is false, since this
// system does not tell.
func ThreadCPU() (used time.Duration, ok bool) { return 0, false }
