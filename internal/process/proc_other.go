//go:build !linux

package process

func peakResident() (size int64, ok bool) { return 0, false }

func openDescriptors() (n int, ok bool) { return 0, false }
