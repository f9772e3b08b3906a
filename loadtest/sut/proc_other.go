//go:build unix && !linux

package sut

import (
	"errors"
	"time"
)

// Usage fails: this system has no /proc.
func (p *Process) Usage() (Usage, error) {
	return Usage{}, errors.ErrUnsupported
}

func hardware() (cpu string, memory int64) { return "", 0 }

// ReadHost fails: this system has no /proc.
func ReadHost() (Host, error) { return Host{}, errors.ErrUnsupported }

func ownCPU() (time.Duration, error) { return 0, errors.ErrUnsupported }

func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
