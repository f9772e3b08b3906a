package clienttest

import (
	"strings"

	"gatebench/clients"
)

// Where messages end.
func framingCases() []testCase {
	return []testCase{
		rule("request-framing", "a known length is sent as Content-Length, an empty POST as Content-Length: 0, an unknown length chunked; GET and HEAD without a body carry neither (RFC 9110, section 8.6; hashicorp/go-retryablehttp#194)", requestFraming),
		rule("bodyless-delete", "DELETE and OPTIONS without a body carry no framing either", bodylessDelete),
		rule("body-of-any-method", "a body is sent whatever the method (RFC 9110, section 9.3.1)", bodyOfAnyMethod),
		rule("head-response", "the response to HEAD ends with its head, whatever that announces; the next answer on the connection is not taken for its body (valyala/fasthttp#1824)", headResponse),
		rule("no-body-statuses", "204 and 304 end with their head (RFC 9112, section 6.3)", noBodyStatuses),
		rule("response-framing", "a length is told if known, else -1; a body may end with the connection (RFC 9112, section 6.3)", responseFraming),
		rule("repeated-length", "a Content-Length that comes twice with one value counts once (RFC 9110, section 8.6, leaves the choice; equal for all is what matters)", repeatedLength),
		rule("http10-response", "an HTTP/1.0 response is read, and its connection not used again unless it says so", http10Response),
	}
}

func requestFraming(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, tt := range []struct {
		req            *clients.Request
		length, coding string
		body           string
	}{
		{req: get("/")},
		{req: bodyless("HEAD", "/")},
		{req: bodyless("POST", "/"), length: "0"},
		{req: bodyless("PUT", "/"), length: "0"},
		{req: post("/", "12345"), length: "5", body: "12345"},
		{req: streaming("/", strings.NewReader("12345")), coding: "chunked", body: "12345"},
		{req: streaming("/", strings.NewReader("")), coding: "chunked"},
	} {
		resp := c.do(cl, tt.req)
		resp.End(nil)
		c.framed(u.last(), tt.length, tt.coding, tt.body)
	}
}

// framed wants the request to have arrived with this framing and body.
func (c *check) framed(h *heard, length, coding, body string) {
	if got := strings.Join(values(h.Fields, "Content-Length"), "|"); got != length {
		c.errorf("%s: Content-Length %q, want %q", h.Method, got, length)
	}
	if got := strings.Join(values(h.Fields, "Transfer-Encoding"), "|"); got != coding {
		c.errorf("%s: Transfer-Encoding %q, want %q", h.Method, got, coding)
	}
	if h.Body != body {
		c.errorf("%s: body %q, want %q", h.Method, brief(h.Body), brief(body))
	}
}

func bodylessDelete(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, method := range []string{"DELETE", "OPTIONS"} {
		c.ok(cl, bodyless(method, "/"), "-")
		c.framed(u.last(), "", "", "")
	}
}

func bodyOfAnyMethod(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, method := range []string{"GET", "DELETE", "OPTIONS", "PUT", "PATCH", "REPORT"} {
		c.ok(cl, withBody(method, "/", "12345"), "-")
		c.framed(u.last(), "5", "", "12345")
	}
}

func headResponse(c *check) {
	u := c.answer(func(h *heard) string {
		switch {
		case h.Method != "HEAD":
			return ok(h.Target)
		case h.Target == "/length":
			return ok(strings.Repeat("x", 123))
		case h.Target == "/chunked":
			return chunkedHead
		}
		return "HTTP/1.1 200 OK\r\nX-Nothing: 1\r\n\r\n"
	})
	cl := c.client(u)
	for _, target := range []string{"/length", "/chunked", "/neither"} {
		c.returns("HEAD "+target, func() {
			resp := c.do(cl, bodyless("HEAD", target))
			if target == "/length" && resp.ContentLength != 123 {
				c.errorf("HEAD: length %d, want 123", resp.ContentLength)
			}
			if body := c.whole(resp); body != "" {
				c.errorf("HEAD: a body: %q", brief(body))
			}
		})
		c.ok(cl, get(target), target)
	}
}

func noBodyStatuses(c *check) {
	u := c.answer(func(h *heard) string {
		switch h.Target {
		case "/204":
			return "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"
		case "/304":
			return "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 77\r\n\r\n"
		}
		return ok("next")
	})
	cl, dialer := c.dialingClient(u)
	for _, target := range []string{"/204", "/304"} {
		c.returns(target, func() {
			resp := c.do(cl, get(target))
			if target != "/204" && resp.ContentLength != 77 {
				c.errorf("304: length %d, want the 77 that the head announced", resp.ContentLength)
			}
			if body := c.whole(resp); body != "" {
				c.errorf("%s: a body: %q", target, brief(body))
			}
		})
		c.ok(cl, get("/"), "next")
	}
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections, want 1", n)
	}
}

func responseFraming(c *check) {
	u := c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			switch h.Target {
			case "/length":
				p.send(ok("12345"))
			case "/empty":
				p.send(ok(""))
			case "/chunked":
				p.send(chunked([]string{"12", "345"}))
			case "/until-close":
				p.send("HTTP/1.1 200 OK\r\n\r\n12345")
				return
			}
		}
	})
	cl := c.client(u)
	for _, tt := range []struct {
		target, body string
		length       int64
	}{{"/length", "12345", 5}, {"/empty", "", 0}, {"/chunked", "12345", -1}, {"/until-close", "12345", -1}} {
		resp := c.do(cl, get(tt.target))
		if resp.ContentLength != tt.length {
			c.errorf("%s: length %d, want %d", tt.target, resp.ContentLength, tt.length)
		}
		for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection"} {
			if resp.Fields.Has(name) {
				c.errorf("%s: %s stands among the fields", tt.target, name)
			}
		}
		if body := c.whole(resp); body != tt.body {
			c.errorf("%s: body %q, want %q", tt.target, body, tt.body)
		}
	}
}

func repeatedLength(c *check) {
	u := c.always(reply("200 OK", "12345", "Content-Length: 5"))
	cl := c.client(u)
	c.ok(cl, get("/"), "12345")
	c.ok(cl, get("/"), "12345")
}

func http10Response(c *check) {
	u := c.serve(func(p *peer) {
		if h, err := p.request(); err == nil {
			p.send("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n" + h.Target)
			p.awaitClose()
		}
	})
	cl := c.client(u)
	for _, target := range []string{"/abcd", "/efgh"} {
		c.returns(target, func() { c.ok(cl, get(target), target) })
	}
}
