// Package fasthttp makes a [clients.Client] of the HTTP client of
// github.com/valyala/fasthttp, the stock one: HostClient.Do over its own pool of
// connections.
//
// It differs from using the library plainly in that
//
//   - the request goes out as it was given: target, Host and fields raw, nothing
//     added (DisableSpecialHeader, and a round tripper that puts the raw target
//     back after the library has parsed it);
//   - the response body streams (StreamResponseBody), and strings are views of
//     the library's buffers, valid until End;
//   - nothing is repeated by the library, which would do so up to five times
//     without a wait (MaxIdemponentCallAttempts); the policy's loop does it, and
//     an idempotent request on a connection that turns out dead is sent once more,
//     as by net/http;
//   - an upload is sent as it comes, its head first: the library would hold back
//     what does not fill its buffer;
//   - connections are dialed as for all clients, and bound reads and writes by the
//     timeouts of [clients.Timeouts]: the library has one deadline for head and
//     body together.
//
// What it leaves to others: admission. A request that finds no connection free
// fails at once, with kind pool_exhausted.
//
// The trap: the library knows no context. Whatever blocks in it before the
// response head ends by a timeout only; see [Deviations].
package fasthttp

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gatebench/clients"

	"github.com/valyala/fasthttp"
)

type client struct {
	host     fasthttp.HostClient
	dialer   *clients.Dialer
	tls      *tls.Config // nil for a clear upstream
	timeouts clients.Timeouts
	perTry   time.Duration
	policy   *clients.RetryPolicy
	bodyMax  int64 // bytes; 0 is unbounded
	close    bool  // a connection per request
	closed   atomic.Bool
	fields   sync.Pool // of *clients.Fields
}

// New returns a client of s.Upstream.
func New(s clients.Settings) (clients.Client, error) {
	config, err := s.TLSConfig()
	if err != nil {
		return nil, err
	}
	c := &client{
		dialer:   s.Dialer,
		tls:      config,
		timeouts: s.Timeouts,
		perTry:   s.Retry.PerTryTimeout,
		policy:   clients.NewRetryPolicy(s.Retry),
		bodyMax:  int64(s.Limits.ResponseBody),
	}
	c.host = fasthttp.HostClient{
		Addr:                          address(s),
		DialTimeout:                   c.dial,
		Transport:                     rawTarget{},
		StreamResponseBody:            true,
		DisableHeaderNamesNormalizing: true,
		DisablePathNormalizing:        true,
		ReadBufferSize:                int(s.Limits.Header), // a response head must fit into it
		MaxIdemponentCallAttempts:     1,
	}
	if s.Pool.Policy != clients.PoolLibrary {
		c.host.MaxConns = s.Pool.MaxConns
		c.host.MaxIdleConnDuration = idle(s.Pool.IdleTimeout)
		c.host.ConnPoolStrategy = fasthttp.LIFO // as net/http: a pool that is too large shrinks
		c.close = !s.Pool.KeepAlive
	}
	return c, nil
}

