package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTime is how long a connection that closes on a peer which is still
// sending goes on reading, so that the answer is not lost to a reset (RFC 9112,
// section 9.6). It is what net/http takes.
const lingerTime = 500 * time.Millisecond

// What a connection is doing. Both libraries report it in these terms.
//
//	fresh ──▶ active ◀──▶ idle     any ──▶ closed
type phase int32

const (
	fresh  phase = iota // accepted, nothing received yet
	active              // from a request's first byte to its answer's last
	idle                // between two requests
	closed
)

// A conn is one downstream connection. It counts itself, knows its phase, and
// bounds the silence of its peer.
type conn struct {
	net.Conn
	set      *connSet
	remoteIP string
	accepted time.Time
	silence  time.Duration // Config.BodyIdle

	phase   atomic.Int32
	closing atomic.Bool

	// quietSince is when c last became idle under a shutdown, in nanoseconds
	// since the set was born.
	quietSince atomic.Int64

	// writeBound is when the write deadline was last set, in nanoseconds since
	// accepted, 0 if it is not, and takenThen what the peer had taken by then.
	writeBound atomic.Int64
	takenThen  atomic.Int64
	written    atomic.Int64  // bytes
	writes     atomic.Uint32 // calls

	// timedOut is set when a Read met its deadline. The body looks at it,
	// because net/http cancels the request before that Read returns.
	timedOut atomic.Bool

	// unread says that the peer may still be sending: Close lingers.
	unread atomic.Bool

	// doomed says that what comes next on the connection is not certain to be
	// a request. Touched by the connection's own goroutine only.
	doomed bool

	// lifetime is that of the running exchange if the server has to watch for
	// the peer's hang-up itself; watched is the one that the watch saw last.
	lifetime atomic.Pointer[lifetime]
	watched  *lifetime

	// answered is writes as it stood when the last answer was complete but
	// perhaps still buffered, -1 before the first. See held.
	answered atomic.Int64
}

// enter moves c to another phase and counts.
func (c *conn) enter(to phase) {
	for {
		from := phase(c.phase.Load())
		if from == closed || from == to {
			return
		}
		if !c.phase.CompareAndSwap(int32(from), int32(to)) {
			continue
		}
		was, is := from == fresh || from == idle, to == fresh || to == idle
		switch {
		case is && !was:
			c.set.idle.Add(1)
		case was && !is:
			c.set.idle.Add(-1)
		}
		return
	}
}

// enterIdle is the moment between two requests: a doomed connection ends here.
// Neither library gets to what it may have buffered: net/http has nothing, and
// fasthttp fails to set its next deadline.
func (c *conn) enterIdle() {
	if c.doomed {
		_ = c.Close()
		return
	}
	if c.set.closing.Load() != 0 {
		c.quietSince.Store(int64(time.Since(c.set.born)))
	}
	c.enter(idle)
}

// dismiss closes c, as its server shuts down, if nothing has been going on for
// long enough: since it was accepted, since its last answer, but at least since
// the shutdown began.
func (c *conn) dismiss() {
	now := phase(c.phase.Load())
	since := max(c.set.closing.Load(), int64(c.accepted.Sub(c.set.born)), c.quietSince.Load())
	if now != fresh && now != idle || time.Since(c.set.born)-time.Duration(since) < quietGrace {
		return
	}
	// Unless a request has come this very moment.
	if c.phase.CompareAndSwap(int32(now), int32(closed)) {
		c.set.idle.Add(-1)
		c.cut()
	}
}

// held reports whether an earlier answer may still lie in the library's buffer,
// so that bytes written past that buffer would overtake it.
func (c *conn) held() bool {
	at := c.answered.Load()
	return at >= 0 && uint32(at) == c.writes.Load()
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.timedOut.Store(true)
	}
	return n, err
}

// Write gives up on a peer that takes nothing for as long as silence may last. A
// slow one that takes a little goes on. Taking is what its system acknowledges,
// where ours tells: a full send buffer has room again only when a third of it is
// free, which may be megabytes.
func (c *conn) Write(p []byte) (written int, err error) {
	c.writes.Add(1)
	if c.silence <= 0 {
		return c.Conn.Write(p)
	}
	for {
		if err := c.boundWrite(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		c.written.Add(int64(n))
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 && c.taken() == c.takenThen.Load() {
			return written, err
		}
		c.writeBound.Store(0)
	}
}

// taken is how many bytes the peer has taken.
func (c *conn) taken() int64 { return c.written.Load() - c.unacknowledged() }

// boundWrite puts the write deadline a full silence ahead, give or take an
// eighth: moving it for every small response costs more than it is worth.
func (c *conn) boundWrite() error {
	now := time.Since(c.accepted)
	if at := c.writeBound.Load(); at != 0 && now-time.Duration(at) < c.silence/8 {
		return nil
	}
	c.writeBound.Store(int64(max(now, 1)))
	c.takenThen.Store(c.taken())
	return c.Conn.SetWriteDeadline(c.accepted.Add(now + c.silence))
}

// SetWriteDeadline leaves a cleared deadline as it is: every Write sees to its
// own, and net/http clears it after every request.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && c.silence > 0 {
		return nil
	}
	c.writeBound.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite half-closes, so that the peer sees the end of what was sent.
func (c *conn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close lingers if the peer may still be sending. A second Close cuts that
// short.
func (c *conn) Close() error {
	if c.closing.CompareAndSwap(false, true) {
		if c.unread.Load() {
			c.linger()
		}
		c.set.remove(c)
	}
	return c.Conn.Close()
}

func (c *conn) linger() {
	if c.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c.Conn)
}

// cut closes at once, and ends what is running on it.
func (c *conn) cut() {
	if life := c.lifetime.Load(); life != nil {
		life.end()
	}
	c.unread.Store(false)
	_ = c.Close()
}

// reset is cut such that the peer cannot take what it has got for a whole answer
// that ends with the connection.
func (c *conn) reset() {
	if l, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0)
	}
	c.cut()
}

// A connSet is all open connections of one server.
type connSet struct {
	opened, live, idle atomic.Int64

	// closing is when the server's shutdown began, in nanoseconds since the
	// set was born; 0 before.
	closing atomic.Int64
	born    time.Time

	mu    sync.Mutex
	conns map[*conn]struct{}
	shut  bool // what comes now is closed at once
}

func newConnSet() *connSet { return &connSet{conns: make(map[*conn]struct{}), born: time.Now()} }

func (s *connSet) add(nc net.Conn, silence time.Duration) *conn {
	c := &conn{Conn: nc, set: s, remoteIP: ipOf(nc.RemoteAddr()), accepted: time.Now(), silence: silence}
	c.answered.Store(-1)
	s.opened.Add(1)
	s.live.Add(1)
	s.idle.Add(1)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	shut := s.shut
	s.mu.Unlock()
	if shut {
		c.cut()
	}
	return c
}

// cutAll closes every connection at once, those too that are being accepted.
func (s *connSet) cutAll() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.each((*conn).cut)
}

func (s *connSet) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.enter(closed)
	s.live.Add(-1)
}

// each calls f for every open connection, outside the lock.
func (s *connSet) each(f func(*conn)) {
	s.mu.Lock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// ipOf gives a's IP address, "" for the address of a peer that is gone already.
func ipOf(a net.Addr) string {
	switch a := a.(type) {
	case nil:
		return ""
	case *net.TCPAddr:
		return a.IP.String()
	default:
		return a.String()
	}
}
