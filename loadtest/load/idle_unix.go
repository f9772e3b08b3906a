//go:build unix

package load

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// idleCheckAfter is how long a connection must have been idle to be checked
// before its next request. Servers close idle connections after seconds; a
// check before every request would cost a system call each.
const idleCheckAfter = 10 * time.Millisecond

// idleProbe looks whether an idle connection is still good.
type idleProbe struct {
	raw   syscall.RawConn
	peek  func(fd uintptr)
	found *bool
}

func probe(nc net.Conn) idleProbe {
	// A TLS connection is probed underneath: what a server sends unasked is a
	// goodbye there too. (Session tickets come with the first answer.)
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return idleProbe{}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return idleProbe{}
	}
	found := new(bool)
	return idleProbe{raw: raw, found: found, peek: func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		*found = err != unix.EAGAIN
	}}
}

// stale reports whether the server has closed the connection, or sent what
// nobody asked for.
func (p idleProbe) stale() bool {
	if p.raw == nil {
		return false
	}
	return p.raw.Control(p.peek) != nil || *p.found
}
