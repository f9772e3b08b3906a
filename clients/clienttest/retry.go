package clienttest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gatebench/clients"
)

// What is tried again, when, and how often.
func retryCases() []testCase {
	return []testCase{
		rule("retry-off", "retry.max_attempts: 1 sends everything once, and a 5xx is an answer like any other (hashicorp/go-retryablehttp#156)", retryOff),
		rule("retry-5xx", "retry_on 5xx tries an idempotent request again until it succeeds, and counts", retryStatus("5xx", 503)),
		rule("retry-429", "retry_on 429 tries an idempotent request again until it succeeds, and counts", retryStatus("429", 429)),
		rule("retry-connect", "retry_on connect tries again when no connection came about, and counts", retryConnect),
		rule("retry-reset", "retry_on reset tries again when the connection ended before the head", retryReset),
		rule("retry-timeout", "retry_on timeout tries again after retry.per_try_timeout", retryTimeout),
		rule("retry-only-listed", "an outcome that retry_on does not list is not tried again", retryOnlyListed),
		rule("retry-exhausted", "when attempts run out the last answer arrives, with its status, fields and body", retryExhausted),
		rule("retry-methods", "GET, HEAD, OPTIONS, PUT and DELETE without a body are tried again, POST and PATCH are not (RFC 9110, section 9.2.2; go-resty/resty#777)", retryMethods),
		rule("retry-any-method", "non_idempotent retries a POST without a body, and never one with a body", retryAnyMethod),
		rule("retry-no-body", "a request with a body is sent once: its body is gone (go-resty/resty#1156)", retryNoBody),
		rule("retry-connections", "a retried answer gives its connection back", retryConnections),
		rule("retry-stalled", "a retried answer whose body does not come is given up, not waited for", retryStalled),
		rule("retry-then-slow", "what bounded the rest of a retried answer does not strike the body of the next", retryThenSlow),
		rule("retry-after", "Retry-After is waited for", retryAfter),
		rule("retry-after-capped", "Retry-After never waits beyond backoff.max, and one that makes no sense is ignored (hashicorp/go-retryablehttp#247)", retryAfterCapped),
		rule("retry-within-request-timeout", "timeouts.request bounds attempts and waits together", retryWithinRequestTimeout),
		rule("retry-canceled", "cancellation ends the wait for the next attempt", retryCanceled),
		rule("retry-budget", "retry.budget bounds retries to a share of the requests", retryBudget),
	}
}

func retrying(attempts int, on ...string) func(*clients.Settings) {
	return func(s *clients.Settings) {
		s.Retry.MaxAttempts, s.Retry.RetryOn = attempts, on
		s.Retry.Backoff = clients.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}
		s.Retry.Budget = 1
	}
}

func status(code int, fields ...string) string {
	return reply(strconv.Itoa(code)+" "+http.StatusText(code), "answer "+strconv.Itoa(code), fields...)
}

// failing gives answer for the first n requests, then 200.
func (c *check) failing(n int, answer string) *upstream {
	var asked atomic.Int64
	return c.answer(func(*heard) string {
		if asked.Add(1) <= int64(n) {
			return answer
		}
		return ok("-")
	})
}

// arrived wants n requests to have arrived.
func (c *check) arrived(u *upstream, n int) {
	if got := len(u.requests()); got != n {
		c.errorf("%d requests arrived, want %d", got, n)
	}
}

func retryOff(c *check) {
	for _, code := range []int{429, 500, 503} {
		u := c.always(status(code, "Retry-After: 1", "X-Reason: busy"))
		cl := c.client(u, func(s *clients.Settings) {
			retrying(1, "5xx", "429", "connect", "reset", "timeout")(s)
		})
		resp := c.do(cl, get("/"))
		if resp.Attempts != 1 {
			c.errorf("%d attempts, want 1", resp.Attempts)
		}
		c.answered(resp, code)
		c.arrived(u, 1)
	}
}

// answered wants the answer of status with an X-Reason.
func (c *check) answered(resp *clients.Response, code int) {
	if resp.Status != code || resp.Fields.Get("X-Reason") != "busy" {
		c.errorf("got %d with X-Reason %q, want %d with busy", resp.Status, resp.Fields.Get("X-Reason"), code)
	}
	if body := c.whole(resp); body != "answer "+strconv.Itoa(code) {
		c.errorf("%d: body %q", code, body)
	}
}

func retryStatus(on string, code int) func(*check) {
	return func(c *check) {
		u := c.failing(2, status(code))
		resp := c.do(c.client(u, retrying(3, on)), get("/"))
		if resp.Status != 200 || resp.Attempts != 3 {
			c.errorf("got %d after %d attempts, want 200 after 3", resp.Status, resp.Attempts)
		}
		c.whole(resp)
		c.arrived(u, 3)
	}
}

