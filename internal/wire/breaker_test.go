package wire

import (
	"strings"
	"sync/atomic"
	"time"
)

// What the breaker makes of it, as the caller sees it.
func breakerCases() []testCase {
	return []testCase{
		{name: "breaker-opens", rule: "500s, refused connections and time-outs open the breaker at the configured count, 404s never", source: "RB06, G1, G16, sony/gobreaker#121", run: breakerOpens},
		{name: "breaker-open-answer", rule: "an open breaker answers 503, breaker_open, with Retry-After, and upstream hears nothing", source: "RB08, G13, S21", run: breakerOpenAnswer},
		{name: "breaker-open-expect", rule: "an open breaker answers before any 100 Continue", source: "S9", unless: []string{"continue-on-read"}, run: breakerOpenExpect},
		{name: "hangups-neutral", rule: "callers who hang up are no failures of upstream's", source: "RB05, G2, G5", run: hangupsNeutral},
		{name: "uploads-neutral", rule: "nor are uploads that callers break off or send malformed", source: "G2, G15", run: uploadsNeutral},
		{name: "half-open", rule: "half-open lets the configured probes through, rejects the rest at once, and closes on success", source: "RB07, G6, sony/gobreaker#30", run: halfOpen},
		{name: "lost-probe", rule: "a probe whose caller hangs up frees its place; a 404 closes the breaker", source: "RB07, G3, G4", run: lostProbe},
	}
}

func breakerOpens(c *check) {
	const n = 4
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			if m.target() == "/silent" {
				p.drain()
				return
			}
			p.send(reply(m.target()[1:]+" X", "said"))
		}
	})
	dead := c.nobody()
	for target, to := range map[string]*upstream{"/500": up, "/503": up, "/silent": up, "/refused": dead, "/404": up} {
		gw := c.gateway(to, "circuit_breaker: {minimum_calls: 4, open_for: 1m}", "timeouts: {response_header: "+roomy.String()+"}")
		for range n {
			m := c.ask(gw, get(target))
			if strings.Contains(m.Body, "breaker_open") {
				c.errorf("%s: open too early", target)
			}
			if (target == "/500" || target == "/404") && m.Body != "said" {
				c.errorf("%s: the caller gets %q, not upstream's words", target, m.Body)
			}
		}
		m := c.ask(gw, get(target))
		if open := strings.Contains(m.Body, "breaker_open"); open != (target != "/404") {
			c.errorf("after %d × %s the breaker is open: %v", n, target, open)
		}
	}
}

// opened is a gateway whose breaker one 500 has opened.
func (c *check) opened(up *upstream, keys ...string) *gateway {
	gw := c.gateway(up, keys...)
	equal(c, "status", c.ask(gw, get("/500")).status(), 500)
	gw.breaker("open")
	return gw
}

func breakerOpenAnswer(c *check) {
	up := c.always(reply("500 Broken", ""))
	gw := c.opened(up, "circuit_breaker: {minimum_calls: 1, open_for: 1m}")
	for _, req := range []string{get("/"), post("/", "hello")} {
		m := c.ask(gw, req)
		c.problem(m, 503, "breaker_open")
		if v := m.Fields.Get("Retry-After"); v != "60" && v != "59" {
			c.errorf("Retry-After %q, want about a minute", v)
		}
	}
	equal(c, "requests that arrived", len(up.requests()), 1)
	gw.counted(`gatebench_gateway_requests_total{code="503",reason="breaker_open"}`, 2)
}

func breakerOpenExpect(c *check) {
	gw := c.opened(c.always(reply("500 Broken", "")), "circuit_breaker: {minimum_calls: 1, open_for: 1m}")
	m := c.ask(gw, request("POST", "/", "Expect: 100-continue", "Content-Length: 1000000"))
	c.problem(m, 503, "breaker_open")
	equal(c, "1xx before the refusal", len(m.Interim), 0)
}

