package wire

import (
	"fmt"
	"strings"
)

// Where one message ends and the next begins.
func framingCases() []testCase {
	return []testCase{
		{name: "request-framing", rule: "a length stays a length and chunks stay chunks; an empty POST has Content-Length: 0; GET and HEAD without a body have neither",
			source: "TestNilBody, TestReverseProxy_NilBody, UP08, N16, H8, hashicorp/go-retryablehttp#194", run: requestFraming},
		{name: "body-of-any-method", rule: "a body goes upstream whatever the method", source: "R7, RFC 9110 section 9.3.1", run: bodyOfAnyMethod},
		{name: "head", rule: "the answer to HEAD ends with its head, whatever that announces, and the next answer is in step",
			source: "PX07, S11, R9, F30, F33, valyala/fasthttp#1824", run: headAnswers},
		{name: "bodyless-statuses", rule: "204 and 304 end with their head", source: "S11", run: bodylessStatuses},
		{name: "one-framing", rule: "a response has one framing downstream, whatever upstream's was", source: "F21, PX07, valyala/fasthttp#1909", run: oneFraming},
		{name: "http10", rule: "an HTTP/1.0 caller gets a body without chunks that ends with the connection or has a length, and no 1xx",
			source: "end of measurements: unknown length to an HTTP/1.0 peer", run: http10Caller},
		{name: "smuggling", rule: "what hides behind a body never reaches upstream as a request", source: "S8, RFC 9112 section 11.2", run: smuggling},
		{name: "response-smuggling", rule: "what upstream sends behind an answer never becomes another caller's", source: "S8, RFC 9112 section 9.2", run: responseSmuggling},
		{name: "pipelining", rule: "pipelined requests are answered in their order", source: "RFC 9112 section 9.3.2", run: pipelining},
		{name: "expect", rule: "Expect: 100-continue is answered by the gateway and not passed on; nobody stalls, the body arrives once",
			source: "UP07, N11, S9, golang/go#75933", run: expectContinue},
		{name: "expect-refused-early", rule: "an upstream that refuses at once is heard without the body",
			source: "UP07, F12", unless: []string{"early-response", "answer-before-body"}, run: expectRefused},
		{name: "expect-dead-upstream", rule: "Expect: 100-continue and no upstream is a prompt 502",
			source: "TestReverseProxyInvalidUpstream100ContinueDoNotHang", unless: []string{"answer-before-body"}, run: expectDead},
	}
}

func requestFraming(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for _, x := range []struct{ req, length, coding, body string }{
		{get("/"), "[]", "[]", ""},
		{request("HEAD", "/"), "[]", "[]", ""},
		{request("POST", "/", "Content-Length: 0"), "[0]", "[]", ""},
		{request("PUT", "/", "Content-Length: 0"), "[0]", "[]", ""},
		{post("/", "hello"), "[5]", "[]", "hello"},
		{request("POST", "/", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", "[]", "[chunked]", "hello"},
		{request("POST", "/", "Transfer-Encoding: chunked") + "0\r\n\r\n", "[]", "[chunked]", ""},
	} {
		c.ask(gw, x.req)
		m := up.last()
		equal(c, fmt.Sprintf("framing of %.60q", x.req), fmt.Sprint(m.all("Content-Length"), " ", m.all("Transfer-Encoding"), m.Body),
			fmt.Sprint(x.length, " ", x.coding, x.body))
	}
}

func bodyOfAnyMethod(c *check) {
	up := c.answer(func(m *message) string { return ok(m.method()) })
	gw := c.gateway(up)
	for _, method := range []string{"GET", "OPTIONS", "DELETE", "PATCH", "BREW"} {
		for _, framing := range []string{"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
			c.whole(c.ask(gw, method+" / HTTP/1.1\r\nHost: h\r\n"+framing), 200, method)
			equal(c, method+"'s body upstream", up.last().Body, "hello")
		}
	}
}

func headAnswers(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			if m.method() != "HEAD" {
				p.send(ok(m.target()))
				continue
			}
			switch m.target() {
			case "/length":
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Encoding: gzip\r\n\r\n")
			case "/chunked":
				p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			default:
				p.send("HTTP/1.1 200 OK\r\n\r\n")
			}
		}
	})
	d := c.dial(c.gateway(up))
	for _, target := range []string{"/length", "/chunked", "/neither", "/length"} {
		m := d.ask(request("HEAD", target))
		c.whole(m, 200, "")
		want := "[]"
		if target == "/length" {
			want = "[500]"
		}
		equal(c, "Content-Length after HEAD "+target, fmt.Sprint(m.all("Content-Length")), want)
		if te := m.all("Transfer-Encoding"); len(te) > 0 && te[0] != "chunked" {
			c.errorf("HEAD %s: Transfer-Encoding %q", target, te)
		}
		c.whole(d.ask(get(target)), 200, target)
	}
}

func bodylessStatuses(c *check) {
	up := c.answer(func(m *message) string {
		switch m.target() {
		case "/204":
			return "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"
		case "/304":
			return "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n"
		}
		return ok(m.target())
	})
	d := c.dial(c.gateway(up))
	for range 2 {
		m := d.ask(get("/204"))
		equal(c, "204", fmt.Sprint(m.status(), m.all("Content-Length"), m.all("Transfer-Encoding"), m.all("X-A")), "204 [] [] [1]")
		m = d.ask(get("/304", `If-None-Match: "e"`))
		equal(c, "304", fmt.Sprint(m.status(), m.all("Transfer-Encoding"), m.all("ETag")), `304 [] ["e"]`)
		c.whole(d.ask(get("/x")), 200, "/x")
	}
}

