package wire

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Connections to upstream.
func poolCases() []testCase {
	return []testCase{
		{name: "few-connections", rule: "many callers take no more connections than pool.max_conns, and keep them, after errors with bodies too",
			source: "PL02, N3, N4, R11, H4, H12, caddyserver/caddy#938", run: fewConnections},
		{name: "failures-keep-pool", rule: "one caller's failure or abort costs no other connection", source: "H3, hashicorp/go-retryablehttp#237", run: failuresKeepPool},
		{name: "closed-idle-get", rule: "an upstream that closes idle connections costs no GET a 502", source: "PL01, N6, F3, golang/go#19943, caddyserver/caddy#6452", run: closedIdleGet},
		{name: "closing-on-post", rule: "a POST that meets a closing connection is sent at most once, with an Idempotency-Key too: the policy decides, not a header",
			source: "RB01, N6, H1, F3, hop policy: duplicates", run: closingOnPost},
		{name: "pool-exhausted", rule: "without a free connection a request waits for pool.pending_timeout, then 503, pool_exhausted; with the queue full at once",
			source: "N7, F8, S21", run: poolExhausted},
		{name: "keep-alive-off", rule: "pool.keep_alive: false is a connection a request, announced", source: "N24", run: keepAliveOff},
	}
}

func fewConnections(c *check) {
	const callers, rounds, conns = 16, 8, 4
	up := c.answer(func(m *message) string {
		if m.target() == "/500" {
			return reply("500 Broken", strings.Repeat("e", 4<<10))
		}
		return ok("-")
	})
	gw := c.gateway(up, fmt.Sprintf("pool: {max_conns: %d, pending_timeout: 10s}", conns), "circuit_breaker: {enabled: false}")
	for _, target := range []string{"/200", "/500"} {
		var all sync.WaitGroup
		for range callers {
			d := c.dial(gw)
			all.Go(func() {
				for range rounds {
					d.send(get(target))
					m, err := d.tryHead()
					if err != nil {
						c.errorf("downstream: %v", err)
						return
					}
					if d.body(m, "GET"); m.Err != nil || m.word(1) != target[1:] {
						c.errorf("%s is answered with %q, %v", target, m.Start, m.Err)
					}
				}
			})
		}
		all.Wait()
	}
	// Not exactly conns: a connection whose fate is not clear in time is given up.
	if n := up.connections(); n > 2*conns {
		c.errorf("%d requests took %d connections, want about %d", 2*callers*rounds, n, conns)
	}
}

func failuresKeepPool(c *check) {
	const n = 4
	hold := newHold(n)
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			switch m.target() {
			case "/hold":
				hold.wait(p.u.done)
				p.send(ok("-"))
			case "/reset":
				return
			case "/begin":
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 5000))
				p.drain()
				return
			}
		}
	})
	gw := c.gateway(up, "circuit_breaker: {enabled: false}")
	warm := func() {
		var ds []*caller
		for range n {
			d := c.dial(gw)
			d.send(get("/hold"))
			ds = append(ds, d)
		}
		for _, d := range ds {
			c.whole(d.response("GET"), 200, "-")
		}
	}
	warm()
	before := up.connections()
	// Each costs its own connection and no other. (A GET that meets a reset is
	// tried on another connection, as it may have met a stale one.)
	c.problem(c.ask(gw, post("/reset", "-")), 502, "reset")
	d := c.dial(gw)
	d.send(get("/begin"))
	d.head()
	_ = d.Close()
	gw.counted(inFlight, 0)
	warm()
	if more := up.connections() - before; more > 2 {
		c.errorf("after one failure and one abort %d of %d connections were opened anew", more, n)
	}
}

// A hold lets go of those who wait once there are n.
type hold struct {
	mu      sync.Mutex
	n, here int
	open    chan struct{}
}

func newHold(n int) *hold { return &hold{n: n, open: make(chan struct{})} }

