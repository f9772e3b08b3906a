package server

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// hangUpsAreSeen says whether peerGone can tell.
const hangUpsAreSeen = true

// peerGone reports whether the peer has closed its side, without reading: bytes
// that wait, of a body or of the next request, stay where they are.
func (c *conn) peerGone() bool {
	gone := false
	err := c.control(func(fd int) {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds[:], 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil && err != errNoDescriptor
}

// unacknowledged is how many written bytes the peer's system has not taken yet,
// 0 if unknown.
func (c *conn) unacknowledged() (n int64) {
	_ = c.control(func(fd int) {
		if queued, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ); err == nil {
			n = int64(queued)
		}
	})
	return n
}

// errNoDescriptor says that the system cannot be asked about a connection.
var errNoDescriptor = errors.New("no descriptor")

// control calls f with the connection's descriptor, and fails if it is closed on
// our side.
func (c *conn) control(f func(fd int)) error {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return errNoDescriptor
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// queued takes a connection from ln's queue if there is one. Accept cannot: past
// its deadline it does not look, before it it waits.
func queued(ln net.Listener) net.Conn {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	var f *os.File
	_ = raw.Control(func(fd uintptr) {
		if nfd, _, err := unix.Accept4(int(fd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err == nil {
			f = os.NewFile(uintptr(nfd), "connection")
		}
	})
	if f == nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	nc, err := net.FileConn(f) // of its own descriptor
	if err != nil {
		return nil
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true) // as Accept does
	}
	return nc
}
