package server

import (
	"errors"
	"net"
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
	return control(sc, f)
}

func control(sc syscall.Conn, f func(fd int)) error {
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// queued reports whether a connection waits in ln's queue. Its peer may have broken
// it off there: it is accepted like any other, and its first Read says so.
func queued(ln net.Listener) bool {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return false
	}
	waits := false
	_ = control(sc, func(fd int) {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds[:], 0)
		waits = fds[0].Revents&unix.POLLIN != 0
	})
	return waits
}