func address(s clients.Settings) string {
	port := s.Upstream.Port()
	switch {
	case port != "":
	case s.Upstream.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(s.Upstream.Hostname(), port)
}

// idle maps 0, for ever, to the longest that the library can: its own 0 means
// ten seconds.
func idle(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}

// dial connects within timeouts.connect, or within what is left of the request's
// time if that is less.
func (c *client) dial(addr string, left time.Duration) (net.Conn, error) {
	ctx, shorter := context.Background(), left > 0 && (c.dialer.Timeout == 0 || left < c.dialer.Timeout)
	if shorter {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	var (
		nc  net.Conn
		err error
	)
	if c.tls != nil {
		nc, err = c.dialer.DialTLS(ctx, "tcp", addr, c.tls)
	} else {
		nc, err = c.dialer.DialContext(ctx, "tcp", addr)
	}
	switch {
	case err == nil:
		return newConn(nc, c), nil
	case shorter && clients.KindOf(err) == clients.TimeoutConnect:
		return nil, &clients.Error{Kind: clients.TimeoutHeader, Err: err}
	}
	return nil, err
}

// rawTarget is the library's round tripper, but for one thing: what the library
// writes as target is its parsed URI, decoded and escaped anew, unless the request
// counts as not parsed. HostClient.Do has parsed it by now, to look at the scheme.
type rawTarget struct{}

func (rawTarget) RoundTrip(hc *fasthttp.HostClient, req *fasthttp.Request, resp *fasthttp.Response) (retry bool, err error) {
	req.SetRequestURIBytes(req.Header.RequestURI())
	return fasthttp.DefaultTransport.RoundTrip(hc, req, resp)
}

func (c *client) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	if c.closed.Load() {
		return nil, &clients.Error{Kind: clients.Dial, Err: clients.ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return nil, &clients.Error{Kind: clients.Canceled, Err: context.Cause(ctx)}
	}
	if err := check(req); err != nil {
		return nil, err
	}
	if req.Fields.Has("Upgrade") {
		return nil, &clients.Error{Kind: clients.Unsupported, Err: errUpgrade}
	}
	var deadline time.Time
	if req.Body == nil && c.timeouts.Request > 0 {
		deadline = time.Now().Add(c.timeouts.Request)
	}
	if c.policy.Enabled() {
		return c.retried(ctx, req, deadline)
	}
	resp, err := c.attempt(ctx, req, deadline)
	if err != nil {
		err.Attempts = clients.AttemptsOnWire(err, 1)
		return nil, err
	}
	resp.Attempts = 1
	return resp, nil
}

// retried is the policy's loop. The deadline bounds its waits through a context
// of its own, since it must not reach into the body.
func (c *client) retried(ctx context.Context, req *clients.Request, deadline time.Time) (*clients.Response, error) {
	loop := ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		loop, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	return c.policy.Do(loop, req, func(context.Context, *clients.Request) (*clients.Response, error) {
		resp, err := c.attempt(ctx, req, deadline)
		if err != nil {
			return nil, err
		}
		return resp, nil
	})
}

// attempt sends req, and once more as long as it meets connections that died
// while they were idle. The library finds that out only now, net/http before.
func (c *client) attempt(ctx context.Context, req *clients.Request, deadline time.Time) (*clients.Response, *clients.Error) {
	for {
		x, err := c.send(ctx, req, deadline)
		if err == nil {
			return x.answer()
		}
		again := x.conn != nil && req.Body == nil && x.conn.forgives(req)
		x.release()
		if !again {
			return nil, err
		}
	}
}

// forgives reports whether req, which has no body, is sent again because of a
// connection that had died: if nothing of it went out, or if it is safe. That is
// what net/http does, without its exception for requests with an Idempotency-Key
// (net/http.Request.isReplayable): whether more than that may be sent twice is for
// the retry policy to say, for all clients alike.
func (c *conn) forgives(req *clients.Request) bool {
	stale, unsent := c.died()
	return unsent || stale && isSafe(req.Method)
}

func isSafe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// send puts req on the wire. It returns the exchange in any case.
func (c *client) send(ctx context.Context, req *clients.Request, deadline time.Time) (*exchange, *clients.Error) {
	x := &exchange{client: c, ctx: ctx, lib: fasthttp.AcquireResponse()}
	x.lib.Header.SetNoDefaultContentType(true)
	limit := c.perTry
	if req.Body != nil {
		limit = 0 // the connection sets the limits when the body is through
	} else if !deadline.IsZero() {
		left := time.Until(deadline)
		if left <= 0 {
			return x, &clients.Error{Kind: clients.TimeoutHeader, Err: context.DeadlineExceeded}
		}
		if limit == 0 || left < limit {
			limit = left
		}
	}
	out := fasthttp.AcquireRequest()
	c.fill(out, req)
	out.SetTimeout(limit)
	if req.Body != nil {
		x.up = upload{x: x, head: &out.Header, body: req.Body, left: req.ContentLength}
		out.SetBodyStream(&x.up, int(req.ContentLength))
	}
	err := c.host.Do(out, x.lib)
	fasthttp.ReleaseRequest(out)
	x.conn = connOf(x.lib)
	if err != nil {
		return x, x.classify(err)
	}
	return x, nil
}

// fill makes out of req, with every field raw: the library neither knows nor adds
// one.
func (c *client) fill(out *fasthttp.Request, req *clients.Request) {
	h := &out.Header
	h.DisableSpecialHeader()
	h.DisableNormalizing()
	h.SetNoDefaultContentType(true)
	h.SetMethod(req.Method)
	// The library parses a target to find the scheme. It is given "/", since it
	// takes "//host/" and "/?://" for other things than they are; the real
	// target is put in afterwards, into the header alone.
	h.SetRequestURI("/")
	h.SetHost(req.Host)
	out.URI()
	h.SetRequestURI(req.Target)
	h.Add("Host", req.Host)
	for i := range req.Fields {
		h.Add(req.Fields[i].Name, req.Fields[i].Value)
	}
	if c.close {
		out.SetConnectionClose()
		h.Add("Connection", "close")
	}
}

// check refuses what would break the request line. The library makes spaces of
// line breaks in fields, but for a request line that is not enough.
func check(req *clients.Request) *clients.Error {
	if req.Target == "" || req.Target[0] != '/' && req.Target != "*" {
		return &clients.Error{Kind: clients.BadRequest, Err: errTarget}
	}
	for _, part := range [...]string{req.Method, req.Target, req.Host} {
		for i := range len(part) {
			if part[i] <= ' ' || part[i] == 0x7f {
				return &clients.Error{Kind: clients.BadRequest, Err: errControl}
			}
		}
	}
	return nil
}

var (
	errUpgrade = errors.New("the library puts the connection back into its pool after 101")
	errTarget  = errors.New("request target is neither a path nor *")
	errControl = errors.New("a space or control character in method, target or host")
)

// Close closes idle connections. Those in use close when their exchange ends.
func (c *client) Close() error {
	c.closed.Store(true)
	c.host.CloseIdleConnections()
	return nil
}
