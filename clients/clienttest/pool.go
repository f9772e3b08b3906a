package clienttest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gatebench/clients"
)

// Connections: how many, how long, and whose.
func poolCases() []testCase {
	return []testCase{
		rule("reuse", "a connection is used again once the body was read whole, after an error status too; End gives it back at once (caddyserver/caddy#938)", reuse),
		rule("no-reuse-half-read", "a connection whose body was not read whole is closed by End, not used again (valyala/fasthttp#1743)", noReuseHalfRead),
		rule("no-poison", "what upstream sends late, after a timeout, is never another's answer (valyala/fasthttp#1743)", noPoison),
		rule("unasked-bytes", "bytes that come together with an answer, behind its end, are never another's answer (RFC 9112, section 9.2)", unaskedBytes),
		rule("unasked-bytes-idle", "bytes that come on an idle connection are never the next answer (RFC 9112, section 9.2)", unaskedBytesIdle),
		rule("connection-close", "a connection that upstream announces to close is not used again (RFC 9112, section 9.6)", connectionClose),
		rule("keep-alive-off", "pool.keep_alive: false opens a connection per request and says Connection: close", keepAliveOff),
		rule("max-conns", "never more than pool.max_conns connections at once; who finds none free waits, or fails with kind pool_exhausted and no attempt", maxConns),
		rule("idle-timeout", "an idle connection is closed after pool.idle_timeout, not before", idleTimeout),
		rule("pool-library", "pool.policy: library leaves the pool as the library ships it: many users at once are served", poolLibrary),
		rule("stale-get", "a GET survives that upstream closes an idle connection just as it is sent (golang/go#19943, caddyserver/caddy#6452)", staleGet),
		rule("closed-idle", "that upstream closed an idle connection is noticed before a POST is sent on it", closedIdle),
		rule("stale-post", "a POST, and whatever has a body, is sent at most once, whatever happens to its connection (go-resty/resty#777)", stalePost),
	}
}

func reuse(c *check) {
	u := c.answer(func(h *heard) string {
		if h.Target == "/error" {
			return reply("500 Internal Server Error", strings.Repeat("e", 4<<10))
		}
		return ok(h.Target)
	})
	cl, dialer := c.dialingClient(u, func(s *clients.Settings) { s.Pool.MaxConns = 1 })
	for i := range 20 {
		target := fmt.Sprintf("/%d", i)
		c.ok(cl, get(target), target)
		c.ok(cl, post(target, "body"), target)
		if status, _ := c.exchange(cl, get("/error")); status != 500 {
			c.errorf("got %d, want 500", status)
		}
	}
	if n := dialer.Opened(); n != 1 || u.connections() != 1 {
		c.errorf("%d connections opened and %d accepted, want 1", n, u.connections())
	}
	if n := dialer.Open(); n != 1 {
		c.errorf("%d connections open, want 1", n)
	}
}

func noReuseHalfRead(c *check) {
	u := c.answer(func(*heard) string { return ok(strings.Repeat("x", 1<<20)) })
	cl, dialer := c.dialingClient(u, func(s *clients.Settings) { s.Pool.MaxConns = 1 })
	for range 3 {
		resp := c.do(cl, get("/"))
		if _, err := io.CopyN(io.Discard, resp.Body, 100); err != nil {
			c.errorf("read: %v", err)
		}
		resp.End(&clients.Error{Kind: clients.Canceled})
		if !u.closedButFor(0) {
			return
		}
	}
	if n := dialer.Opened(); n != 3 {
		c.errorf("%d connections, want 3", n)
	}
}

func noPoison(c *check) {
	ended := make(chan struct{})
	u := c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			if h.Target == "/stall" {
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n1234567890")
				<-ended
				p.send("1234567890" + ok("poison"))
				continue
			}
			p.send(ok(h.Target))
		}
	})
	closing := sync.OnceFunc(func() { close(ended) })
	c.onEnd(closing)
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.BodyIdle = 4 * limit }))
	c.bodyFails(c.do(cl, get("/stall")), clients.TimeoutBody)
	closing()
	for i := range 50 {
		target := fmt.Sprintf("/%d", i)
		c.ok(cl, get(target), target)
	}
}

func unaskedBytes(c *check) {
	u := c.answer(func(h *heard) string {
		if h.Target == "/double" {
			return ok(h.Target) + reply("200 OK", "poison")
		}
		return ok(h.Target)
	})
	cl := c.client(u)
	for i := range 5 {
		c.ok(cl, get("/double"), "/double")
		target := fmt.Sprintf("/%d", i)
		c.ok(cl, get(target), target)
	}
}

func unaskedBytesIdle(c *check) {
	idle, sent, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	u := c.serve(func(p *peer) {
		if h, err := p.request(); err == nil {
			p.send(ok(h.Target))
		}
		if p.n == 1 {
			select {
			case <-idle:
			case <-over:
				return
			}
			p.send(reply("200 OK", "poison"))
			close(sent)
		}
		p.awaitClose()
	})
	c.onEnd(sync.OnceFunc(func() { close(over) }))
	cl, dialer := c.dialingClient(u)
	c.ok(cl, get("/1"), "/1")
	close(idle)
	select {
	case <-sent:
	case <-c.ctx.Done(): // it never came to upstream
		return
	}
	c.soon("the connection is closed by the client", func() bool { return dialer.Open() == 0 })
	c.ok(cl, get("/2"), "/2")
}

