//go:build unix

package load

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// turn writes a request and waits for the first bytes of its answer in one go, and
// saves the system call that net.Conn makes in between: its Read looks before it
// waits, and right after a request nothing can be there. That is one of three calls
// that a request costs.
//
// The order makes it safe: the poller is asked to watch before the request is
// written, so that an answer, however quick, is an event that it has not seen yet. A
// server that has ended its half of the connection by then is not noticed until it
// closes the other half too, which the request makes it do.
type turn struct {
	raw     syscall.RawConn
	step    func(fd uintptr) bool // made once, since a closure is an allocation
	request []byte                // to be written; nil when it was
	into    []byte
	n       int
	err     error // of reading
	wrote   error // of writing
}

// newTurn returns nil where nc has no descriptor of its own: a TLS connection, or
// one in memory.
func newTurn(nc net.Conn, write func([]byte) error) *turn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	t := &turn{raw: raw}
	t.step = func(fd uintptr) bool {
		if request := t.request; request != nil {
			t.request = nil
			if t.wrote = write(request); t.wrote == nil {
				return false
			}
			// The other side may have answered and closed: that was
			// before the poller watched, so it is looked for now.
		}
		for {
			t.n, t.err = unix.Read(int(fd), t.into)
			if !errors.Is(t.err, unix.EINTR) {
				return !errors.Is(t.err, unix.EAGAIN)
			}
		}
	}
	return t
}

// read reads the first bytes that come back, after writing the request if that has
// not been done. A deadline that goes off ends it; it may then be called again.
func (t *turn) read(into []byte) (int, error) {
	t.into, t.n, t.err = into, 0, nil
	if err := t.raw.Read(t.step); err != nil {
		return 0, err
	}
	switch {
	case t.err != nil:
		return 0, os.NewSyscallError("read", t.err)
	case t.n == 0:
		return 0, io.EOF
	}
	return t.n, nil
}
