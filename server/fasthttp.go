package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"gatebench/clients"
)

// A fastServer is fasthttp. Unlike net/http it does not parse into maps: the
// fields are taken from the raw head, in order and case, and are views of its
// buffers ([clients.Request.Borrowed]). It pulls the response body after its
// handler has returned, recovers no panic, does not see a peer hang up, and ends
// Serve on an accept error; all of that is made up for here.
type fastServer struct {
	s    *Server
	fast fasthttp.Server
	pool sync.Pool // of *fastExchange

	once sync.Once
	stop chan struct{} // ends the watch
}

const (
	// watchTick is how often long exchanges are looked at for a hang-up.
	watchTick = 100 * time.Millisecond

	// unbounded stands for no timeout: 0 would mean ReadTimeout.
	unbounded = 365 * 24 * time.Hour

	// idleWorker is how long a goroutine waits for its next connection.
	idleWorker = time.Second
)

func newFastServer(s *Server) *fastServer {
	f := &fastServer{s: s, stop: make(chan struct{})}
	f.pool.New = func() any {
		x := &fastExchange{exchange: exchange{s: s}, f: f}
		x.informational = x.inform
		return x
	}
	f.fast = fasthttp.Server{
		Handler:               f.handle,
		ErrorHandler:          f.refuseUnparsed,
		HeaderReceived:        f.boundBody,
		ExpectHandler:         f.expect,
		ReadBufferSize:        int(s.cfg.MaxHeaderBytes),
		ReadTimeout:           s.cfg.ReadHeaderTimeout,
		IdleTimeout:           s.cfg.IdleTimeout,
		MaxIdleWorkerDuration: idleWorker,
		LazyRequestTime:       true,
		CloseOnShutdown:       true,
		Logger:                slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),

		// The body goes to the handler as it comes. The limit of one byte
		// keeps fasthttp from reading 8 KiB of it first; the real limit is
		// the body's.
		StreamRequestBody:            true,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,

		DisableHeaderNamesNormalizing: true,
		NoDefaultServerHeader:         true,
		NoDefaultContentType:          true,

		ConnState: func(nc net.Conn, state fasthttp.ConnState) {
			switch c := nc.(*conn); state {
			case fasthttp.StateActive:
				c.enter(active)
			case fasthttp.StateIdle:
				c.enterIdle()
			}
		},
	}
	if f.fast.IdleTimeout == 0 {
		f.fast.IdleTimeout = unbounded
	}
	return f
}

func (f *fastServer) serve(ln net.Listener) error {
	if hangUpsAreSeen {
		go f.watch()
	}
	return f.fast.Serve(ln)
}

func (f *fastServer) shutdown(ctx context.Context) error {
	err := f.fast.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) {
		err = nil // the listener was closed before
	}
	if err == nil {
		f.close()
	}
	return err
}

func (f *fastServer) close() { f.once.Do(func() { close(f.stop) }) }

// watch looks for peers that hung up, in exchanges that it meets twice and whose
// context somebody waits on: it costs the short ones nothing.
func (f *fastServer) watch() {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		f.s.conns.each(func(c *conn) {
			life := c.lifetime.Load()
			if life != nil && life == c.watched && life.isAwaited() && c.peerGone() {
				life.end()
			}
			c.watched = life
		})
	}
}

// A fastExchange is the response's body stream too: fasthttp pulls it, and its
// Close is the end of the exchange.
type fastExchange struct {
	exchange
	f             *fastServer
	ctx           *fasthttp.RequestCtx
	life          *lifetime
	resp          *clients.Response
	err           error                     // how the relay ended
	wrote         bool                      // the relay ran
	first         piece                     // of the body, read before the head is written
	direct        bool                      // the rest goes past fasthttp's buffer, which is empty then
	informational func(int, clients.Fields) // inform, bound once
}