func retryConnect(c *check) {
	u := c.always(ok("-"))
	u.closeListener()
	cl, dialer := c.dialingClient(u, retrying(3, "connect"))
	e := c.fails(cl, get("/"), clients.Dial)
	if e != nil && e.Attempts != 3 {
		c.errorf("%d attempts, want 3", e.Attempts)
	}
	if n := dialer.Failed(); n != 3 {
		c.errorf("%d connections failed, want 3", n)
	}
}

func retryReset(c *check) {
	u := c.serve(func(p *peer) {
		if h, err := p.request(); err == nil && p.n == 3 {
			p.send(reply("200 OK", h.Target, "Connection: close"))
		}
	})
	resp := c.do(c.client(u, retrying(3, "reset")), get("/"))
	if resp.Attempts != 3 {
		c.errorf("%d attempts, want 3", resp.Attempts)
	}
	c.whole(resp)
	c.arrived(u, 3)
}

func retryTimeout(c *check) {
	u := c.serve(func(p *peer) {
		if h, err := p.request(); err == nil && p.n == 2 {
			p.send(ok(h.Target))
		}
		p.awaitClose()
	})
	cl := c.client(u, retrying(2, "timeout"), func(s *clients.Settings) { s.Retry.PerTryTimeout = 4 * limit })
	c.lasts(4*limit, func() { c.ok(cl, get("/"), "/") })
	c.arrived(u, 2)
}

func retryOnlyListed(c *check) {
	u := c.always(status(404))
	if status, _ := c.exchange(c.client(u, retrying(3, "5xx", "429", "connect", "reset", "timeout")), get("/")); status != 404 {
		c.errorf("got %d, want 404", status)
	}
	c.arrived(u, 1)

	u = c.always(status(503))
	if status, _ := c.exchange(c.client(u, retrying(3, "429", "connect", "reset", "timeout")), get("/")); status != 503 {
		c.errorf("got %d, want 503", status)
	}
	c.arrived(u, 1)

	u = c.serve(func(p *peer) { _, _ = p.request() })
	c.fails(c.client(u, retrying(3, "connect", "5xx", "timeout")), get("/"), clients.Reset)
	c.arrived(u, 1)

	u = c.serve(func(p *peer) {
		if _, err := p.request(); err == nil {
			p.send("nonsense\r\n\r\n")
		}
	})
	c.fails(c.client(u, retrying(3, "connect", "reset", "5xx", "429", "timeout")), get("/"), clients.Protocol)
	c.arrived(u, 1)
}

func retryExhausted(c *check) {
	u := c.always(status(503, "X-Reason: busy"))
	resp := c.do(c.client(u, retrying(3, "5xx")), get("/"))
	if resp.Attempts != 3 {
		c.errorf("%d attempts, want 3", resp.Attempts)
	}
	c.answered(resp, 503)
	c.arrived(u, 3)
}

func retryMethods(c *check) {
	for method, want := range map[string]int{
		"GET": 2, "HEAD": 2, "OPTIONS": 2, "PUT": 2, "DELETE": 2, "POST": 1, "PATCH": 1,
	} {
		u := c.always(status(503))
		resp := c.do(c.client(u, retrying(2, "5xx")), bodyless(method, "/"))
		c.whole(resp)
		if resp.Status != 503 || resp.Attempts != want || len(u.requests()) != want {
			c.errorf("%s: %d after %d attempts, %d arrived, want 503 and %d", method, resp.Status, resp.Attempts, len(u.requests()), want)
		}
	}
	u := c.serve(func(p *peer) { _, _ = p.request() })
	c.fails(c.client(u, retrying(3, "reset")), bodyless("POST", "/"), clients.Reset)
	c.arrived(u, 1)
}

func retryAnyMethod(c *check) {
	whole := func(s *clients.Settings) { s.Retry.NonIdempotent = true }
	for _, method := range []string{"POST", "PATCH", "GET"} {
		u := c.always(status(503))
		resp := c.do(c.client(u, retrying(3, "5xx"), whole), bodyless(method, "/"))
		c.whole(resp)
		if resp.Attempts != 3 || len(u.requests()) != 3 {
			c.errorf("%s: %d attempts, %d arrived, want 3", method, resp.Attempts, len(u.requests()))
		}
	}
	u := c.always(status(503, "X-Reason: busy"))
	c.answered(c.do(c.client(u, retrying(3, "5xx"), whole), withBody("POST", "/", "12345")), 503)
	c.arrived(u, 1)
}

