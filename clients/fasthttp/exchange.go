package fasthttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"gatebench/clients"

	"github.com/valyala/fasthttp"
)

// exchange is one attempt and, if it gets an answer, the response and its body.
type exchange struct {
	clients.Response
	client *client
	ctx    context.Context
	lib    *fasthttp.Response // nil once released
	conn   *conn              // nil if there was none, or it is back in the pool
	up     upload
	fields *clients.Fields // the pooled array of Response.Fields

	stop func() bool // of watch
	read int64       // bytes of the body
	err  error       // that ended the body
}

var _ clients.Drainer = (*exchange)(nil)

var errSwitched = errors.New("upstream switched protocols unasked")

// answer makes a response of what the library read.
func (x *exchange) answer() (*clients.Response, *clients.Error) {
	status := x.lib.StatusCode()
	if x.lib.IsBodyStream() {
		x.conn.relay(x)
	} else if status == fasthttp.StatusSwitchingProtocols {
		_ = x.conn.Conn.Close() // it is in the pool already, and must not serve there
	}
	if err := x.refuse(status); err != nil {
		x.lib.SetConnectionClose()
		x.release()
		return nil, err
	}
	x.Status, x.Borrowed = status, true
	x.ContentLength = max(int64(x.lib.Header.ContentLength()), -1)
	x.takeFields()
	x.Body = x
	if x.ContentLength < 0 && x.lib.IsBodyStream() {
		x.Trailers = x.trailers
	}
	return &x.Response, nil
}

// refuse says what is wrong with a head that the library let pass.
func (x *exchange) refuse(status int) *clients.Error {
	switch length := int64(x.lib.Header.ContentLength()); {
	case status < 100:
		return &clients.Error{Kind: clients.Protocol, Err: fmt.Errorf("status %d", status)}
	case status == fasthttp.StatusSwitchingProtocols:
		return &clients.Error{Kind: clients.Protocol, Err: errSwitched}
	case x.client.bodyMax > 0 && length > x.client.bodyMax && x.lib.IsBodyStream():
		return &clients.Error{Kind: clients.ResponseTooLarge, Err: fmt.Errorf("a body of %d bytes", length)}
	}
	return nil
}