func (f *fastServer) handle(ctx *fasthttp.RequestCtx) {
	c := ctx.Conn().(*conn)
	f.s.exchanges.Add(1)
	x := f.pool.Get().(*fastExchange)
	x.conn, x.ctx, x.life = c, ctx, new(lifetime)
	c.unread.Store(false)
	c.lifetime.Store(x.life)

	no := x.receive()
	if no == nil {
		no = x.admit()
	}
	if no != nil {
		ctx.SetConnectionClose()
		x.resp = f.s.refuse(no)
	} else {
		x.resp = f.s.ask(x.life, &x.in)
	}
	switch {
	case x.resp == nil && x.in.taken != nil:
		x.takeOver(func(net.Conn) { x.s.giveWire(x.conn, x.in.taken) })
	case x.resp == nil:
		x.finish()
		hangUp(ctx)
	case x.resp.Status == http.StatusSwitchingProtocols:
		x.takeOver(x.upgrade)
	case x.resp.ContentLength < 0 && x.in.ProtoMinor == 0:
		x.takeOver(x.sendUntilClose)
	default:
		x.send()
	}
}

// hangUp closes the connection with nothing written.
func hangUp(ctx *fasthttp.RequestCtx) {
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) {})
}

// view is b as a string, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// receive fills the inbound request from the raw head, which fasthttp has found
// to be well-formed but for what it tolerates.
func (x *fastExchange) receive() *refusal {
	h := &x.ctx.Request.Header
	in := &x.in
	in.Method, in.Target, in.Host = view(h.Method()), view(h.RequestURI()), view(h.Host())
	in.Borrowed = true
	in.RemoteIP = x.conn.remoteIP
	in.Informational = x.informational
	switch string(h.Protocol()) {
	case "HTTP/1.1":
		in.ProtoMinor = 1
	case "HTTP/1.0":
	default:
		return &refusal{http.StatusHTTPVersionNotSupported, clients.BadRequest, "only HTTP/1.0 and HTTP/1.1 are spoken here"}
	}
	if no := x.receiveFields(view(h.RawHeaders())); no != nil {
		return no
	}
	if src := x.ctx.RequestBodyStream(); src != nil && h.ContentLength() != 0 {
		in.ContentLength = int64(max(h.ContentLength(), -1))
		x.attach(src, in.ContentLength)
	}
	return nil
}

func (x *fastExchange) receiveFields(raw string) *refusal {
	bad := func(detail string) *refusal { return &refusal{http.StatusBadRequest, clients.BadRequest, detail} }
	var hasLength, hasCoding bool
	for raw != "" {
		var line string
		line, raw, _ = strings.Cut(raw, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case !isToken(name): // a folded line too
			return bad("a field is folded, or its name holds what no name can")
		case clients.EqualName(name, "Host"):
		case clients.EqualName(name, "Content-Length"):
			hasLength = true
		case clients.EqualName(name, "Transfer-Encoding"):
			hasCoding = true
			if !strings.EqualFold(value, "chunked") {
				return bad("the only transfer coding understood is chunked")
			}
		default:
			x.in.Fields = append(x.in.Fields, clients.Field{Name: name, Value: value})
		}
	}
	if hasLength && hasCoding {
		return bad("Content-Length and Transfer-Encoding exclude each other")
	}
	return nil
}

// inform sends a 1xx response, past fasthttp's buffer. If an earlier answer to a
// pipelining peer may still lie there, it is left out.
func (x *fastExchange) inform(status int, fields clients.Fields) {
	if x.in.ProtoMinor == 0 || x.conn.held() {
		return
	}
	_, _ = x.conn.Write(appendHead(nil, status, fields))
}

// send hands the response to fasthttp.
func (x *fastExchange) send() {
	resp, out := x.resp, &x.ctx.Response
	out.SetStatusCode(resp.Status)
	x.putHead(out)
	if x.f.s.stopped.Load() || x.in.upload != nil && x.in.upload.outlastsHead() {
		out.SetConnectionClose()
	}
	if resp.ContentLength < 0 && x.in.Method == http.MethodHead {
		// With a stream fasthttp would promise chunks.
		out.SkipBody = true
		x.wrote = true
		x.finish()
		return
	}
	if hasBody(x.in.Method, resp.Status) {
		x.peek()
	}
	out.ImmediateHeaderFlush = x.direct || isStream(resp)
	out.SetBodyStream(x, int(max(resp.ContentLength, -1)))
	if resp.Status == http.StatusNotModified && resp.ContentLength >= 0 {
		out.Header.Set("Content-Length", fmt.Sprint(resp.ContentLength)) // SetBodyStream leaves it out
	}
}