func retryNoBody(c *check) {
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		u := c.always(status(503, "X-Reason: busy"))
		c.answered(c.do(c.client(u, retrying(3, "5xx")), withBody(method, "/", "12345")), 503)
		c.arrived(u, 1)
		if body := u.last().Body; body != "12345" {
			c.errorf("%s: body %q arrived", method, body)
		}
	}
}

func retryConnections(c *check) {
	u := c.always(reply("503 Busy", strings.Repeat("e", 8<<10)))
	cl, dialer := c.dialingClient(u, retrying(3, "5xx"))
	for range 10 {
		if status, _ := c.exchange(cl, get("/")); status != 503 {
			c.errorf("got %d, want 503", status)
		}
	}
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections, want 1", n)
	}
}

func retryStalled(c *check) {
	u := c.serve(func(p *peer) {
		switch _, err := p.request(); {
		case err != nil:
			return
		case p.n == 1:
			p.send("HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\n12345")
		case p.n == 2:
			p.send("HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("12345"))
		default:
			p.send(ok("-"))
		}
		p.awaitClose()
	})
	cl := c.client(u, retrying(3, "5xx"))
	c.returns("three attempts", func() { c.ok(cl, get("/"), "-") })
}

func retryThenSlow(c *check) {
	u := c.serve(func(p *peer) {
		for first := p.n == 1; ; first = false {
			if _, err := p.request(); err != nil {
				return
			}
			if first {
				p.send("HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\n")
				p.send("12345")
				continue
			}
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			p.trickle("12345", 2*limit)
		}
	})
	c.ok(c.client(u, retrying(2, "5xx")), get("/"), "12345")
}

func retryAfter(c *check) {
	u := c.failing(1, status(503, "Retry-After: 1"))
	cl := c.client(u, retrying(2, "5xx"), func(s *clients.Settings) { s.Retry.Backoff.Max = 5 * time.Second })
	c.lasts(time.Second, func() { c.ok(cl, get("/"), "-") })
}

func retryAfterCapped(c *check) {
	for _, value := range []string{"3600", "Fri, 01 Jan 2099 00:00:00 GMT", "-5", "abc", "99999999999999999999", ""} {
		u := c.failing(2, status(503, "Retry-After: "+value))
		cl := c.client(u, retrying(3, "5xx"), func(s *clients.Settings) { s.Retry.Backoff.Max = limit / 3 })
		c.returns("attempts under Retry-After: "+value, func() { c.ok(cl, get("/"), "-") })
		c.arrived(u, 3)
	}
}

func retryWithinRequestTimeout(c *check) {
	u := c.always(status(503, "Retry-After: 3600"))
	cl := c.client(u, retrying(10, "5xx"), func(s *clients.Settings) {
		s.Timeouts.Request = limit
		s.Retry.Backoff.Max = time.Minute
	})
	c.returns("a request that waits for its next attempt", func() {
		c.fails(cl, get("/"), clients.TimeoutHeader)
	})
	slow := c.serve(silent)
	cl = c.client(slow, retrying(10, "timeout"), func(s *clients.Settings) {
		s.Timeouts.Request, s.Retry.PerTryTimeout = 8*limit, limit
	})
	c.lasts(8*limit, func() { c.fails(cl, get("/"), clients.TimeoutHeader) })
	if n := len(slow.requests()); n < 2 || n > 9 {
		c.errorf("%d attempts of %v fitted into %v", n, limit, 8*limit)
	}
}

func retryCanceled(c *check) {
	u := c.always(status(503, "Retry-After: 3600"))
	cl := c.client(u, retrying(2, "5xx"), func(s *clients.Settings) { s.Retry.Backoff.Max = time.Hour })
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.returns("cancellation", func() {
		time.AfterFunc(limit, cancel)
		c.failsContext(ctx, cl, get("/"), clients.Canceled)
	})
	c.arrived(u, 1)
}

func retryBudget(c *check) {
	const requests = 100
	u := c.always(status(503))
	cl := c.client(u, retrying(5, "5xx"), func(s *clients.Settings) { s.Retry.Budget = 0.20 })
	for range requests {
		_, _ = c.exchange(cl, get("/"))
	}
	if n := len(u.requests()); n <= requests || n > requests*130/100 {
		c.errorf("%d requests made %d attempts, want some retries, about 20 %%", requests, n)
	}
	u = c.always(status(503))
	cl = c.client(u, retrying(5, "5xx"), func(s *clients.Settings) { s.Retry.Budget = 0 })
	for range 10 {
		_, _ = c.exchange(cl, get("/"))
	}
	c.arrived(u, 10)
}
