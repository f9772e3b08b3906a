package clienttest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatebench/clients"
	"gatebench/clients/clienttest"
)

// The two ways to a client of one's own, which clients/README.md tells. What
// stands there is taken from here.

// From an http.RoundTripper.

// A tracer is somebody's own round tripper around a transport.
type tracer struct {
	*http.Transport
	trips *atomic.Int64
}

func (t tracer) RoundTrip(r *http.Request) (*http.Response, error) {
	t.trips.Add(1)
	return t.Transport.RoundTrip(r)
}

func newTraced(s clients.Settings) (clients.Client, error) {
	t, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
	if err != nil {
		return nil, err
	}
	return clients.RoundTripper(tracer{t, new(atomic.Int64)}, s), nil
}

func TestTraced(t *testing.T) {
	clienttest.Run(t, newTraced)
}

// From scratch.

// A plain client speaks HTTP by hand over connections that it keeps itself.
type plain struct {
	settings clients.Settings
	tls      *tls.Config // nil for a clear upstream
	policy   *clients.RetryPolicy
	places   chan struct{} // one for each connection in use
	idle     chan *link
	closed   atomic.Bool
}

func newPlain(s clients.Settings) (clients.Client, error) {
	config, err := s.TLSConfig()
	if err != nil {
		return nil, err
	}
	return &plain{
		settings: s, tls: config, policy: clients.NewRetryPolicy(s.Retry),
		places: make(chan struct{}, s.Pool.MaxConns), idle: make(chan *link, s.Pool.MaxConns),
	}, nil
}

// A link is a connection to upstream.
type link struct {
	net.Conn
	br    *bufio.Reader
	room  io.LimitedReader // beneath br, so that a head is bounded
	ended bool             // a read has failed: what is wrong with a head is that it ends
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.ended = l.ended || err != nil
	return n, err
}

func (c *plain) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	if c.closed.Load() {
		return nil, fail(clients.Dial, clients.ErrClosed)
	}
	if req.Fields.Has("Upgrade") {
		return nil, fail(clients.Unsupported, errors.New("no upgrades"))
	}
	if !sound(req) {
		return nil, fail(clients.BadRequest, errors.New("a character that ends a line or a word"))
	}
	// A context ends an exchange for whatever reason, and has the reason.
	ctx, cancel := context.WithCancelCause(ctx)
	whole := new(limits)
	if req.Body == nil {
		whole.start(c.settings.Timeouts.Request, func() { cancel(errLate) })
	}
	resp, err := c.policy.Do(ctx, req, func(ctx context.Context, req *clients.Request) (*clients.Response, error) {
		return c.attempt(ctx, req)
	})
	whole.stop()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body.(*exchange).done = cancel
	return resp, nil
}

var (
	errLate   = fail(clients.TimeoutHeader, errors.New("no head in time"))
	errSilent = fail(clients.TimeoutBody, errors.New("silence in a body"))
)

func fail(kind clients.Kind, err error) error { return &clients.Error{Kind: kind, Err: err} }

// Close closes what is idle; what is in use closes when its exchange ends.
func (c *plain) Close() error {
	c.closed.Store(true)
	for {
		select {
		case l := <-c.idle:
			_ = l.Close()
		default:
			return nil
		}
	}
}

// take gets an idle connection or a new one, when there is a place for it.
func (c *plain) take(ctx context.Context) (*link, error) {
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case l := <-c.idle:
		return l, nil
	default:
	}
	conn, err := c.dial(ctx)
	if err != nil {
		<-c.places
		return nil, err
	}
	l := &link{Conn: conn}
	l.room.R = l
	l.br = bufio.NewReader(&l.room)
	return l, nil
}

func (c *plain) dial(ctx context.Context) (conn net.Conn, err error) {
	if addr := c.settings.Upstream.Host; c.tls != nil {
		conn, err = c.settings.Dialer.DialTLS(ctx, "tcp", addr, c.tls)
	} else {
		conn, err = c.settings.Dialer.DialContext(ctx, "tcp", addr)
	}
	return conn, err
}

// give takes a connection back, to be used again if it is sound.
func (c *plain) give(l *link, sound bool) {
	if sound && c.settings.Pool.KeepAlive && !c.closed.Load() {
		_ = l.SetDeadline(time.Time{})
		c.idle <- l          // there is room: it has a place
		if c.closed.Load() { // just now
			_ = c.Close()
		}
	} else {
		_ = l.Close()
	}
	<-c.places
}

// An exchange is one attempt: a request and its response on one connection.
type exchange struct {
	c      *plain
	l      *link
	ctx    context.Context
	cancel context.CancelCauseFunc
	closes func() bool // undoes that the end of ctx closes l
	head   limits      // until the response head
	sent   chan struct{}
	resp   *http.Response
	read   int64
	keep   bool                    // the body was read whole
	bad    error                   // what ended the body
	done   context.CancelCauseFunc // the request's, if this is its last attempt
}

