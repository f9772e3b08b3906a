//go:build unix && !linux

package sut

import (
	"errors"
	"syscall"
)

// childAttributes puts a child into a group of its own. Nothing here ends it with
// us if we are killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func pinThread(cpus []int) error {
	if len(cpus) > 0 {
		return errors.New("this system cannot pin a process to processors")
	}
	return nil
}

// CPUs is empty: this system does not tell, and nothing can be pinned.
func CPUs() []int { return nil }
