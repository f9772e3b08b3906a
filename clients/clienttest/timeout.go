package clienttest

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"gatebench/clients"
)

// Limits of time, each with the meaning that clients.Timeouts gives it.
func timeoutCases() []testCase {
	return []testCase{
		rule("connect-timeout", "timeouts.connect bounds a connection that does not come about: kind timeout_connect", connectTimeout),
		rule("tls-timeout", "timeouts.connect covers the TLS handshake: kind timeout_connect", tlsTimeout),
		rule("response-header-timeout", "timeouts.response_header bounds the wait for the head: kind timeout_header", headerTimeout(func(t *clients.Timeouts) { t.ResponseHeader = limit })),
		rule("request-timeout", "timeouts.request bounds the whole up to the head: kind timeout_header", headerTimeout(func(t *clients.Timeouts) { t.Request = limit })),
		rule("request-covers-connect", "timeouts.request includes the time to connect", requestCoversConnect),
		rule("trickled-head", "a head that comes byte by byte does not outwit timeouts.response_header", trickledHead),
		rule("per-try-timeout", "retry.per_try_timeout bounds one attempt: kind timeout_header", perTryTimeout),
		rule("slow-upload", "an upload that keeps flowing outlives timeouts.response_header and timeouts.request, which run from its end", slowUpload),
		rule("after-upload", "timeouts.response_header and timeouts.request do act after an upload", afterUpload),
		rule("body-idle", "silence in a response body for timeouts.body_idle: kind timeout_body", bodyIdle),
		rule("slow-body", "a response body that keeps flowing outlives every timeout (golang/go Client.Timeout cuts it)", slowBody),
		rule("slow-reader", "a reader that takes its time is not silence of upstream's", slowReader),
		rule("upload-unread", "an upload that upstream stops reading ends after timeouts.body_idle: kind timeout_body", uploadUnread),
		rule("upload-silent", "an upload that downstream stops giving ends after timeouts.body_idle: kind timeout_body", uploadSilent),
		rule("no-lingering", "what bounded one exchange does not strike the next on its connection", noLingering),
		rule("no-limits", "a timeout of 0 switches the bound off", noLimits),
	}
}

// limit is what a case sets the timeout in question to.
const limit = 150 * time.Millisecond

func timeouts(tweak func(*clients.Timeouts)) func(*clients.Settings) {
	return func(s *clients.Settings) { tweak(&s.Timeouts) }
}

// silent reads requests, but says nothing.
func silent(p *peer) {
	for {
		if _, err := p.request(); err != nil {
			return
		}
	}
}

func connectTimeout(c *check) {
	u := &upstream{c: c, scheme: "http", addr: c.blackhole()}
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.Connect = limit }))
	c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutConnect) })
}

func tlsTimeout(c *check) {
	u := c.serve(silent)
	u.scheme = "https"
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.Connect = limit }))
	c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutConnect) })
	u.closedButFor(0)
}

func headerTimeout(set func(*clients.Timeouts)) func(*check) {
	return func(c *check) {
		u := c.serve(silent)
		cl := c.client(u, timeouts(set))
		c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutHeader) })
		u.closedButFor(0)
		if n := u.connections(); n != 1 {
			c.errorf("asked %d times, want once", n)
		}
	}
}

func requestCoversConnect(c *check) {
	u := &upstream{c: c, scheme: "http", addr: c.blackhole()}
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.Connect, t.Request = bound/2, limit }))
	c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutHeader) })
}

func trickledHead(c *check) {
	u := c.serve(func(p *peer) {
		if _, err := p.request(); err != nil {
			return
		}
		p.send("HTTP/1.1 200 OK\r\nX-Slow: ")
		for p.trickle("v", limit/5) {
		}
	})
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.ResponseHeader = limit }))
	c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutHeader) })
}

// trickle sends s after a pause, and reports whether it could.
func (p *peer) trickle(s string, pause time.Duration) bool {
	select {
	case <-time.After(pause):
	case <-p.u.c.ctx.Done():
		return false
	}
	_, err := io.WriteString(p.Conn, s)
	return err == nil
}

func perTryTimeout(c *check) {
	u := c.serve(silent)
	cl := c.client(u, func(s *clients.Settings) { s.Retry.PerTryTimeout = limit })
	c.lasts(limit, func() { c.fails(cl, get("/"), clients.TimeoutHeader) })
}

// slowly gives n bytes, one after each pause.
type slowly struct {
	ctx   context.Context
	n     int
	pause time.Duration
}

func (r *slowly) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(r.pause):
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
	r.n--
	p[0] = 'x'
	return 1, nil
}

