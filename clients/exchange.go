package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Exchanges is what the clients that ride on net/http share: it carries one
// [Request] through an [http.RoundTripper], whatever library stands between, and
// makes a [Response] of what comes back. An adapter
//
//   - puts [Exchanges.Tries] around its transport, beneath its library,
//   - calls [Exchanges.Begin] for each request and gives the exchange to its
//     library as the context,
//   - has the library send what [Exchange.Fill] fills, and ask [Exchange.Again]
//     and [Exchange.Wait] whether and when to try again,
//   - returns what [Exchange.Answer] makes of the library's answer.
//
// [RoundTripper] is the adapter for no library at all.
type Exchanges struct {
	scheme, host string
	limits       Limits
	timeouts     Timeouts
	perTry       time.Duration
	policy       *RetryPolicy
	alarms       sync.Pool // of *alarm
}

// NewExchanges prepares the exchanges of one client.
func NewExchanges(s Settings) *Exchanges {
	return &Exchanges{
		scheme:   s.Upstream.Scheme,
		host:     s.Upstream.Host,
		limits:   s.Limits,
		timeouts: s.Timeouts,
		perTry:   s.Retry.PerTryTimeout,
		policy:   NewRetryPolicy(s.Retry),
	}
}

// Policy is the retry policy that Again and Wait ask.
func (c *Exchanges) Policy() *RetryPolicy { return c.policy }

// An Exchange is one logical request on its way: its timeouts, its attempts, its
// request body and at last its response.
//
// It is its own context: it ends when downstream goes away, when one of the
// timeouts strikes (the cause is then an [*Error]) and when the response ends.
// Containing the context rather than wrapping it saves two allocations a request,
// and lets the transport at the bottom find the exchange from the context that
// the library hands down.
type Exchange struct {
	context.Context
	cancel context.CancelCauseFunc

	c        *Exchanges
	req      *Request // not to be touched after Do has returned
	url      url.URL
	header   http.Header
	trace    httptrace.ClientTrace
	attempts int
	location []string // of a redirect, hidden from http.Client

	upload struct {
		body   io.Reader
		left   int64 // bytes still to come, -1 if unknown
		err    error // what reading it gave, other than io.EOF
		closed atomic.Bool
	}

	// informing is held while a 1xx response is passed on, so that none is
	// once Do has returned.
	informing sync.Mutex
	informed  int
	finished  bool

	clock // mu guards what follows and upload.err, too
	conn  *observedConn
	begun int64                   // conn.read when this try got the connection
	stop  context.CancelCauseFunc // ends this try alone; nil without retry

	resp Response
	in   io.ReadCloser // the response body as the transport gave it
	got  int64         // bytes of it that were read
	room [12]Field     // resp.Fields' first backing array: the usual head fits
}

type exchangeKey struct{}