func hangupsNeutral(c *check) {
	release := make(chan struct{})
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			if m.target() == "/slow" {
				select {
				case <-release:
				case <-p.u.done:
				}
			}
			p.send(ok(m.target()))
		}
	})
	gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1, failure_rate: 1%}")
	const n = 10
	var ds []*caller
	for range n {
		d := c.dial(gw)
		d.send(get("/slow"))
		ds = append(ds, d)
	}
	c.eventually("all requests are upstream", func() bool { return up.to("/slow") == n })
	for _, d := range ds {
		_ = d.Close()
	}
	if !c.deviates("cancel-before-head") {
		gw.counted(`gatebench_gateway_requests_total{code="0",reason="canceled"}`, n)
	}
	close(release)
	gw.counted(inFlight, 0)
	for range n {
		c.whole(c.ask(gw, get("/after")), 200, "/after")
	}
	gw.breaker("closed")
}

func uploadsNeutral(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			p.send(ok(m.Body))
		}
	})
	gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1, failure_rate: 1%}", "limits: {request_body: 1MiB}", "timeouts: {body_idle: "+roomy.String()+"}")
	for _, begun := range []string{
		request("POST", "/", "Content-Length: 10") + "half",
		request("POST", "/", "Transfer-Encoding: chunked") + "5\r\nhel",
		request("POST", "/", "Transfer-Encoding: chunked") + "5\r\nhello\r\nzz\r\n",
		request("POST", "/", "Content-Length: 10000000"),
	} {
		d := c.dial(gw)
		d.send(begun)
		_ = d.Close()
		stalls := c.dial(gw)
		stalls.send(begun)
		if m, err := stalls.tryHead(); err == nil && m.status() < 400 {
			c.errorf("%q is answered with %q", begun, m.Start)
		}
	}
	gw.counted(inFlight, 0)
	c.whole(c.ask(gw, post("/", "fine")), 200, "fine")
	gw.breaker("closed")
	for _, m := range up.requests() {
		if m.Whole && m.Body != "fine" {
			c.errorf("upstream got a whole request with %q", m.Body)
		}
	}
}

func halfOpen(c *check) {
	const probes, burst = 2, 10
	release := make(chan struct{})
	up := c.answer(func(m *message) string {
		switch m.target() {
		case "/500":
			return reply("500 Broken", "")
		case "/probe":
			select {
			case <-release:
			case <-c.over:
			}
		}
		return ok(m.target())
	})
	gw := c.opened(up, "circuit_breaker: {minimum_calls: 1, open_for: "+short.String()+", half_open_calls: 2}")
	time.Sleep(short) // what open_for means; nothing can be seen before
	answers := make(chan *message, burst)
	for range burst {
		d := c.dial(gw)
		d.send(get("/probe"))
		c.running.Go(func() {
			m, err := d.tryHead()
			if err == nil {
				d.body(m, "GET")
			} else {
				m = &message{Start: err.Error()}
			}
			answers <- m
		})
	}
	for range burst - probes {
		c.problem(<-answers, 503, "breaker_open")
	}
	c.eventually("the probes are upstream", func() bool { return up.to("/probe") == probes })
	close(release)
	for range probes {
		c.whole(<-answers, 200, "/probe")
	}
	gw.breaker("closed")
	c.whole(c.ask(gw, get("/")), 200, "/")
}

func lostProbe(c *check) {
	var lost atomic.Bool
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			switch {
			case m.target() == "/500":
				p.send(reply("500 Broken", ""))
			case lost.Swap(true):
				p.send(reply("404 Not Found", "nothing"))
			default:
				p.drain() // the first probe gets no answer
				return
			}
		}
	})
	gw := c.opened(up, "circuit_breaker: {minimum_calls: 1, open_for: "+short.String()+", half_open_calls: 1}", "timeouts: {response_header: "+roomy.String()+"}")
	time.Sleep(short) // what open_for means
	d := c.dial(gw)
	d.send(get("/lost"))
	c.eventually("the probe is upstream", func() bool { return up.to("/lost") == 1 })
	c.problem(c.ask(gw, get("/too-many")), 503, "breaker_open")
	_ = d.Close()
	c.eventually("another probe is let through", func() bool { return c.ask(gw, get("/next")).status() == 404 })
	gw.breaker("closed")
}