// A body of pieces, a pause before each, takes longer than every limit of flowing,
// yet each pause is far shorter.
const (
	pieces = 12
	pause  = 100 * time.Millisecond
)

func flowing(s *clients.Settings) {
	s.Timeouts.ResponseHeader, s.Timeouts.Request, s.Timeouts.BodyIdle = 4*limit, 4*limit, 6*limit
	s.Retry.PerTryTimeout = 4 * limit
}

func slowUpload(c *check) {
	u := c.answer(func(h *heard) string { return ok(h.Body) })
	cl := c.client(u, flowing)
	for _, length := range []int64{pieces, -1} {
		req := streaming("/", &slowly{c.ctx, pieces, pause})
		req.ContentLength = length
		c.ok(cl, req, strings.Repeat("x", pieces))
	}
}

func afterUpload(c *check) {
	u := c.serve(silent)
	for _, set := range []func(*clients.Timeouts){
		func(t *clients.Timeouts) { t.ResponseHeader = limit },
		func(t *clients.Timeouts) { t.Request = limit },
	} {
		cl := c.client(u, timeouts(set))
		c.lasts(limit, func() { c.fails(cl, post("/", "12345"), clients.TimeoutHeader) })
	}
}

func bodyIdle(c *check) {
	u := c.serve(func(p *peer) {
		h, err := p.request()
		if err != nil {
			return
		}
		if h.Target == "/chunked" {
			p.send(chunkedHead + chunk("12345"))
		} else {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345")
		}
		p.awaitClose()
	})
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.BodyIdle = limit }))
	for _, target := range []string{"/length", "/chunked"} {
		resp := c.do(cl, get(target))
		c.lasts(limit, func() {
			if got := c.bodyFails(resp, clients.TimeoutBody); got != "12345" {
				c.errorf("before the silence came %q", got)
			}
		})
	}
	u.closedButFor(0)
}

func slowBody(c *check) {
	u := c.serve(func(p *peer) {
		if _, err := p.request(); err != nil {
			return
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(pieces) + "\r\n\r\n")
		for range pieces {
			p.trickle("x", pause)
		}
		p.awaitClose()
	})
	for _, bodyIdle := range []time.Duration{6 * limit, 0} {
		cl := c.client(u, flowing, timeouts(func(t *clients.Timeouts) { t.BodyIdle = bodyIdle }))
		c.ok(cl, get("/"), strings.Repeat("x", pieces))
	}
}

func slowReader(c *check) {
	u := c.always(ok("1234567890"))
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.BodyIdle = limit }))
	resp := c.do(cl, get("/"))
	got := make([]byte, 5)
	_, _ = io.ReadFull(resp.Body, got)
	<-time.After(2 * limit) // downstream takes its time
	if rest := c.whole(resp); string(got)+rest != "1234567890" {
		c.errorf("got %q and %q", got, rest)
	}
}

func uploadUnread(c *check) {
	ended := make(chan struct{})
	u := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			<-ended
		}
	})
	c.onEnd(func() { close(ended) })
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.BodyIdle = limit }))
	c.returns("an upload that upstream does not read", func() {
		c.fails(cl, streaming("/", zeros{}), clients.TimeoutBody)
	})
}

func uploadSilent(c *check) {
	u := c.serve(silent)
	cl := c.client(u, timeouts(func(t *clients.Timeouts) { t.BodyIdle = limit }))
	r, w := io.Pipe()
	c.onEnd(func() { _ = w.Close() })
	c.lasts(limit, func() { c.fails(cl, streaming("/", r), clients.TimeoutBody) })
}

func noLingering(c *check) {
	u := c.always(ok("-"))
	cl, dialer := c.dialingClient(u, func(s *clients.Settings) {
		s.Timeouts.ResponseHeader, s.Timeouts.Request, s.Timeouts.BodyIdle = 4*limit, 4*limit, 4*limit
	})
	large := noise(1<<20, 1)
	c.ok(cl, post("/", large), "-")
	<-time.After(5 * limit)
	c.ok(cl, get("/"), "-")
	<-time.After(5 * limit)
	c.ok(cl, post("/", large), "-")
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections, want 1", n)
	}
}

func noLimits(c *check) {
	u := c.serve(func(p *peer) {
		if _, err := p.request(); err != nil {
			return
		}
		p.trickle("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", limit)
		p.trickle("12345", limit)
		p.awaitClose()
	})
	cl := c.client(u, func(s *clients.Settings) { s.Timeouts = clients.Timeouts{} })
	c.ok(cl, get("/"), "12345")
}
