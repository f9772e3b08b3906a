package clients

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A RetryPolicy decides when one logical request becomes several attempts. It is
// the same object for every client: a library with a retry mechanism of its own
// asks it (Begin, Again, Wait), a library without one is driven by [RetryPolicy.Do].
// So attempts, waits and budget are equal, and only the mechanism differs.
//
// It is safe for concurrent use.
type RetryPolicy struct {
	maxAttempts int
	on          retryOn
	backoff     Backoff
	budget      *budget
	anyMethod   bool
}

// NewRetryPolicy builds the policy from validated settings.
func NewRetryPolicy(r Retry) *RetryPolicy {
	return &RetryPolicy{
		maxAttempts: max(r.MaxAttempts, 1),
		on:          newRetryOn(r.RetryOn),
		backoff:     r.Backoff,
		budget:      &budget{share: float64(r.Budget)},
		anyMethod:   r.NonIdempotent,
	}
}

// MaxAttempts is how often a request may go on the wire, the first try included.
func (p *RetryPolicy) MaxAttempts() int { return p.maxAttempts }

// Enabled reports whether anything is ever tried again.
func (p *RetryPolicy) Enabled() bool { return p.maxAttempts > 1 }

// Replayable reports whether req may be sent twice: its method is idempotent (RFC
// 9110, section 9.2.2) or the policy takes any, and it has no body. A body streams
// through and is gone after the first attempt; sending an empty one in its place is
// worse than any error.
func (p *RetryPolicy) Replayable(req *Request) bool {
	return req.Body == nil && (p.anyMethod || Idempotent(req.Method))
}

// Idempotent reports whether a request with that method may be repeated without
// asking (RFC 9110, section 9.2.2). Method names are case-sensitive.
func Idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

// Begin counts a logical request towards the retry budget. Call it once per
// request, whether or not it is replayable.
func (p *RetryPolicy) Begin() {
	if p.Enabled() {
		p.budget.request()
	}
}

// Again reports whether the attempt that was number tried (from 1) and ended with
// status, or with err if that is not nil, is followed by another. A true answer
// has taken one retry from the budget, so ask once per attempt, and act on it.
func (p *RetryPolicy) Again(req *Request, tried, status int, err error) bool {
	return tried < p.maxAttempts && p.Replayable(req) && p.on.covers(status, err) && p.budget.retry()
}

// Wait is how long to wait between the attempt that was number tried (from 1) and
// the next. retryAfter is the value of the response's Retry-After field, "" if
// there is none.
//
// Full jitter over base·2^(tried-1), at most backoff.max (AWS Architecture Blog,
// "Exponential Backoff And Jitter"). A Retry-After of either form (RFC 9110,
// section 10.2.3) takes its place, under the same cap: upstream must not be able
// to park a request for a day. A malformed one is ignored.
func (p *RetryPolicy) Wait(tried int, retryAfter string) time.Duration {
	if d, ok := parseRetryAfter(retryAfter, time.Now()); ok {
		return min(d, p.backoff.Max)
	}
	ceiling := p.backoff.Base
	for range tried - 1 {
		if ceiling >= p.backoff.Max {
			break
		}
		ceiling *= 2
	}
	ceiling = min(ceiling, p.backoff.Max)
	if ceiling <= 0 {
		return 0
	}
	return rand.N(ceiling + 1)
}

// maxRetryAfter keeps the conversion to a Duration from overflowing. It is far
// beyond any backoff.max.
const maxRetryAfter = 365 * 24 * time.Hour

func parseRetryAfter(v string, now time.Time) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(v, 10, 64); err == nil {
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// An Attempt puts req on the wire once.
type Attempt func(ctx context.Context, req *Request) (*Response, error)

// Do is the retry loop for libraries that have none of their own. It returns the
// last attempt's response or error, whatever its status: a 503 after the retries
// ran out is a response. Attempts is set on either. Do calls Begin.
func (p *RetryPolicy) Do(ctx context.Context, req *Request, attempt Attempt) (*Response, error) {
	p.Begin()
	return p.loop(ctx, req, attempt)
}

func (p *RetryPolicy) loop(ctx context.Context, req *Request, attempt Attempt) (*Response, error) {
	for tried := 1; ; tried++ {
		resp, err := attempt(ctx, req)
		if !p.Again(req, tried, statusOf(resp), err) {
			return counted(resp, err, tried)
		}
		wait := p.Wait(tried, retryAfterOf(resp))
		if resp != nil {
			discard(resp)
		}
		if err := sleep(ctx, wait); err != nil {
			return counted(nil, err, tried)
		}
	}
}

func statusOf(resp *Response) int {
	if resp == nil {
		return 0
	}
	return resp.Status
}

func retryAfterOf(resp *Response) string {
	if resp == nil {
		return ""
	}
	return resp.Fields.Get("Retry-After")
}

func counted(resp *Response, err error, attempts int) (*Response, error) {
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Kind: Protocol, Err: err}
		}
		return nil, &Error{Kind: e.Kind, Err: e.Err, Attempts: AttemptsOnWire(e, attempts)}
	}
	resp.Attempts = attempts
	return resp, nil
}

// AttemptsOnWire is how many of tried attempts, the last of which ended with err,
// count as [Error.Attempts]: one that found no place in the pool has not even
// dialed.
func AttemptsOnWire(err *Error, tried int) int {
	if err.Kind == PoolExhausted {
		return tried - 1
	}
	return tried
}

// DrainLimit is how much of a response that is not wanted any more is read, in
// bytes, so that its connection can be used again. A longer one costs its
// connection: reading on would cost more than a dial.
const DrainLimit = 64 << 10

// A Drainer is a [Response.Body] that knows how to read its rest away in bounded
// time. Without it the body's own timeouts bound the read.
type Drainer interface{ Drain() }

// discard ends a response that will be tried again.
func discard(resp *Response) {
	if d, ok := resp.Body.(Drainer); ok {
		d.Drain()
	} else if resp.ContentLength <= DrainLimit {
		_, _ = io.CopyN(io.Discard, resp.Body, DrainLimit)
	}
	resp.End(nil)
}

// sleep waits for d or until ctx ends, whose reason it returns.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return contextError(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// contextError says why ctx ended, nil if it has not: the [*Error] that it was
// canceled with, a timeout if its deadline passed, or else that downstream went
// away.
func contextError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Kind: TimeoutHeader, Err: cause}
	}
	return &Error{Kind: Canceled, Err: cause}
}

// retryOn is the set of outcomes that retry.retry_on lists.
type retryOn struct{ connect, reset, timeout, serverError, tooManyRequests bool }

func newRetryOn(words []string) (on retryOn) {
	for _, w := range words {
		switch w {
		case "connect":
			on.connect = true
		case "reset":
			on.reset = true
		case "timeout":
			on.timeout = true
		case "5xx":
			on.serverError = true
		case "429":
			on.tooManyRequests = true
		}
	}
	return on
}

func (on retryOn) covers(status int, err error) bool {
	if err == nil {
		return on.serverError && status >= 500 && status <= 599 ||
			on.tooManyRequests && status == http.StatusTooManyRequests
	}
	switch KindOf(err) {
	case Dial, TimeoutConnect:
		return on.connect
	case Reset:
		return on.reset
	case TimeoutHeader:
		return on.timeout
	}
	return false
}