func oneFraming(c *check) {
	for _, answer := range []string{
		ok("hello"),
		chunkedHead + "\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
		"HTTP/1.0 200 OK\r\n\r\nhello",
	} {
		up := c.serve(func(p *peer) {
			if _, err := p.request(); err == nil {
				p.send(answer)
			}
		})
		m := c.ask(c.gateway(up), get("/"))
		c.whole(m, 200, "hello")
		if n := len(m.all("Content-Length")) + len(m.all("Transfer-Encoding")); n != 1 {
			c.errorf("%.60q arrives with %d framings: %v", answer, n, m.Fields)
		}
	}
}

func http10Caller(c *check) {
	up := c.answer(func(m *message) string {
		if m.target() == "/length" {
			return early + ok("hello")
		}
		return early + chunkedHead + "\r\n5\r\nhello\r\n0\r\n\r\n"
	})
	gw := c.gateway(up)
	for _, target := range []string{"/length", "/chunked"} {
		d := c.dial(gw)
		d.send("GET " + target + " HTTP/1.0\r\n\r\n")
		m := d.response("GET")
		c.whole(m, 200, "hello")
		if m.Fields.Has("Transfer-Encoding") || len(m.Interim) > 0 {
			c.errorf("HTTP/1.0 gets %v and %d interim responses", m.Fields, len(m.Interim))
		}
		d.cutOff("")
		equal(c, "Via", strings.HasPrefix(up.last().Fields.Get("Via"), "1.0 "), true)
	}
}

// hidden is a request that must never be one.
const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"

func smuggling(c *check) {
	const head = "POST / HTTP/1.1\r\nHost: h\r\n"
	for _, raw := range []string{
		head + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		head + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Content-Length: 0\r\nContent-Length: " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden,
		head + "Content-Length: 0, " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden,
		head + "Content-Length: +0\r\n\r\n" + hidden,
		head + "Content-Length: -1\r\n\r\n" + hidden,
		head + "Content-Length: 0x0\r\n\r\n" + hidden,
		head + "Content-Length : 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n" + hidden,
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n" + hidden,
		"GET / HTTP/1.1\r\n\r\n" + hidden,
	} {
		up := c.echo()
		d := c.dial(c.gateway(up))
		d.send(raw)
		for {
			m, err := d.tryHead()
			if err != nil {
				break
			}
			if d.body(m, "GET"); m.Body == "/hidden" {
				c.errorf("%q: the hidden request is answered", raw)
			}
		}
		if n := up.to("/hidden"); n > 0 {
			c.errorf("%q: the hidden request reached upstream", raw)
		}
		_ = d.Close()
	}
}

func responseSmuggling(c *check) {
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
	for _, answer := range []string{
		ok("mine!") + stray,
		"HTTP/1.1 204 No Content\r\n\r\n" + stray,
		"HTTP/1.1 304 Not Modified\r\n\r\n" + stray,
		chunkedHead + "\r\n5\r\nmine!\r\n0\r\n\r\n" + stray,
		chunkedHead + "Content-Length: 3\r\n\r\n5\r\nmine!\r\n0\r\n\r\n" + stray,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nmine!" + stray,
	} {
		up := c.serve(func(p *peer) {
			for {
				m, err := p.request()
				if err != nil {
					return
				}
				if m.target() == "/first" {
					p.send(answer)
				} else {
					p.send(ok(m.target()))
				}
			}
		})
		gw := c.gateway(up)
		c.ask(gw, get("/first"))
		for i := range 3 {
			target := fmt.Sprint("/own/", i)
			c.whole(c.ask(gw, get(target)), 200, target)
		}
	}
}

func pipelining(c *check) {
	up := c.answer(func(m *message) string { return ok(m.target() + m.Body) })
	d := c.dial(c.gateway(up))
	d.send(get("/1") + post("/2", "b") + request("HEAD", "/3") + get("/4"))
	c.whole(d.response("GET"), 200, "/1")
	c.whole(d.response("POST"), 200, "/2b")
	c.whole(d.response("HEAD"), 200, "")
	c.whole(d.response("GET"), 200, "/4")
}

func expectContinue(c *check) {
	body := strings.Repeat("e", 2<<20)
	for _, sends100 := range []bool{true, false} {
		up := c.serve(func(p *peer) {
			m, err := p.head()
			if err != nil {
				return
			}
			if sends100 {
				p.send("HTTP/1.1 100 Continue\r\n\r\n")
			}
			m.readBody(p.br, false)
			p.send(ok(m.Body, "Connection: close"))
		})
		gw := c.gateway(up)
		d := c.dial(gw)
		d.send(request("POST", "/", "Expect: 100-continue", fmt.Sprint("Content-Length: ", len(body))))
		m, err := readHead(d.br)
		if err != nil || m.status() != 100 {
			c.fatalf("a caller who waits for 100 Continue gets %v, %v", m, err)
		}
		d.send(body)
		c.whole(d.response("POST"), 200, body)
		equal(c, "requests that arrived", len(up.requests()), 1)
		equal(c, "Expect upstream", up.last().Fields.Has("Expect"), false)
	}
}

func expectRefused(c *check) {
	up := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			p.send(reply("401 Unauthorized", "who?", "Connection: close"))
			<-p.u.done
		}
	})
	d := c.dial(c.gateway(up))
	d.send(request("POST", "/", "Expect: 100-continue", "Content-Length: 1000000"))
	c.whole(d.response("POST"), 401, "who?")
}

func expectDead(c *check) {
	up := c.nobody()
	d := c.dial(c.gateway(up))
	d.send(request("POST", "/", "Expect: 100-continue", "Content-Length: 1000000"))
	c.problem(d.response("POST"), 502, "dial")
}
