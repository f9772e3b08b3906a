package wire

import (
	"strings"
)

// How upstream fails, and what the caller gets.
func faultCases() []testCase {
	return []testCase{
		{name: "dead-upstream", rule: "nobody listens: 502, dial", source: "TestReverseProxyErrorHandler, S21, F36", run: deadUpstream},
		{name: "hangup", rule: "upstream ends the connection before it has answered: 502, reset", source: "TestReverseProxy, S21, F36", run: hangup},
		{name: "not-http", rule: "an answer that is not HTTP is 502, protocol, and asked for once, retry or not", source: "H13, F23, S21", run: notHTTP},
		{name: "head-too-large", rule: "a response head beyond limits.header is 502, response_too_large", source: "N13, F7, S21", run: headTooLarge},
		{name: "silent-upstream", rule: "no head in time is 504, timeout_header, once, for a PUT too", source: "PL04, S21, F2, H14", run: silentUpstream},
		{name: "trickling-body", rule: "a body that keeps coming outlives every timeout of the head", source: "PL04, N9, F10, R16", run: tricklingBody},
		{name: "stalled-body", rule: "a body that stops is broken off after timeouts.body_idle", source: "PL04, F10", run: stalledBody},
		{name: "late-rest", rule: "what upstream sends after a timeout is nobody's answer", source: "PL05, valyala/fasthttp#1743", run: lateRest},
		{name: "upload-not-read", rule: "an upload that upstream does not read ends within timeouts.body_idle: 504", source: "N12", run: uploadNotRead},
		{name: "answers-own-words", rule: "an answer of the gateway's own names no address and no library", source: "S21", run: ownWords},
	}
}

func deadUpstream(c *check) {
	up := c.nobody()
	gw := c.gateway(up)
	for _, req := range []string{get("/"), request("POST", "/", "Content-Length: 0"), post("/", "hello"), request("HEAD", "/")} {
		m := c.ask(gw, req)
		if strings.HasPrefix(req, "HEAD") {
			equal(c, "status for HEAD", m.status(), 502)
			continue
		}
		c.problem(m, 502, "dial")
	}
	gw.counted(`gatebench_gateway_requests_total{code="502",reason="dial"}`, 4)
}

func hangup(c *check) {
	for _, part := range []string{"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A"} {
		for _, cut := range []func(*peer){(*peer).end, (*peer).reset} {
			up := c.serve(func(p *peer) {
				if _, err := p.request(); err == nil {
					p.send(part)
					cut(p)
				}
			})
			gw := c.gateway(up)
			c.problem(c.ask(gw, get("/")), 502, "reset")
			c.problem(c.ask(gw, post("/", "hello")), 502, "reset")
			equal(c, "requests that arrived", len(up.requests()), 2)
		}
	}
}

func notHTTP(c *check) {
	for _, answer := range []string{"hello\r\n\r\n", "\x16\x03\x01\x00\x05hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n"} {
		up := c.serve(func(p *peer) {
			if _, err := p.request(); err == nil {
				p.send(answer)
				p.drain()
			}
		})
		gw := c.gateway(up, `retry: {max_attempts: 3, retry_on: [connect, reset, timeout, "5xx"], budget: 100%}`, "timeouts: {response_header: 5s}")
		m := c.ask(gw, get("/"))
		if m.status() != 502 {
			c.errorf("%q is passed on as %q", answer, m.Start)
			continue
		}
		c.problem(m, 502, "protocol")
		equal(c, "requests that arrived", len(up.requests()), 1)
	}
}

func headTooLarge(c *check) {
	up := c.answer(func(*message) string { return ok("-", "X-A: "+strings.Repeat("a", 64<<10), "Connection: close") })
	gw := c.gateway(up, `retry: {max_attempts: 3, retry_on: [connect, reset, timeout, "5xx"], budget: 100%}`)
	c.problem(c.ask(gw, get("/")), 502, "response_too_large")
	equal(c, "requests that arrived", len(up.requests()), 1)
}

func silentUpstream(c *check) {
	up := c.serve(func(p *peer) {
		if _, err := p.request(); err == nil {
			p.drain()
		}
	})
	gw := c.gateway(up, "timeouts: {response_header: "+short.String()+"}")
	for _, req := range []string{get("/"), post("/", "hello"), request("PUT", "/", "Content-Length: 5") + "hello"} {
		c.problem(c.ask(gw, req), 504, "timeout_header")
	}
	equal(c, "requests that arrived", len(up.requests()), 3)
}

func tricklingBody(c *check) {
	up := c.serve(func(p *peer) {
		if _, err := p.request(); err != nil {
			return
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n")
		for range 6 {
			pause(p.u.done, roomy/5) // six of them last longer than any of the bounds
			p.send("t")
		}
	})
	gw := c.gateway(up, "timeouts: {connect: "+roomy.String()+", response_header: "+roomy.String()+", request: "+roomy.String()+", body_idle: 10s}")
	c.whole(c.ask(gw, get("/")), 200, "tttttt")
}

func stalledBody(c *check) {
	for _, x := range []struct{ answer, begun string }{
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 10), strings.Repeat("x", 10)},
		{chunkedHead + "\r\n5\r\nhello\r\n", "hello"},
	} {
		up := c.listen()
		gw := c.gateway(up, "timeouts: {body_idle: "+short.String()+"}")
		d := c.dial(gw)
		d.send(get("/"))
		p := up.next()
		p.mustRequest()
		p.send(x.answer)
		c.broken(d.response("GET"), x.begun)
		if !p.gone() {
			c.errorf("the connection to an upstream that has stalled stays")
		}
		gw.counted(`gatebench_gateway_requests_total{code="200",reason="timeout_body"}`, 1)
	}
}

func lateRest(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			if m.target() == "/stall" {
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 50))
				pause(p.u.done, 2*roomy)
				p.send(strings.Repeat("x", 50) + ok("poison"))
				continue
			}
			if m.target() == "/silent" {
				pause(p.u.done, 2*roomy)
				p.send(ok("poison"))
				continue
			}
			p.send(ok(m.target()))
		}
	})
	gw := c.gateway(up, "timeouts: {body_idle: "+roomy.String()+", response_header: "+roomy.String()+"}", "pool: {max_conns: 2}")
	for _, bad := range []string{"/stall", "/silent"} {
		d := c.dial(gw)
		d.send(get(bad))
		own := c.dial(gw)
		for range 20 {
			c.whole(own.ask(get("/own")), 200, "/own")
		}
		if m := d.head(); bad == "/stall" {
			d.body(m, "GET")
			c.broken(m, strings.Repeat("x", 50))
		}
		for range 20 {
			c.whole(own.ask(get("/own")), 200, "/own")
		}
	}
}

func uploadNotRead(c *check) {
	up := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			<-p.u.done
		}
	})
	gw := c.gateway(up, "timeouts: {body_idle: "+short.String()+"}")
	d := c.dial(gw)
	sent := d.upload(16 << 20)
	m := d.response("POST")
	c.problem(m, 504, "timeout_body")
	<-sent
}

func ownWords(c *check) {
	up := c.nobody()
	m := c.ask(c.gateway(up), get("/secret?token=1"))
	for _, leak := range []string{up.addr, port(up.addr), "127.0.0.1", "connect:", "dial tcp", "secret", "token", "resty", "fasthttp", "retryable"} {
		if strings.Contains(m.Body, leak) {
			c.errorf("the caller is told %q: %s", leak, m.Body)
		}
	}
}
