//go:build unix && !linux

package sut

import "errors"

// Usage fails: this system has no /proc.
func (p *Process) Usage() (Usage, error) {
	return Usage{}, errors.ErrUnsupported
}

func hardware() (cpu string, memory int64) { return "", 0 }
