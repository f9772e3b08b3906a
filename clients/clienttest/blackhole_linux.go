package clienttest

import (
	"net"
	"strconv"
	"syscall"
)

// blackhole returns an address on which connections neither come about nor are
// refused: a listener whose queue is full, for which Linux drops what asks.
func (c *check) blackhole() string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		c.fatalf("socket: %v", err)
	}
	c.onEnd(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		c.fatalf("bind: %v", err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		c.fatalf("listen: %v", err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		c.fatalf("getsockname: %v", err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(sa.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := net.DialTimeout("tcp", addr, 2*limit)
		if err != nil {
			return addr
		}
		c.onEnd(func() { _ = conn.Close() })
	}
	c.skip("the queue of a listener does not fill here")
	return ""
}
