package clienttest

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// What goes wrong before a response is there, and the one word for it.
func faultCases() []testCase {
	return []testCase{
		rule("refused", "nobody listens: kind dial", refused),
		rule("tls", "an https upstream is trusted through tls.ca, by the name in tls.server_name", trusted),
		rule("tls-refused", "a certificate that does not fit, or no TLS at all: kind tls", tlsRefused),
		rule("ipv6", "an upstream on ::1 is reached (fasthttp.TCPDialer would not)", ipv6),
		rule("closed-before-head", "the connection ends before the head does: kind reset", beforeHead(false)),
		rule("reset-before-head", "the connection is reset before the head ends: kind reset", beforeHead(true)),
		rule("bad-heads", "what is not HTTP is an error of kind protocol, and its connection is not used again", badHeads),
		rule("status-000", "a status below 100 is none: kind protocol (RFC 9110, section 15)", badHead("HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n")),
		rule("head-too-large", "a response head beyond limits.header: kind response_too_large", headTooLarge),
		rule("upload-reset", "upstream resets during an upload: kind reset", uploadReset),
		rule("upload-cut", "upstream ends the connection while the caller pauses in an upload: kind reset, whether that is noticed at once or with the caller's next bytes", uploadCut),
		rule("early-response", "an answer that comes during an upload is read, and ends the upload (golang/go#15527, valyala/fasthttp#1348)", earlyResponse),
	}
}

func refused(c *check) {
	u := c.always(ok("-"))
	u.closeListener()
	cl, dialer := c.dialingClient(u)
	e := c.fails(cl, get("/"), clients.Dial)
	if e != nil && e.Attempts != 1 {
		c.errorf("%d attempts, want 1", e.Attempts)
	}
	if dialer.Failed() != 1 || dialer.Opened() != 0 {
		c.errorf("%d connections failed and %d opened, want 1 and 0", dialer.Failed(), dialer.Opened())
	}
}

// secure is an upstream behind TLS with httptest's certificate (for 127.0.0.1
// and example.com), and the file that says whom to trust.
func (c *check) secure(script func(*peer)) (u *upstream, ca string) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	cert := s.TLS.Certificates[0]
	s.Close()
	dir, err := os.MkdirTemp("", "clienttest")
	if err != nil {
		c.fatalf("%v", err)
	}
	c.onEnd(func() { _ = os.RemoveAll(dir) })
	ca = filepath.Join(dir, "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		c.fatalf("%v", err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		c.fatalf("listen: %v", err)
	}
	u = c.serveOn(ln, script)
	u.scheme = "https"
	return u, ca
}

func answering(p *peer) {
	for {
		h, err := p.request()
		if err != nil {
			return
		}
		p.send(ok(h.Target))
	}
}

func trusted(c *check) {
	u, ca := c.secure(answering)
	for _, name := range []string{"", "example.com"} {
		cl, dialer := c.dialingClient(u, func(s *clients.Settings) { s.TLS = clients.TLSSettings{CA: ca, ServerName: name} })
		for _, target := range []string{"/1", "/2"} {
			c.ok(cl, get(target), target)
		}
		c.ok(cl, post("/3", noise(100<<10, 3)), "/3")
		if n := dialer.Opened(); n != 1 {
			c.errorf("%d connections, want 1", n)
		}
	}
	for _, h := range u.requests() {
		if h.Proto != "HTTP/1.1" {
			c.errorf("spoke %s, want HTTP/1.1", h.Proto)
		}
	}
}

func tlsRefused(c *check) {
	u, ca := c.secure(answering)
	plain := c.serve(func(p *peer) {
		_, _ = p.line()
		p.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
	})
	plain.scheme = "https"
	for what, tt := range map[string]struct {
		u   *upstream
		tls clients.TLSSettings
	}{
		"unknown authority": {u, clients.TLSSettings{}},
		"another name":      {u, clients.TLSSettings{CA: ca, ServerName: "other.test"}},
		"no TLS":            {plain, clients.TLSSettings{CA: ca}},
	} {
		c.returns(what, func() {
			c.fails(c.client(tt.u, func(s *clients.Settings) { s.TLS = tt.tls }), get("/"), clients.TLS)
		})
	}
	if n := len(u.requests()); n > 0 {
		c.errorf("%d requests were sent to whom is not trusted", n)
	}
}

func ipv6(c *check) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		c.skip("no IPv6 loopback: %v", err)
	}
	u := c.serveOn(ln, answering)
	c.ok(c.client(u), get("/six"), "/six")
}