func (c *plain) attempt(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	t := c.settings.Timeouts
	x := &exchange{c: c, sent: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	if req.Body == nil {
		x.head.start(c.settings.Retry.PerTryTimeout, func() { x.cancel(errLate) })
	}
	l, err := c.take(x.ctx)
	if err != nil {
		x.head.stop()
		return nil, x.classify(err, clients.Dial)
	}
	x.l = l
	x.closes = context.AfterFunc(x.ctx, func() { _ = l.Close() })
	if err = x.send(req, t); err == nil {
		err = x.receive(req)
	}
	x.head.stop()
	if err != nil {
		err = x.classify(err, clients.Reset)
		x.end(err)
		return nil, err
	}
	resp := &clients.Response{
		Status: x.resp.StatusCode, Fields: fieldsOf(x.resp.Header), Body: x, ContentLength: x.resp.ContentLength,
	}
	if resp.Status == http.StatusNotModified { // of which ReadResponse says 0
		if _, err := fmt.Sscan(x.resp.Header.Get("Content-Length"), &resp.ContentLength); err != nil {
			resp.ContentLength = -1
		}
	}
	if len(x.resp.TransferEncoding) > 0 {
		resp.Trailers = func() clients.Fields { return fieldsOf(x.resp.Trailer) }
	}
	resp.OnEnd(x.end)
	return resp, nil
}

// end lets go of the connection. It is sound if all was sent and all was read.
func (x *exchange) end(error) {
	sound := x.closes() && x.keep && !x.resp.Close && x.l.br.Buffered() == 0
	if sound {
		select {
		case <-x.sent:
		case <-time.After(10 * time.Millisecond): // it may not have noticed yet that it is through
			sound = false // the answer came before the end of the upload
			_ = x.l.Close()
		}
	}
	x.c.give(x.l, sound)
	x.cancel(nil)
	if x.done != nil {
		x.done(nil)
	}
}

// send writes the request as it is: the hop has said all there is to say. A body
// is sent beside the wait for the answer, which may come before its end; when the
// exchange ends, reading the body gives an error.
func (x *exchange) send(req *clients.Request, t clients.Timeouts) error {
	bw := bufio.NewWriter(x.l)
	fmt.Fprintf(bw, "%s %s HTTP/1.1\r\nHost: %s\r\n", req.Method, req.Target, req.Host)
	for _, f := range req.Fields {
		fmt.Fprintf(bw, "%s: %s\r\n", f.Name, f.Value)
	}
	if !x.c.settings.Pool.KeepAlive {
		_, _ = bw.WriteString("Connection: close\r\n")
	}
	if req.Body == nil {
		if req.Method == "POST" || req.Method == "PUT" || req.Method == "PATCH" {
			_, _ = bw.WriteString("Content-Length: 0\r\n")
		}
		_, _ = bw.WriteString("\r\n")
		x.head.start(t.ResponseHeader, func() { x.cancel(errLate) })
		close(x.sent)
		return bw.Flush()
	}
	src := req.Body
	var silence *time.Timer
	if t.BodyIdle > 0 {
		silence = time.AfterFunc(t.BodyIdle, func() { x.cancel(errSilent) })
		src = &watched{req.Body, silence, t.BodyIdle}
	}
	length := req.ContentLength
	if length >= 0 {
		fmt.Fprintf(bw, "Content-Length: %d\r\n\r\n", length)
	} else {
		_, _ = bw.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	}
	perTry := x.c.settings.Retry.PerTryTimeout
	go func() {
		err := upload(bw, src, length)
		if silence != nil {
			silence.Stop()
		}
		if err != nil {
			x.cancel(x.classify(err, clients.Reset))
			return
		}
		for _, d := range []time.Duration{t.ResponseHeader, t.Request, perTry} {
			x.head.start(d, func() { x.cancel(errLate) })
		}
		close(x.sent)
	}()
	return nil
}

// upload sends what there is before it waits for more: the head, then each piece.
func upload(bw *bufio.Writer, src io.Reader, length int64) error {
	if err := bw.Flush(); err != nil {
		return err
	}
	if length < 0 {
		chunks := httputil.NewChunkedWriter(bw)
		if _, err := io.Copy(eager{chunks, bw}, src); err != nil {
			return err
		}
		_ = chunks.Close()
		_, _ = bw.WriteString("\r\n")
		return bw.Flush()
	}
	n, err := io.Copy(eager{bw, bw}, src)
	if err == nil && n != length {
		return fail(clients.BadRequest, errors.New("a body of another length than announced"))
	}
	return err
}

// eager writes to what ends in bw, and keeps nothing there.
type eager struct {
	io.Writer
	bw *bufio.Writer
}

func (w eager) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err == nil {
		err = w.bw.Flush()
	}
	return n, err
}

