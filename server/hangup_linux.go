package server

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hangUpsAreSeen says whether peerGone can tell.
const hangUpsAreSeen = true

// peerGone reports whether the peer has closed its side, without reading: bytes
// that wait, of a body or of the next request, stay where they are.
func (c *conn) peerGone() bool {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true // closed on our side
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds[:], 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
