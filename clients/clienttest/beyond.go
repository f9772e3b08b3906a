package clienttest

import (
	"io"
	"slices"
	"strings"
	"sync"

	"gatebench/clients"
)

// What comes before and after a response: interim responses, trailers, another
// protocol.
func beyondCases() []testCase {
	return []testCase{
		rule("interim-skipped", "1xx are not the answer, asked for or not, and put no later answer out of step (RFC 9110, section 15.2; valyala/fasthttp#2333)", interimSkipped),
		rule("1xx", "every 1xx but 100 and 101 is told to Informational, before Do returns (golang/go#65123)", interim),
		rule("no-waiting-for-100", "a request body is sent without waiting for 100 Continue: the hop has dealt with Expect (golang/go#75933)", noWaitingFor100),
		rule("trailers", "trailers are told after the body, announced or not, and stand not among the fields (golang/go#20437)", trailers),
		rule("odd-trailers", "a trailer that has no business there (Set-Cookie, X-Forwarded-For) does not spoil the response (RFC 9110, section 6.5.1)", oddTrailers),
		rule("upgrade", "after 101 the connection is handed over, both ways (RFC 9110, section 7.8)", upgrade),
		rule("upgraded-never-pooled", "a connection that left HTTP carries no further request (valyala/fasthttp#266); a client that cannot hand it over says so, kind unsupported, and sends nothing", upgradedNeverPooled),
	}
}

const earlyHints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"

func interimSkipped(c *check) {
	u := c.answer(func(h *heard) string {
		return "HTTP/1.1 100 Continue\r\n\r\n" + "HTTP/1.1 102 Processing\r\n\r\n" + earlyHints + ok(h.Target)
	})
	cl, dialer := c.dialingClient(u)
	for _, target := range []string{"/1", "/2", "/3"} {
		resp := c.do(cl, get(target))
		if resp.Fields.Has("Link") {
			c.errorf("%s: a field of the 103 stands in the answer", target)
		}
		if resp.Status != 200 {
			c.fatalf("%s: got %d", target, resp.Status)
		}
		if body := c.whole(resp); body != target {
			c.errorf("%s: got %q", target, body)
		}
	}
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections, want 1", n)
	}
}

func interim(c *check) {
	u := c.always("HTTP/1.1 100 Continue\r\n\r\n" + "HTTP/1.1 102 Processing\r\n\r\n" + earlyHints + ok("-"))
	var (
		mu    sync.Mutex
		seen  []int
		links []string
	)
	req := get("/")
	req.Informational = func(status int, fields clients.Fields) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, status)
		links = append(links, strings.Clone(fields.Get("Link")))
	}
	resp := c.do(c.client(u), req)
	mu.Lock()
	if !slices.Equal(seen, []int{102, 103}) || links[len(links)-1] != "</style.css>; rel=preload" {
		c.errorf("told %v with Link %q, want 102 and 103 with their fields", seen, links)
	}
	mu.Unlock()
	c.whole(resp)
}

func noWaitingFor100(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	c.returns("a POST", func() { c.ok(cl, post("/", "body"), "-") })
	if u.last().Fields.Has("Expect") {
		c.errorf("Expect was invented")
	}
}

func trailers(c *check) {
	u := c.always("HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n" +
		chunk("body") + "0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n")
	cl, dialer := c.dialingClient(u)
	for range 2 {
		resp := c.do(cl, get("/"))
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "body" {
			c.errorf("body %q, %v", body, err)
		}
		if resp.Fields.Has("X-Sum") || resp.Fields.Has("X-More") {
			c.errorf("a trailer stands among the fields")
		}
		if resp.Trailers == nil {
			c.fatalf("no trailers")
		}
		for name, want := range map[string]string{"X-Sum": "1", "X-More": "2"} {
			if got := resp.Trailers().Get(name); got != want {
				c.errorf("trailer %s is %q, want %q", name, got, want)
			}
		}
		resp.End(nil)
	}
	if n := dialer.Opened(); n != 1 {
		c.errorf("%d connections, want 1", n)
	}
}

func oddTrailers(c *check) {
	u := c.answer(func(h *heard) string {
		announced := "HTTP/1.1 200 OK\r\nTrailer: Set-Cookie, X-Forwarded-For\r\nTransfer-Encoding: chunked\r\n\r\n"
		if h.Target == "/unannounced" {
			announced = chunkedHead
		}
		return announced + chunk("body") + "0\r\nSet-Cookie: a=1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"
	})
	cl := c.client(u)
	for _, target := range []string{"/announced", "/unannounced"} {
		resp := c.do(cl, get(target))
		if resp.Fields.Has("Set-Cookie") || resp.Fields.Has("X-Forwarded-For") {
			c.errorf("%s: a trailer stands among the fields", target)
		}
		if body := c.whole(resp); body != "body" {
			c.errorf("%s: body %q", target, body)
		}
	}
}

// echoing upgrades whoever asks and then sends back what comes, in capitals.
func (c *check) echoing() *upstream {
	return c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			if !h.Fields.Has("Upgrade") {
				p.send(ok(h.Target))
				continue
			}
			p.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			for {
				line, err := p.br.ReadString('\n')
				if err != nil {
					return
				}
				p.send(strings.ToUpper(line))
			}
		}
	})
}

func upgrading() *clients.Request {
	req := get("/upgrade")
	req.Fields = clients.Fields{{Name: "Connection", Value: "Upgrade"}, {Name: "Upgrade", Value: "echo"}}
	return req
}

func upgrade(c *check) {
	resp := c.do(c.client(c.echoing()), upgrading())
	if resp.Status != 101 || resp.Upgraded == nil {
		c.fatalf("got status %d, connection handed over: %t", resp.Status, resp.Upgraded != nil)
	}
	c.returns("an echo", func() {
		for _, want := range []string{"HELLO\n", "AGAIN\n"} {
			got := make([]byte, len(want))
			if _, err := io.WriteString(resp.Upgraded, strings.ToLower(want)); err != nil {
				c.errorf("write: %v", err)
			}
			if _, err := io.ReadFull(resp.Upgraded, got); err != nil || string(got) != want {
				c.errorf("got %q, %v, want %q", got, err, want)
			}
		}
	})
	resp.End(nil)
}

func upgradedNeverPooled(c *check) {
	u := c.echoing()
	cl := c.client(u)
	if resp, err := cl.Do(c.ctx, upgrading()); err == nil {
		resp.End(nil)
	} else if c.checkError(err); clients.KindOf(err) != clients.Unsupported || u.connections() > 0 {
		c.errorf("refused with %v over %d connections, want unsupported and none", err, u.connections())
	}
	for _, target := range []string{"/1", "/2"} {
		c.returns(target, func() { c.ok(cl, get(target), target) })
	}
	if !u.closedButFor(1) {
		c.errorf("the upgraded connection is still open after End")
	}
}