// peek reads the first piece of a body of known length. If it is not whole with
// that, it goes past fasthttp's buffer, which cannot be flushed; chunks are.
func (x *fastExchange) peek() {
	switch {
	case x.resp.ContentLength < 0:
	case isStream(x.resp):
		x.direct = true // whose head does not wait for a first piece
	default:
		x.first = x.s.peek(x.resp)
		x.direct = !x.first.completes(x.resp)
	}
}

// putHead fills fasthttp's header. It keeps one line of some fields only.
func (x *fastExchange) putHead(out *fasthttp.Response) {
	for i := range x.resp.Fields {
		f := &x.resp.Fields[i]
		switch {
		case frames(f.Name), clients.EqualName(f.Name, "Date"):
		case clients.EqualName(f.Name, "Trailer") && !x.chunks(x.resp):
		case clients.EqualName(f.Name, "Content-Encoding"):
			// Two lines mean the same as one list (RFC 9110, section 5.3).
			if before := out.Header.ContentEncoding(); len(before) > 0 {
				out.Header.SetContentEncoding(string(before) + ", " + f.Value)
			} else {
				out.Header.SetContentEncoding(f.Value)
			}
		case isToken(f.Name):
			out.Header.Add(f.Name, f.Value)
		}
	}
}

// Read is there for fasthttp's types only: it uses WriteTo.
func (x *fastExchange) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (x *fastExchange) SupportsBodyWriteTo() bool { return true }

var _ fasthttp.BodyWriterTo = (*fastExchange)(nil)

// WriteTo relays. An error closes the connection before the body can look whole.
func (x *fastExchange) WriteTo(w io.Writer) (n int64, err error) {
	x.wrote = true
	if x.direct {
		w = x.conn
	}
	first := x.first
	x.first = piece{}
	n, x.err = x.s.relay(w, x.resp, first, nil) // a chunk is flushed as it is written
	if x.err == nil && x.chunks(x.resp) {
		x.err = x.addTrailers()
	}
	return n, x.err
}

// addTrailers gives fasthttp the announced ones, under the name announced.
func (x *fastExchange) addTrailers() error {
	h := &x.ctx.Response.Header
	trailers, err := x.s.trailersOf(x.resp)
	for _, f := range trailers {
		for name := range h.Trailers() {
			if clients.EqualName(view(name), f.Name) {
				h.AddBytesK(name, f.Value)
			}
		}
	}
	return err
}

// Close ends the exchange; fasthttp calls it once, whatever happened.
func (x *fastExchange) Close() error {
	if !x.wrote && hasBody(x.in.Method, x.resp.Status) {
		x.err = &clients.Error{Kind: clients.Canceled, Err: errors.New("the head could not be written")}
	}
	x.finish()
	return nil
}

// finish lets go of the request, ends the response and gives x back.
func (x *fastExchange) finish() {
	c, s := x.conn, x.s
	if b := x.in.upload; b != nil {
		whole, sound := b.detach()
		if !whole {
			c.unread.Store(true)
			c.doomed = c.doomed || !sound
			// fasthttp discards the rest or closes.
			_ = c.SetReadDeadline(time.Now().Add(discardTime))
		}
	}
	if x.resp != nil {
		s.end(x.resp, x.err)
	}
	c.lifetime.Store(nil)
	x.life.end()
	c.answered.Store(int64(c.writes.Load()))
	if x.direct {
		c.answered.Store(-1) // fasthttp's buffer is empty
	}
	x.reset()
	if x.first.buf != nil { // nobody came to relay it
		s.buffers.Put(x.first.buf)
	}
	x.ctx, x.life, x.resp, x.err, x.wrote = nil, nil, nil, nil, false
	x.first, x.direct = piece{}, false
	x.f.pool.Put(x)
	s.exchanges.Add(-1)
}