// takeFields fills Fields with views of the library's buffers. The library adds a
// Connection: close where the message implies one; that, and the framing, stay
// out.
func (x *exchange) takeFields() {
	x.fields, _ = x.client.fields.Get().(*clients.Fields)
	if x.fields == nil {
		x.fields = new(clients.Fields)
	}
	fs := (*x.fields)[:0]
	for k, v := range x.lib.Header.All() {
		name, value := view(k), view(v)
		switch {
		case clients.EqualName(name, "Content-Length"), clients.EqualName(name, "Transfer-Encoding"):
		case value == "close" && clients.EqualName(name, "Connection"):
		default:
			fs = append(fs, clients.Field{Name: name, Value: value})
		}
	}
	*x.fields = fs
	x.Fields = fs
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// trailers copies: there are few, and the library lists a name's values from
// head and trailer section together.
func (x *exchange) trailers() clients.Fields {
	if x.lib == nil {
		return nil
	}
	var ts clients.Fields
	for name := range x.lib.Header.Trailers() {
		inHead := 0
		for _, f := range x.Fields {
			if f.Name == string(name) {
				inHead++
			}
		}
		for i, v := range x.lib.Header.PeekAll(string(name)) {
			if i >= inHead {
				ts.Add(string(name), string(v))
			}
		}
	}
	return ts
}

var (
	errEnded   = errors.New("the exchange has ended")
	errTooLong = errors.New("the body exceeds limits.response_body")
)

func (x *exchange) Read(p []byte) (int, error) {
	switch {
	case x.err != nil:
		return 0, x.err
	case x.lib == nil:
		return 0, errEnded
	case !x.lib.IsBodyStream():
		return 0, io.EOF
	}
	n, err := x.lib.BodyStream().Read(p)
	x.read += int64(n)
	switch over := x.read - x.client.bodyMax; {
	case x.client.bodyMax > 0 && over > 0:
		n -= int(over)
		x.err = &clients.Error{Kind: clients.ResponseTooLarge, Err: errTooLong}
	case err == io.EOF:
		x.err = io.EOF
	case err != nil:
		x.err = x.bodyError(err)
	}
	return n, x.err
}

func (x *exchange) bodyError(err error) error {
	kind := x.conn.kind()
	if kind == 0 {
		kind = clients.Protocol // what came is no chunk, or no trailer
	}
	return &clients.Error{Kind: kind, Err: err}
}

// drainWait is how long the rest of a response that is tried again may take. What
// has not arrived by then is dearer than a new connection.
const drainWait = 50 * time.Millisecond

// Drain reads a rest that is worth a connection.
func (x *exchange) Drain() {
	if x.lib == nil || !x.lib.IsBodyStream() || x.ContentLength > clients.DrainLimit {
		return
	}
	x.conn.drainBy = time.Now().Add(drainWait)
	_, _ = io.CopyN(io.Discard, x, clients.DrainLimit)
}

// Close gives the connection back if the body was read whole and nobody has
// aborted it, and closes it otherwise.
func (x *exchange) Close() error {
	x.release()
	return nil
}

// release lets go of all that is the library's.
func (x *exchange) release() {
	if x.lib == nil {
		return
	}
	if !x.unwatch() {
		x.lib.SetConnectionClose()
	}
	if x.lib.IsBodyStream() {
		x.conn.relay(nil)
		_ = x.lib.CloseBodyStream()
	}
	fasthttp.ReleaseResponse(x.lib)
	x.lib, x.conn = nil, nil
	if x.fields != nil && x.Borrowed { // whoever owns the strings may keep the array too
		clear(*x.fields)
		x.client.fields.Put(x.fields)
		x.Fields = nil
	}
	if x.client.closed.Load() {
		x.client.host.CloseIdleConnections()
	}
}

// classify gives the kind of an error of the library's.
func (x *exchange) classify(err error) *clients.Error {
	if e, ok := errors.AsType[*clients.Error](err); ok { // the dialer's, or the upload's
		return &clients.Error{Kind: e.Kind, Err: e.Err}
	}
	if x.ctx.Err() != nil { // late, but nobody waits any more: no fault of upstream's
		return &clients.Error{Kind: clients.Canceled, Err: context.Cause(x.ctx)}
	}
	kind := clients.Protocol
	switch _, small := errors.AsType[*fasthttp.ErrSmallBuffer](err); {
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		kind = clients.PoolExhausted
	case x.conn != nil && x.conn.kind() != 0:
		kind = x.conn.kind()
	case small:
		kind = clients.ResponseTooLarge
	case errors.Is(err, fasthttp.ErrTimeout):
		kind = clients.TimeoutHeader
	}
	return &clients.Error{Kind: kind, Err: err}
}

// upload is the request body on its way through the library, which reads it on
// the caller's goroutine. That makes it the one place that can watch for
// cancellation before the head, as long as it is read.
//
// The library's writer keeps the head, and a body of known length, until 4 KiB are
// there or all is. A caller who pauses would keep upstream waiting for the head of
// his request, and be cut off by upstream's timeout for heads. So what is there goes
// out before more is waited for.
type upload struct {
	x    *exchange
	head *fasthttp.RequestHeader // nil once it is out
	body io.Reader
	left int64 // bytes to come, negative if unknown
}

var errLength = errors.New("the request body is not as long as it said")

func (u *upload) Read(p []byte) (n int, err error) {
	defer func() {
		// Beyond here a panic would leave the library's pool a place short.
		if v := recover(); v != nil {
			n, err = 0, uploadError(fmt.Errorf("panic: %v", v))
		}
	}()
	c := connOf(u.x.lib)
	u.x.watch(c)
	if err := u.sendHead(c); err != nil {
		return 0, err
	}
	n, err = u.body.Read(p)
	switch known := u.left >= 0; {
	case known && (int64(n) > u.left || err == io.EOF && int64(n) < u.left):
		n, err = 0, errLength
	case known:
		u.left -= int64(n)
	}
	switch {
	case err == io.EOF && !u.x.unwatch():
		err = &clients.Error{Kind: clients.Canceled, Err: context.Cause(u.x.ctx)}
	case err != nil && err != io.EOF:
		err = uploadError(err)
	case n > 0 && u.left > 0:
		// The last piece is the library's to send, after a look whether the
		// body is longer than it said; and so are chunks, which it flushes.
		err = c.sendAhead(p[:n])
	}
	return n, err
}

// sendHead sends the head if it is in the library's buffer. One that is too long for
// it has gone out.
func (u *upload) sendHead(c *conn) error {
	head := u.head
	u.head = nil
	if head == nil || c.begun() {
		return nil
	}
	return c.sendAhead(head.Header())
}

// uploadError is downstream's fault, unless err knows better.
func uploadError(err error) *clients.Error {
	if e, ok := errors.AsType[*clients.Error](err); ok {
		return e
	}
	return &clients.Error{Kind: clients.BadRequest, Err: err}
}
