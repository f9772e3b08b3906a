package fasthttp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gatebench/clients"

	"github.com/valyala/fasthttp"
)

// conn bounds reads and writes by what they are part of. The library writes a
// request whole, then reads the head, then hands out the body, so the phases are
// seen from here:
//
//	idle ── write ──▶ sending ── read ──▶ waiting ── the head is there ──▶ relaying
//	                  body_idle,          response_header,                 body_idle,
//	                  from the second     request,                         for each
//	                  write on            per_try_timeout                  read
//
// One goroutine at a time uses it, but for abort.
type conn struct {
	net.Conn
	client *client
	self   mark

	phase    phase
	uses     int       // exchanges begun, this one included
	unsent   bool      // the request's first write failed, and nothing went out
	ahead    int       // bytes that are out although the library has yet to write them
	got      bool      // something of the response came
	given    time.Time // the library's deadline: the request's or the attempt's, if it has no body
	readBy   bool      // a read deadline is set
	writeBy  bool      // a write deadline is set
	err      error     // what ended this exchange's reads or writes
	relayed  *exchange // whose body is read, from the head on
	drainBy  time.Time // when the rest of that body is not worth the wait any more
	canceled atomic.Bool
}

type phase uint8

const (
	idling phase = iota
	sending
	waiting
	relaying
)

func newConn(nc net.Conn, c *client) *conn {
	cn := &conn{Conn: nc, client: c}
	cn.self = mark{Addr: nc.LocalAddr(), conn: cn}
	return cn
}

// mark is a connection's local address, which the library notes in the response:
// the one way that leads from a response to its connection.
type mark struct {
	net.Addr
	conn *conn
}

func (c *conn) LocalAddr() net.Addr { return &c.self }

// connOf is the connection that resp came over, nil if there was none.
func connOf(resp *fasthttp.Response) *conn {
	if m, ok := resp.LocalAddr().(*mark); ok {
		return m.conn
	}
	return nil
}

// SetReadDeadline notes how long the library would wait; Read sets the deadline.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.given = t
	return nil
}

// SetWriteDeadline does nothing: Write sets the deadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// Write leaves out what sendAhead has sent.
func (c *conn) Write(p []byte) (int, error) {
	out := min(len(p), c.ahead)
	if out == 0 {
		return c.send(p)
	}
	c.ahead -= out
	if out == len(p) {
		return out, nil
	}
	n, err := c.send(p[out:])
	return out + n, err
}

// sendAhead sends what the library has put into its buffer, or is about to, and
// would write only once the buffer is full or the body whole.
func (c *conn) sendAhead(p []byte) error {
	n, err := c.send(p)
	c.ahead += n
	return err
}

// begun reports whether something of the request is out.
func (c *conn) begun() bool { return c.phase == sending }

func (c *conn) send(p []byte) (int, error) {
	first := !c.begun()
	if first {
		c.begin()
	} else {
		// Only what no longer fits into the kernel's buffers can wait for
		// upstream, so the first write needs no deadline.
		c.boundWrite()
	}
	n, err := c.Conn.Write(p)
	c.unsent = first && n == 0 && err != nil
	return n, c.note(err)
}

func (c *conn) begin() {
	c.phase, c.got, c.ahead, c.err = sending, false, 0, nil
	c.uses++
	if c.writeBy {
		c.writeBy = false
		_ = c.Conn.SetWriteDeadline(time.Time{})
	}
}

func (c *conn) boundWrite() {
	if d := c.client.timeouts.BodyIdle; d > 0 {
		c.writeBy = true
		_ = c.Conn.SetWriteDeadline(time.Now().Add(d))
	}
}

func (c *conn) Read(p []byte) (int, error) {
	switch c.phase {
	case sending:
		c.phase = waiting
		c.boundRead(c.headBy())
	case relaying:
		by := c.drainBy
		if d := c.client.timeouts.BodyIdle; by.IsZero() && d > 0 {
			by = time.Now().Add(d)
		}
		c.boundRead(by)
		c.relayed.watch(c)
	}
	n, err := c.Conn.Read(p)
	c.got = c.got || n > 0
	return n, c.note(err)
}

// headBy is when the response head must be there, now that the request is
// written.
func (c *conn) headBy() time.Time {
	now, by := time.Now(), c.given
	limits := [...]time.Duration{c.client.timeouts.ResponseHeader, 0, 0}
	if by.IsZero() { // a request with a body, whose time runs from here
		limits[1], limits[2] = c.client.timeouts.Request, c.client.perTry
	}
	for _, d := range limits {
		if t := now.Add(d); d > 0 && (by.IsZero() || t.Before(by)) {
			by = t
		}
	}
	return by
}

func (c *conn) boundRead(by time.Time) {
	if set := !by.IsZero(); set || c.readBy {
		c.readBy = set
		_ = c.Conn.SetReadDeadline(by)
	}
}

// note keeps what ended the exchange: the library does not hand on every error
// as it is.
func (c *conn) note(err error) error {
	if err != nil && c.err == nil {
		c.err = err
	}
	return err
}

// relay says that the head is there and x's body is read from now on; nil says
// that it is over.
func (c *conn) relay(x *exchange) {
	c.phase, c.relayed, c.drainBy = relaying, x, time.Time{}
}

// died says whether the connection had served before and then carried nothing of
// this exchange: nothing of the response, and perhaps nothing of the request
// either. Upstream closed it while it was idle.
func (c *conn) died() (stale, unsent bool) {
	reused := c.uses > 1 && !c.canceled.Load()
	return reused && !c.got && disconnected(c.err), reused && c.unsent
}

func disconnected(err error) bool {
	for _, target := range [...]error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// kind says why the exchange ended here, 0 if it did not.
func (c *conn) kind() clients.Kind {
	switch {
	case c.canceled.Load():
		return clients.Canceled
	case c.err == nil:
		return 0
	case errors.Is(c.err, os.ErrDeadlineExceeded) && c.phase == waiting:
		return clients.TimeoutHeader
	case errors.Is(c.err, os.ErrDeadlineExceeded):
		return clients.TimeoutBody
	case c.phase == relaying:
		return clients.Protocol
	}
	return clients.Reset
}

// abort ends whatever waits for upstream.
func (c *conn) abort() {
	c.canceled.Store(true)
	_ = c.Conn.Close()
}

// watch aborts the connection when the exchange's context ends, from its first
// call to unwatch. It is called when something is about to wait, so that an
// exchange whose bytes are all there pays nothing.
func (x *exchange) watch(c *conn) {
	if x.stop == nil && x.ctx.Done() != nil {
		x.stop = context.AfterFunc(x.ctx, c.abort)
	}
}

// unwatch reports whether the connection is still whole.
func (x *exchange) unwatch() bool {
	if x.stop == nil {
		return true
	}
	whole := x.stop()
	x.stop = nil
	return whole
}