// takeOver lets f answer on the bare connection, for what fasthttp cannot write.
// What pipelined answers it holds go out first.
func (x *fastExchange) takeOver(f func(net.Conn)) {
	x.ctx.HijackSetNoResponse(true)
	x.ctx.Hijack(func(hijacked net.Conn) {
		defer x.finish()
		f(hijacked)
	})
}

// sendUntilClose sends a body of unknown length over HTTP/1.0, where the end of
// the connection is the end of the body.
func (x *fastExchange) sendUntilClose(net.Conn) {
	x.wrote = true
	x.resp.Fields.Del("Trailer") // there are none without chunks
	fields := append(x.resp.Fields, clients.Field{Name: "Connection", Value: "close"})
	if _, err := x.conn.Write(appendHead(nil, x.resp.Status, fields)); err != nil {
		x.err = &clients.Error{Kind: clients.Canceled, Err: err}
		return
	}
	if !hasBody(x.in.Method, x.resp.Status) {
		return
	}
	if _, x.err = x.s.relay(x.conn, x.resp, piece{}, nil); x.err != nil {
		x.conn.reset()
	}
}

// upgrade answers 101 and tunnels. hijacked reads what fasthttp has read ahead.
func (x *fastExchange) upgrade(hijacked net.Conn) {
	if x.resp.Upgraded == nil {
		x.err = protocolError("101 without a connection")
		return
	}
	x.s.tunnel(x.conn, hijacked, x.resp)
}

// refuseUnparsed answers what fasthttp could not parse. Who sent too slowly or
// nothing gets no answer.
func (f *fastServer) refuseUnparsed(ctx *fasthttp.RequestCtx, err error) {
	c := ctx.Conn().(*conn)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isNetError(err) {
		c.cut()
		return
	}
	no := &refusal{http.StatusBadRequest, clients.BadRequest, "the request is not HTTP as it is spoken here"}
	if _, ok := errors.AsType[*fasthttp.ErrSmallBuffer](err); ok {
		no = &refusal{http.StatusRequestHeaderFieldsTooLarge, clients.BadRequest,
			fmt.Sprintf("the request head is longer than %d bytes", f.s.cfg.MaxHeaderBytes)}
	}
	f.refuse(ctx, no)
}

// boundBody puts the bound for silence in a body in place of the head's, which
// fasthttp leaves armed. It holds until the body's own first Read, and for the first
// byte, which fasthttp reads by itself.
func (f *fastServer) boundBody(h *fasthttp.RequestHeader) (bounds fasthttp.RequestConfig) {
	const chunked = -1
	switch length, silence := h.ContentLength(), f.s.cfg.BodyIdle; {
	case length <= 0 && length != chunked:
	case silence > 0:
		bounds.ReadTimeout = silence
	default:
		bounds.ReadTimeout = unbounded
	}
	return bounds
}

// expect decides whether 100 Continue goes out. A body that is too long is
// refused before, as the peer hopes.
func (f *fastServer) expect(ctx *fasthttp.RequestCtx) int {
	limit := f.s.cfg.MaxBodyBytes
	if limit > 0 && int64(ctx.Request.Header.ContentLength()) > limit {
		f.refuse(ctx, f.s.bodyTooLong())
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusContinue
}

// refuse answers where there is no exchange.
func (f *fastServer) refuse(ctx *fasthttp.RequestCtx, no *refusal) {
	ctx.Conn().(*conn).unread.Store(true)
	resp := f.s.refuse(no)
	ctx.Response.SetStatusCode(resp.Status)
	for _, field := range resp.Fields {
		ctx.Response.Header.Add(field.Name, field.Value)
	}
	body, err := io.ReadAll(resp.Body)
	ctx.Response.SetBody(body)
	f.s.end(resp, err)
}

func isNetError(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok
}
