package load

import (
	"os"

	"golang.org/x/sys/unix"
)

// canSpread says that source addresses can be chosen without losing ports by it.
const canSpread = true

// firstTestPort begins the range that a test bounds.
const firstTestPort = 40_000

// preparePorts lets a socket that is bound to an address share its local ports with
// connections to elsewhere, as one that is not bound does: without
// IP_BIND_ADDRESS_NO_PORT the port is chosen before the target is known. most, if
// not 0, is how many ports there are (IP_LOCAL_PORT_RANGE, Linux 6.3).
func preparePorts(fd, most int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if most == 0 {
		return nil
	}
	bounds := firstTestPort | (firstTestPort+most-1)<<16
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, bounds))
}