func beforeHead(reset bool) func(*check) {
	return func(c *check) {
		u := c.serve(func(p *peer) {
			h, err := p.request()
			if err != nil {
				return
			}
			p.send(map[string]string{"/part": "HTTP/1.1 200 OK\r\nX-A: 1\r\n", "/line": "HTTP/1.1 20"}[h.Target])
			if reset {
				p.reset()
			}
		})
		cl := c.client(u)
		for _, target := range []string{"/nothing", "/line", "/part"} {
			for _, req := range []*clients.Request{get(target), post(target, "12345")} {
				before := len(u.requests())
				c.fails(cl, req, clients.Reset)
				if n := len(u.requests()) - before; n != 1 {
					c.errorf("%s %s arrived %d times on fresh connections, want once", req.Method, target, n)
				}
			}
		}
	}
}

func badHeads(c *check) {
	for _, head := range []string{
		"nonsense\r\n\r\n",
		"220 mail.example ESMTP ready\r\n\r\n",
		"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 2000 High\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n1",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\n",
	} {
		badHead(head)(c)
	}
}

func badHead(head string) func(*check) {
	return func(c *check) {
		u := c.serve(func(p *peer) {
			if _, err := p.request(); err == nil {
				p.send(head)
				p.awaitClose()
			}
		})
		c.returns(fmt.Sprintf("the answer to %q", head), func() {
			resp, err := c.client(u).Do(c.ctx, get("/"))
			if err == nil {
				c.errorf("%q was taken for an answer of status %d", head, resp.Status)
				resp.End(nil)
				return
			}
			if e := c.checkError(err); e != nil && e.Kind != clients.Protocol {
				c.errorf("%q: kind %v, want protocol: %v", head, e.Kind, err)
			}
		})
		if !u.closedButFor(0) {
			c.errorf("%q: the connection was kept", head)
		}
		if n := len(u.requests()); n != 1 {
			c.errorf("%q: asked %d times, want once", head, n)
		}
	}
}

func headTooLarge(c *check) {
	line := "X-Line: " + strings.Repeat("v", 1000)
	u := c.answer(func(h *heard) string {
		switch h.Target {
		case "/endless":
			return "HTTP/1.1 200 OK\r\nX-Endless: " + strings.Repeat("v", 64<<10)
		case "/many":
			return reply("200 OK", "-", strings.Split(strings.Repeat(line+"|", 63)+line, "|")...)
		}
		return ok("-")
	})
	cl := c.client(u, func(s *clients.Settings) { s.Limits.Header = 8 * conf.KiB })
	c.ok(cl, get("/"), "-")
	for _, target := range []string{"/many", "/endless"} {
		c.returns(target, func() { c.fails(cl, get(target), clients.ResponseTooLarge) })
	}
	c.ok(cl, get("/"), "-")
}

// zeros is an endless upload.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func uploadReset(c *check) {
	u := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			p.reset()
		}
	})
	c.returns("an upload that upstream reset", func() {
		c.fails(c.client(u), streaming("/", zeros{}), clients.Reset)
	})
}

func uploadCut(c *check) {
	for _, reset := range []bool{false, true} {
		begun, ended := make(chan bool, 1), make(chan struct{})
		u := c.serve(func(p *peer) {
			if _, err := p.head(); err != nil {
				return
			}
			if reset {
				p.reset()
			}
			begun <- true
		})
		c.onEnd(func() { close(ended) })
		for _, length := range []int64{10, -1} {
			cl := c.client(u)
			r, w := io.Pipe()
			c.onEnd(func() { _ = r.Close() })
			c.running.Go(func() {
				_, _ = io.WriteString(w, "first")
				select {
				case <-begun:
				case <-ended:
					return
				}
				u.closedButFor(0)
				_, _ = io.WriteString(w, "other")
				_ = w.Close()
			})
			req := streaming("/", r)
			req.ContentLength = length
			c.returns(fmt.Sprintf("an upload of length %d that upstream cut (by a reset: %t)", length, reset), func() {
				c.fails(cl, req, clients.Reset)
			})
			_ = r.Close()
		}
	}
}

func earlyResponse(c *check) {
	ended := make(chan struct{})
	u := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			p.send(reply("413 Content Too Large", "too large", "Connection: close"))
			<-ended // keeps the connection open, reads no more
		}
	})
	c.onEnd(func() { close(ended) })
	cl := c.client(u)
	c.returns("an answer during an upload", func() {
		req := streaming("/", zeros{})
		req.ContentLength = 1 << 40
		status, body := c.exchange(cl, req)
		if status != 413 || body != "too large" {
			c.errorf("got %d %q", status, body)
		}
	})
}