// receive reads the response head.
func (x *exchange) receive(req *clients.Request) error {
	limit := x.c.settings.Limits
	x.l.room.N = int64(limit.Header)
	for {
		resp, err := http.ReadResponse(x.l.br, &http.Request{Method: req.Method})
		switch {
		case err != nil && x.l.room.N <= 0:
			return fail(clients.ResponseTooLarge, err)
		case err != nil && !x.l.ended:
			return fail(clients.Protocol, err)
		case err != nil:
			return err
		case resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols:
			return fail(clients.Protocol, fmt.Errorf("status %d", resp.StatusCode))
		case resp.StatusCode > 199:
			x.resp = resp
			x.l.room.N = math.MaxInt64
			if most := int64(limit.ResponseBody); most > 0 && resp.ContentLength > most && req.Method != "HEAD" {
				return fail(clients.ResponseTooLarge, errors.New("a body beyond the limit"))
			}
			return nil
		case resp.StatusCode != http.StatusContinue && req.Informational != nil:
			req.Informational(resp.StatusCode, fieldsOf(resp.Header))
		}
	}
}

// Read is the response body. What goes wrong stays wrong.
func (x *exchange) Read(p []byte) (int, error) {
	if x.bad != nil {
		return 0, x.bad
	}
	var silence limits
	silence.start(x.c.settings.Timeouts.BodyIdle, func() { x.cancel(errSilent) })
	n, err := x.resp.Body.Read(p)
	silence.stop()
	x.read += int64(n)
	if most := int64(x.c.settings.Limits.ResponseBody); most > 0 && x.read > most {
		n -= int(x.read - most)
		err = fail(clients.ResponseTooLarge, errors.New("a body beyond the limit"))
	}
	if err != nil && err != io.EOF {
		err = x.classify(err, clients.Protocol)
	}
	x.bad, x.keep = err, err == io.EOF
	return n, err
}

// Drain reads a rest that is worth its connection, for a retry.
func (x *exchange) Drain() {
	_ = x.l.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, x, clients.DrainLimit)
}

// Close leaves it to end, which knows whether the connection is sound.
func (x *exchange) Close() error {
	if x.resp.ContentLength == 0 || x.resp.Body == http.NoBody {
		x.keep = true
	}
	return nil
}

// classify gives an error its kind: its own, that of what has ended the exchange,
// or else.
func (x *exchange) classify(err error, otherwise clients.Kind) error {
	switch cause := context.Cause(x.ctx); {
	case clients.KindOf(cause) != 0:
		return cause
	case cause != nil:
		return fail(clients.Canceled, cause)
	case clients.KindOf(err) != 0:
		return err
	}
	return fail(otherwise, err)
}

// watched is a request body under watch: neither it nor what it goes into may stand
// still for long. The time runs from one Read to its end, and from there to the next.
type watched struct {
	io.Reader
	silence *time.Timer
	idle    time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.silence.Reset(w.idle)
	defer w.silence.Reset(w.idle)
	return w.Reader.Read(p)
}

// limits are timers that end together.
type limits struct {
	mu     sync.Mutex
	timers []*time.Timer
	over   bool
}

// start ends something after d, if d is not 0.
func (l *limits) start(d time.Duration, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d > 0 && !l.over {
		l.timers = append(l.timers, time.AfterFunc(d, end))
	}
}

func (l *limits) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, t := range l.timers {
		t.Stop()
	}
}

func fieldsOf(h http.Header) (fs clients.Fields) {
	for name, values := range h {
		if name == "Content-Length" {
			continue
		}
		for _, v := range values {
			fs.Add(name, v)
		}
	}
	return fs
}

// sound reports whether nothing in req ends a line, or a word of the first one.
func sound(req *clients.Request) bool {
	ok := !strings.ContainsAny(req.Method+req.Target+req.Host, " \t\r\n\x00") && req.Method != "" && req.Target != ""
	for _, f := range req.Fields {
		ok = ok && !strings.ContainsAny(f.Name, " \t\r\n\x00:") && !strings.ContainsAny(f.Value, "\r\n\x00")
	}
	return ok
}

// plainDeviations is what this client gives up, each with the reason.
var plainDeviations = []clients.Deviation{
	{Name: "upgrade", Reason: "it does not hand its connection over"},
	{Name: "closed-idle", Reason: "nobody reads an idle connection: the next request finds out that it has ended"},
	{Name: "stale-get", Reason: "nor does it send that request once more"},
	{Name: "unasked-bytes-idle", Reason: "nobody reads an idle connection: what comes on it is taken for the next answer"},
	{Name: "idle-timeout", Reason: "nobody closes an idle connection before Close"},
}

func TestPlain(t *testing.T) {
	clienttest.Run(t, newPlain, plainDeviations...)
}

// TestTheGuideIsThisCode: what clients/README.md shows stands here.
func TestTheGuideIsThisCode(t *testing.T) {
	guide, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(string(guide), "```go\n")[1:]
	if len(shown) < 8 {
		t.Errorf("the guide shows %d pieces of code", len(shown))
	}
	for _, piece := range shown {
		piece, _, _ = strings.Cut(piece, "```")
		if !strings.Contains(string(code), piece) {
			t.Errorf("the guide shows what is not here:\n%s", piece)
		}
	}
}
