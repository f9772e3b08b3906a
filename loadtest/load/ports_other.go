//go:build !linux

package load

// canSpread is false: binding to a source address would take a port from all
// targets here, and other systems give 127.0.0.1 alone to the loopback device.
const canSpread = false

func preparePorts(int, int) error { return nil }
