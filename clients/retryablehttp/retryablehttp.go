// Package retryablehttp is the client that sends each request through HashiCorp's
// go-retryablehttp: its loop around an http.Client.
//
// How it differs from go-retryablehttp used plainly:
//
//   - The loop is the library's, but whether and when to try again is the shared
//     policy's. On its own it repeats every method, a POST too, waits as long as
//     any Retry-After says, and turns a 5xx into an error even without retries.
//   - The request is wrapped without a body of the library's, so nothing is
//     buffered. A request with a body is never repeated.
//   - A failed request does not close everybody's idle connections: the transport
//     beneath does not let the library see how.
//   - No redirect is followed and nothing is logged.
package retryablehttp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"gatebench/clients"
)

// New builds the client.
func New(s clients.Settings) (clients.Client, error) {
	shipped := retryablehttp.NewClient().HTTPClient.Transport.(*http.Transport)
	t, err := clients.NewTransport(s, shipped)
	if err != nil {
		return nil, err
	}
	c := &client{exchanges: clients.NewExchanges(s), transport: t}
	c.retryable = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: c.exchanges.Tries(t)},
		Logger:       nil,
		RetryMax:     c.exchanges.Policy().MaxAttempts() - 1,
		CheckRetry:   again,
		Backoff:      c.wait,
		ErrorHandler: plainly,
	}
	return c, nil
}

type client struct {
	exchanges *clients.Exchanges
	transport *http.Transport
	retryable *retryablehttp.Client
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
	return x.Answer(c.retryable.Do(&retryablehttp.Request{Request: x.NewRequest()})) //nolint:bodyclose // the Response that Answer makes closes it
}

func (c *client) Close() error {
	c.closed.Store(true)
	c.transport.CloseIdleConnections()
	return nil
}

// again is asked after each attempt, the last one included. An error in its answer
// would take the response's place.
func again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	return clients.ExchangeOf(ctx).Again(resp, err), nil
}

// wait is asked after again has said yes, with tried from 0; after an error, resp
// is nil.
func (c *client) wait(_, _ time.Duration, tried int, resp *http.Response) time.Duration {
	retryAfter := ""
	if resp != nil {
		retryAfter = resp.Header.Get("Retry-After")
	}
	return c.exchanges.Policy().Wait(tried+1, retryAfter)
}

// plainly takes the place of a handler that would wrap the last error in one that
// quotes the URL. Having a response too, which the policy rules out, it would have
// to let go of one of them.
func plainly(_ *http.Response, err error, _ int) (*http.Response, error) {
	return nil, err
}

// Deviations says that there are none.
func Deviations() []clients.Deviation { return nil }
