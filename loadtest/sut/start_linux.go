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

// pinned runs start on the calling thread while that may use cpus only: a child
// inherits this before its first instruction. The goroutine must be locked to its
// thread.
func pinned(cpus []int, start func() error) error {
	if len(cpus) == 0 {
		return start()
	}
	var before, set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the thread's processors: %w", err)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to processors %v: %w", cpus, err)
	}
	err := start()
	if back := unix.SchedSetaffinity(0, &before); err == nil && back != nil {
		// The child is there and right; the next one sets its own.
		return nil
	}
	return err
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
