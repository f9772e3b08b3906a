package clients

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
)

// RoundTripper makes a client of any [http.RoundTripper]: the plain way to bring
// one's own, and what clients/nethttp is. Retries are the shared loop's.
//
// rt must be one that neither follows redirects nor decodes bodies; [NewTransport]
// builds such a one. It is timed through [net/http/httptrace]: where it does not
// call WroteRequest, timeouts.response_header does not apply, and
// timeouts.request alone bounds the wait.
//
// What differs from calling rt plainly: the target goes out byte for byte, no field
// is invented, the request body is let go when the exchange ends, every wait is
// bounded and every error has a [Kind].
func RoundTripper(rt http.RoundTripper, s Settings) Client {
	return &roundTripper{exchanges: NewExchanges(s), next: rt}
}

type roundTripper struct {
	exchanges *Exchanges
	next      http.RoundTripper
	closed    atomic.Bool
}

// ErrClosed is the reason of requests after Close.
var ErrClosed = errors.New("client is closed")

func (c *roundTripper) Do(ctx context.Context, req *Request) (*Response, error) {
	if c.closed.Load() {
		return nil, &Error{Kind: Dial, Err: ErrClosed}
	}
	x, err := c.exchanges.Begin(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, err := c.exchanges.policy.loop(x, req, func(context.Context, *Request) (*Response, error) {
		resp, err := x.try(c.next, x.NewRequest()) //nolint:bodyclose // the Response made of it closes it
		if err != nil {
			return nil, err
		}
		return x.response(resp), nil
	})
	return x.finish(resp, err)
}

func (c *roundTripper) Close() error {
	c.closed.Store(true)
	if t, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}
