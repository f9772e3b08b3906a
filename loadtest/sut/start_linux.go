package sut

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a child into a group of its own and lets it die with the
// thread that starts it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pinThread lets the calling thread use cpus only; a child that it starts inherits
// this before its first instruction. The goroutine must be locked to its thread
// for good: the runtime clones no other thread from such a one.
func pinThread(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to processors %v: %w", cpus, err)
	}
	return nil
}

// CPUs are the processors that this process may use, in order; none where the
// system cannot tell, and then nothing can be pinned.
func CPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