// Value finds the exchange itself, for [ExchangeOf].
func (x *Exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// ExchangeOf returns the exchange that ctx belongs to. It panics if there is none,
// which is an adapter's mistake.
func ExchangeOf(ctx context.Context) *Exchange {
	return ctx.Value(exchangeKey{}).(*Exchange)
}

// errDone ends the context of an exchange that is over. Nobody sees it.
var errDone = errors.New("exchange is over")

// Begin opens an exchange. It ends through Answer.
func (c *Exchanges) Begin(ctx context.Context, req *Request) (*Exchange, error) {
	// A transport may still be writing the head when the exchange ends, so the
	// strings must outlive it: upstream need only answer too early.
	req.Own()
	x := &Exchange{c: c, req: req}
	if err := x.aim(); err != nil {
		return nil, err
	}
	x.header = outgoingHeader(req.Fields)
	x.Context, x.cancel = context.WithCancelCause(ctx)
	x.trace.GotConn = x.gotConn
	x.trace.WroteRequest = x.wroteRequest
	if req.Informational != nil {
		x.trace.Got1xxResponse = x.got1xx
	}
	x.Context = httptrace.WithClientTrace(x.Context, &x.trace)
	if req.Body != nil && req.ContentLength != 0 {
		x.upload.body = req.Body
		x.upload.left = req.ContentLength
	}
	c.policy.Begin()
	x.startClock(x.upload.body != nil)
	return x, nil
}

// Answer ends the tries: it makes the client's response or error of the library's,
// and is the last thing an adapter calls.
func (x *Exchange) Answer(resp *http.Response, err error) (*Response, error) {
	if err != nil {
		return x.finish(nil, x.classify(x, err))
	}
	return x.finish(x.response(resp), nil)
}

// finish closes the request's side of the exchange and hooks the end of the
// response's.
func (x *Exchange) finish(resp *Response, err error) (*Response, error) {
	x.informing.Lock()
	x.finished = true
	x.informing.Unlock()
	x.req = nil
	if err == nil {
		err = x.relay()
		if err != nil {
			_ = resp.Body.Close()
		}
	}
	if err != nil {
		x.end(err)
		return counted(nil, err, x.attempts)
	}
	resp.Attempts = x.attempts
	resp.OnEnd(x.end)
	return resp, nil
}

// end lets go of all that the exchange holds.
func (x *Exchange) end(error) {
	x.upload.closed.Store(true)
	x.stopClock()
	x.cancel(errDone)
}

// Again reports whether the library shall try again after resp or err. If so, it
// has read and closed resp's body, so that its connection can be used again.
func (x *Exchange) Again(resp *http.Response, err error) bool {
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	if !x.c.policy.Again(x.req, x.attempts, status, err) {
		return false
	}
	if resp != nil {
		x.drain(resp.Body, resp.ContentLength)
		resp.Body = http.NoBody
	}
	return true
}

// Wait is how long the library shall wait before it tries again after resp, which
// is nil after an error.
func (x *Exchange) Wait(resp *http.Response) time.Duration {
	retryAfter := ""
	if resp != nil {
		retryAfter = resp.Header.Get("Retry-After")
	}
	return x.c.policy.Wait(x.attempts, retryAfter)
}

func (x *Exchange) drain(body io.ReadCloser, length int64) {
	if length <= DrainLimit {
		x.boundTry(drainWait)
		_, _ = io.CopyN(io.Discard, body, DrainLimit)
	}
	_ = body.Close()
}

// Tries wraps the transport beneath a library: each of its round trips is one
// attempt of the exchange that the request's context belongs to. Its errors are
// [*Error]s.
func (c *Exchanges) Tries(next http.RoundTripper) http.RoundTripper { return tries{next} }

// tries has no CloseIdleConnections, unlike the transport it wraps: a library
// that calls it when one request fails (go-retryablehttp#237) would cut the
// connections of all.
type tries struct{ next http.RoundTripper }

func (t tries) RoundTrip(r *http.Request) (*http.Response, error) {
	return ExchangeOf(r.Context()).try(t.next, r)
}

// try makes one attempt.
func (x *Exchange) try(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	x.attempts++
	x.location = nil
	if x.c.policy.Enabled() {
		ctx, stop := context.WithCancelCause(r.Context())
		x.beginTry(stop)
		r = r.WithContext(ctx)
	} else {
		x.beginTry(nil)
	}
	resp, err := x.send(next, r)
	if err != nil {
		return nil, x.classify(r.Context(), err)
	}
	err = x.accept(resp)
	if err == nil {
		err = x.headCame()
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if status := resp.StatusCode; status >= 300 && status <= 399 {
		// http.Client neither follows nor, if it cannot be parsed, refuses
		// a Location that it does not see.
		x.location = resp.Header["Location"]
		delete(resp.Header, "Location")
	}
	return resp, nil
}

// send is next.RoundTrip, except that it returns as soon as the attempt's context
// ends. A transport waits for its writer, and that waits for the request body: a
// downstream that stops sending without hanging up would keep it from returning
// after a timeout. It is left behind then, and ends when the body does, whose
// reads fail once the exchange is over.
func (x *Exchange) send(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return next.RoundTrip(r)
	}
	type result struct {
		resp     *http.Response
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var res result
		defer func() {
			res.panicked = recover()
			done <- res
		}()
		res.resp, res.err = next.RoundTrip(r) //nolint:bodyclose // who takes the result closes it
	}()
	select {
	case res := <-done:
		if res.panicked != nil {
			panic(res.panicked) // where a caller can recover it
		}
		return res.resp, res.err
	case <-r.Context().Done():
		go func() {
			if res := <-done; res.resp != nil {
				_ = res.resp.Body.Close()
			}
		}()
		return nil, context.Cause(r.Context())
	}
}

// gotConn remembers the connection of the current try.
func (x *Exchange) gotConn(info httptrace.GotConnInfo) {
	c, ok := info.Conn.(*observedConn)
	if !ok {
		return
	}
	if info.Reused {
		c.settle()
	}
	x.mu.Lock()
	x.conn, x.begun = c, c.read.Load()
	x.mu.Unlock()
}

func (x *Exchange) wroteRequest(httptrace.WroteRequestInfo) { x.requestWritten() }

// maxInformational is how many 1xx responses one request may bring. net/http
// leaves that bound to whoever listens to them.
const maxInformational = 32

func (x *Exchange) got1xx(status int, header textproto.MIMEHeader) error {
	x.informing.Lock()
	defer x.informing.Unlock()
	if x.finished || status == http.StatusContinue {
		return nil
	}
	if x.informed++; x.informed > maxInformational {
		return &Error{Kind: Protocol, Err: fmt.Errorf("more than %d responses of status 1xx", maxInformational)}
	}
	x.req.Informational(status, appendFields(nil, http.Header(header)))
	return nil
}