func connectionClose(c *check) {
	u := c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			p.send(reply("200 OK", h.Target, "Connection: close")) // and does not close: the client must
		}
	})
	cl, dialer := c.dialingClient(u)
	for _, target := range []string{"/1", "/2", "/3"} {
		c.ok(cl, get(target), target)
		if !u.closedButFor(0) {
			return
		}
	}
	if n := dialer.Opened(); n != 3 {
		c.errorf("%d connections, want 3", n)
	}
}

func keepAliveOff(c *check) {
	u := c.always(ok("-"))
	cl, dialer := c.dialingClient(u, func(s *clients.Settings) { s.Pool.KeepAlive = false })
	for range 3 {
		c.ok(cl, get("/"), "-")
		c.ok(cl, post("/", "body"), "-")
		if got := u.last().Fields.Get("Connection"); !strings.EqualFold(got, "close") {
			c.errorf("Connection is %q, want close", got)
		}
		if !u.closedButFor(0) {
			return
		}
	}
	if n := dialer.Opened(); n != 6 {
		c.errorf("%d connections for 6 requests", n)
	}
}

func maxConns(c *check) {
	const most, users = 2, 8
	u := c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			p.trickle(ok(h.Target), limit/5)
		}
	})
	cl := c.client(u, func(s *clients.Settings) { s.Pool.MaxConns = most })
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() {
			defer c.recover()
			resp, err := cl.Do(c.ctx, get("/"))
			if err != nil {
				if e := c.kind(err, clients.PoolExhausted); e != nil && e.Attempts != 0 {
					c.errorf("%d attempts of a request that found no connection, want 0", e.Attempts)
				}
				return
			}
			c.whole(resp)
		})
	}
	wg.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.most > most {
		c.errorf("%d connections at once, want at most %d", u.most, most)
	}
	if len(u.heard) < most {
		c.errorf("%d requests arrived, want at least %d", len(u.heard), most)
	}
}

func idleTimeout(c *check) {
	u := c.always(ok("-"))
	cl, dialer := c.dialingClient(u, func(s *clients.Settings) { s.Pool.IdleTimeout = time.Second })
	for range 12 { // longer than a second in all, but never idle for one
		c.ok(cl, get("/"), "-")
		<-time.After(time.Second / 10)
	}
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections while in use, want 1", n)
	}
	u.closedButFor(0)
	if n := dialer.Open(); n != 0 {
		c.errorf("%d connections counted as open, want 0", n)
	}
	c.ok(cl, get("/"), "-")
}

func poolLibrary(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u, func(s *clients.Settings) {
		s.Pool = clients.DefaultSettings().Pool
		s.Pool.Policy = clients.PoolLibrary
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			defer c.recover()
			for range 3 {
				resp, err := cl.Do(c.ctx, get("/"))
				if err != nil {
					c.errorf("%v", err)
					return
				}
				c.whole(resp)
			}
		})
	}
	wg.Wait()
}

// stale is an upstream that answers one request a connection and closes when
// the next begins to arrive; whether that is stored, it cannot say.
func (c *check) stale() *upstream {
	return c.serve(func(p *peer) {
		h, err := p.request()
		if err != nil {
			return
		}
		p.send(ok(h.Target))
		_, _ = p.head()
	})
}

func staleGet(c *check) {
	u := c.stale()
	cl := c.client(u)
	for i := range 10 {
		target := fmt.Sprintf("/%d", i)
		c.ok(cl, get(target), target)
	}
	idle := c.serve(func(p *peer) { // closes at once, while the connection is idle
		if h, err := p.request(); err == nil {
			p.send(ok(h.Target))
		}
	})
	cl = c.client(idle)
	for i := range 10 {
		target := fmt.Sprintf("/%d", i)
		c.ok(cl, get(target), target)
		idle.closedButFor(0)
	}
}

func closedIdle(c *check) {
	u := c.serve(func(p *peer) {
		if h, err := p.request(); err == nil {
			p.send(ok(h.Target))
		}
	})
	cl, dialer := c.dialingClient(u)
	for _, target := range []string{"/1", "/2", "/3"} {
		c.ok(cl, post(target, "body"), target)
		if !c.soon("the client has noticed that upstream closed", func() bool { return dialer.Open() == 0 }) {
			return
		}
	}
}

func stalePost(c *check) {
	u := c.stale()
	cl := c.client(u, retrying(3, "connect", "reset", "5xx"))
	c.ok(cl, get("/"), "/")
	for i := range 8 {
		target := fmt.Sprintf("/%d", i)
		var req *clients.Request
		switch i % 4 {
		case 0:
			req = post(target, "body")
		case 1:
			req = bodyless("POST", target)
		case 2:
			req = withBody("PUT", target, "body")
		case 3:
			req = withBody("GET", target, "body")
		}
		resp, err := cl.Do(c.ctx, req)
		if err == nil {
			c.whole(resp)
		} else {
			c.kind(err, clients.Reset)
		}
		arrivals := 0
		for _, h := range u.requests() {
			if h.Target == target {
				arrivals++
			}
		}
		if arrivals > 1 {
			c.errorf("%s arrived %d times", req.Method, arrivals)
		}
	}
}
