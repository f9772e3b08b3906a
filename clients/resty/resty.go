// Package resty is the client that sends each request through resty's own
// pipeline: its request, its middlewares, its http.Client and its retries.
//
// How it differs from resty used plainly:
//
//   - There is no cookie jar, which would send one user's session with the next
//     one's requests, no redirect is followed, and nothing is logged.
//   - The request that the middlewares built is replaced in the pre-request hook,
//     the last thing before the wire. So bodies stream instead of being read into
//     memory and sent chunked, the target is not parsed and written anew, and
//     resty's User-Agent, Accept and Content-Type do not go out. The middlewares
//     still run: they are what resty costs.
//   - The response is not parsed, so it streams and stays as encoded.
//   - Retries are resty's loop, but conditions and waits are the shared policy's:
//     resty on its own repeats every method and leaks the body of each response
//     that it tries again.
package resty

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"

	"gatebench/clients"
)

// New builds the client.
func New(s clients.Settings) (clients.Client, error) {
	shipped := resty.New().GetClient().Transport.(*http.Transport)
	t, err := clients.NewTransport(s, shipped)
	if err != nil {
		return nil, err
	}
	c := &client{
		exchanges: clients.NewExchanges(s),
		transport: t,
		upstream:  s.Upstream.Scheme + "://" + s.Upstream.Host,
	}
	c.resty = resty.NewWithClient(&http.Client{Transport: c.exchanges.Tries(t)}).
		SetLogger(silence{}).
		SetDoNotParseResponse(true).
		SetPreRequestHook(fill).
		SetRetryCount(c.exchanges.Policy().MaxAttempts() - 1).
		SetRetryWaitTime(0).
		SetRetryMaxWaitTime(s.Retry.Backoff.Max).
		SetRetryAfter(wait).
		AddRetryCondition(again)
	return c, nil
}

type client struct {
	exchanges *clients.Exchanges
	transport *http.Transport
	resty     *resty.Client
	upstream  string // for resty to parse; the hook puts the real URL in place
	closed    atomic.Bool
}

func (c *client) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	if c.closed.Load() {
		return nil, &clients.Error{Kind: clients.Dial, Err: clients.ErrClosed}
	}
	x, err := c.exchanges.Begin(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, err := c.resty.R().SetContext(x).Execute(req.Method, c.upstream)
	return x.Answer(raw(resp), err) //nolint:bodyclose // the Response that Answer makes closes it
}

func (c *client) Close() error {
	c.closed.Store(true)
	c.transport.CloseIdleConnections()
	return nil
}

// raw is nil where resty has no response or failed before there was one.
func raw(resp *resty.Response) *http.Response {
	if resp == nil {
		return nil
	}
	return resp.RawResponse
}

// fill runs after all of resty's middlewares, once per attempt.
func fill(_ *resty.Client, r *http.Request) error {
	clients.ExchangeOf(r.Context()).Fill(r)
	return nil
}

// again is asked after each attempt, the last one included. resp is nil if resty
// failed before it sent anything.
func again(resp *resty.Response, err error) bool {
	return resp != nil && clients.ExchangeOf(resp.Request.Context()).Again(resp.RawResponse, err)
}

// wait is asked after again has said yes. resty takes 0 for a wish to use a backoff
// of its own, hence the nanosecond.
func wait(_ *resty.Client, resp *resty.Response) (time.Duration, error) {
	d := clients.ExchangeOf(resp.Request.Context()).Wait(resp.RawResponse)
	return max(d, time.Nanosecond), nil
}

// silence is a logger: resty writes each failed attempt to standard error, under
// a lock.
type silence struct{}

func (silence) Errorf(string, ...any) {}
func (silence) Warnf(string, ...any)  {}
func (silence) Debugf(string, ...any) {}

// Deviations says that there are none.
func Deviations() []clients.Deviation { return nil }