func (h *hold) wait(done <-chan struct{}) {
	h.mu.Lock()
	h.here++
	gate := h.open
	if h.here == h.n {
		close(h.open)
		h.here, h.open = 0, make(chan struct{})
	}
	h.mu.Unlock()
	select {
	case <-gate:
	case <-done:
	}
}

// pause waits for d, or until the case is over.
func pause(done <-chan struct{}, d time.Duration) {
	select {
	case <-time.After(d):
	case <-done:
	}
}

func closedIdleGet(c *check) {
	const idle = 20 * time.Millisecond
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			p.send(ok(m.target()))
			_ = p.SetReadDeadline(time.Now().Add(idle))
			if _, err := p.br.Peek(1); err != nil {
				return // without notice, and perhaps just as a request comes
			}
			_ = p.SetReadDeadline(time.Time{})
		}
	})
	gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1}")
	d := c.dial(gw)
	for i := range 40 {
		target := fmt.Sprint("/", i)
		c.whole(d.ask(get(target)), 200, target)
		time.Sleep(idle - 5*time.Millisecond + time.Duration(i%10)*time.Millisecond)
	}
	gw.breaker("closed")
}

func closingOnPost(c *check) {
	for _, x := range []struct {
		req  string
		keys []string
	}{
		{post("/second", "hello"), nil},
		{request("POST", "/second", "Content-Length: 0"), nil},
		{request("POST", "/second", "Content-Length: 0", "Idempotency-Key: k"), nil},
		{request("POST", "/second", "Content-Length: 0", "X-Idempotency-Key: k"), nil},
		{request("POST", "/second", "Content-Length: 0", "Idempotency-Key: k"), []string{`retry: {max_attempts: 3, retry_on: [connect, reset, timeout, "5xx"], budget: 100%}`}},
		{request("PATCH", "/second", "Content-Length: 0"), nil},
	} {
		up := c.serve(func(p *peer) {
			for {
				m, err := p.request()
				if err != nil || m.target() == "/second" {
					return
				}
				p.send(ok("-"))
			}
		})
		gw := c.gateway(up, x.keys...)
		c.whole(c.ask(gw, get("/first")), 200, "-")
		c.problem(c.ask(gw, x.req), 502, "reset")
		if n := up.to("/second"); n != 1 {
			c.errorf("%q was sent %d times", x.req, n)
		}
	}
}

func poolExhausted(c *check) {
	up := c.serve(func(p *peer) {
		if m, err := p.request(); err == nil {
			if m.target() == "/hold" {
				p.drain()
			}
			p.send(ok("-", "Connection: close"))
		}
	})
	gw := c.gateway(up, "pool: {max_conns: 1, max_pending: 1, pending_timeout: "+roomy.String()+"}", "circuit_breaker: {minimum_calls: 1}")
	holder := c.dial(gw)
	holder.send(get("/hold"))
	c.eventually("the only connection is in use", func() bool { return up.to("/hold") == 1 })
	waiter := c.dial(gw)
	begun := time.Now()
	waiter.send(get("/"))
	gw.counted("gatebench_gateway_pool_pending", 1)
	c.problem(c.ask(gw, get("/")), 503, "pool_exhausted")
	c.problem(waiter.response("GET"), 503, "pool_exhausted")
	if waited := time.Since(begun); waited < roomy {
		c.errorf("who may wait for %v was sent away after %v", roomy, waited)
	}
	gw.breaker("closed")
	equal(c, "requests that arrived", len(up.requests()), 1)
}

func keepAliveOff(c *check) {
	up := c.echo()
	gw := c.gateway(up, "pool: {keep_alive: false}")
	for range 3 {
		c.whole(c.ask(gw, get("/")), 200, "/")
		equal(c, "Connection upstream", up.last().Fields.Get("Connection"), "close")
	}
	equal(c, "connections", up.connections(), 3)
}
