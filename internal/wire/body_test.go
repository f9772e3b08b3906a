package wire

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Bodies, both ways.
func bodyCases() []testCase {
	return []testCase{
		{name: "post-megabyte", rule: "a megabyte each way is the same bytes on the other side", source: "TestReverseProxy_Post, N17, R15", run: postMegabyte},
		{name: "upload-streams", rule: "upstream reads an upload while it is still being sent", source: "UP02, R6, H7, hashicorp/go-retryablehttp#145", run: uploadStreams},
		{name: "download-streams", rule: "the caller reads a response while it is still being sent", source: "UP03, R10, F9, go-resty/resty#751", run: downloadStreams},
		{name: "head-before-body", rule: "of a response of unknown length the head goes out before any body, and each piece at once",
			source: "TestReverseProxyFlushIntervalHeaders, TestReverseProxyFlushInterval, S17", run: headBeforeBody},
		{name: "event-stream", rule: "so do those of an event stream, with parameters or without, of known length or not",
			source: "TestSelectFlushInterval, S17, N9", run: eventStream},
		{name: "truncated-download", rule: "a body that upstream breaks off never looks whole, has nothing added, and counts as a failure of upstream's",
			source: "TestReverseProxy_CopyBuffer, TestReverseProxy_PanicBodyError, UP01, N18, F32, golang/go#23643, traefik/traefik#13568", run: truncatedDownload},
		{name: "short-replies-to-uploads", rule: "uploads against an upstream that answers without reading, and closes, harm nothing but themselves",
			source: "TestReverseProxy_PanicClosesIncomingBody, N22, golang/go#46866", run: shortReplies},
		{name: "early-413", rule: "an answer that comes before the upload is read reaches the caller, whether upstream then closes or not",
			source: "UP05, F12, S13, cloudfoundry/routing-release#98", unless: []string{"early-response"}, run: early413},
		{name: "early-answer-slow-upload", rule: "it does not wait for a caller who sends the rest of the upload slowly, or never",
			source: "S13, UP05, golang/go#57786", unless: []string{"early-response"}, run: earlyAnswerSlowUpload},
		{name: "own-413", rule: "an upload beyond limits.request_body is 413, no failure of upstream's, and never whole upstream",
			source: "UP05, S16, G2", run: own413},
		{name: "response-limit", rule: "a response beyond limits.response_body is 502 if its length says so and broken off if not; serving goes on",
			source: "UP03, R10, F10", run: responseLimit},
		{name: "slow-giant", rule: "a response of ten gigabytes that hardly comes costs nothing but its connection",
			source: "UP03, valyala/fasthttp#1267", run: slowGiant},
		{name: "trailers", rule: "announced trailers arrive behind the body, with a body or without, with retry on or off",
			source: "TestReverseProxy, PX11, N21, F20, golang/go#20437", run: trailersAnnounced},
		{name: "unannounced-trailers", rule: "so do those that were not announced",
			source: "TestUnannouncedTrailer, PX11, N21", unless: []string{"unannounced-trailers"}, run: trailersUnannounced},
		{name: "trailers-no-fields", rule: "trailers never become fields of the head, and never spoil the body",
			source: "PX11, RFC 9110 section 6.5.1", run: trailersNoFields},
	}
}

func postMegabyte(c *check) {
	body := strings.Repeat("0123456789abcdef", 64<<10)
	up := c.answer(func(m *message) string { return ok(m.Body) })
	gw := c.gateway(up)
	c.whole(c.ask(gw, post("/", body, "Content-Type: multipart/form-data; boundary=x")), 200, body)
	c.whole(c.ask(gw, request("PUT", "/", "Transfer-Encoding: chunked")+chunk(body)+"0\r\n\r\n"), 200, body)
}

// piece is more than any library holds back: they write through buffers of 4 KiB.
var piece = strings.Repeat("p", 64<<10)

func uploadStreams(c *check) {
	up := c.listen()
	gw := c.gateway(up)
	for _, x := range []struct{ field, first, rest string }{
		{"Content-Length: " + strconv.Itoa(2*len(piece)), piece, piece},
		{"Transfer-Encoding: chunked", chunk(piece), chunk(piece) + "0\r\n\r\n"},
	} {
		d := c.dial(gw)
		d.send(request("POST", "/", x.field) + x.first)
		p := up.next()
		m := p.mustHead()
		if _, err := p.br.ReadByte(); err != nil {
			c.errorf("%s: upstream does not see the body begin before it ends: %v", x.field, err)
		}
		_ = p.br.UnreadByte()
		d.send(x.rest)
		m.readBody(p.br, false)
		equal(c, "length of the body upstream", len(m.Body), 2*len(piece))
		p.send(ok("-", "Connection: close"))
		c.whole(d.response("POST"), 200, "-")
		p.end()
	}
}

func downloadStreams(c *check) {
	up := c.listen()
	gw := c.gateway(up)
	for _, x := range []struct{ field, first, rest string }{
		{"Content-Length: " + strconv.Itoa(2*len(piece)), piece, piece},
		{"Transfer-Encoding: chunked", chunk(piece), chunk(piece) + "0\r\n\r\n"},
	} {
		d := c.dial(gw)
		d.send(get("/"))
		p := up.next()
		p.mustRequest()
		p.send("HTTP/1.1 200 OK\r\nConnection: close\r\n" + x.field + "\r\n\r\n" + x.first)
		m := d.head()
		if _, err := d.br.Peek(1); err != nil {
			c.errorf("%s: the caller does not see the body begin before it ends: %v", x.field, err)
		}
		p.send(x.rest)
		p.end()
		d.body(m, "GET")
		c.whole(m, 200, piece+piece)
	}
}

func headBeforeBody(c *check) {
	c.flushes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true)
	c.flushes("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false)
}

func eventStream(c *check) {
	c.flushes("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", true)
	c.flushes("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream;charset=utf-8\r\nConnection: close\r\n\r\n", false)
	c.flushes("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 27\r\n\r\n", false)
}

// flushes plays a body of three events, each sent when the one before has arrived.
func (c *check) flushes(head string, chunked bool) {
	up := c.listen()
	d := c.dial(c.gateway(up))
	d.send(get("/"))
	p := up.next()
	p.mustRequest()
	p.send(head)
	m := d.head()
	encoded := m.Fields.Has("Transfer-Encoding")
	for i := range 3 {
		event := fmt.Sprintf("data: %d\n\n", i)
		if chunked {
			p.send(chunk(event))
		} else {
			p.send(event)
		}
		var got string
		var err error
		if encoded {
			got, err = readChunk(d.br)
		} else {
			b := make([]byte, len(event))
			_, err = d.br.Read(b)
			got = string(b)
		}
		if got != event || err != nil {
			c.errorf("event %d is %q, %v", i, got, err)
		}
	}
	if chunked {
		p.send("0\r\n\r\n")
	}
	p.end()
}

func truncatedDownload(c *check) {
	for _, cut := range []func(*peer){(*peer).end, (*peer).reset} {
		for _, x := range []struct{ answer, begun string }{
			{"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 100), strings.Repeat("x", 100)},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello"},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwor", "hellowor"},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", "hello"},
		} {
			up := c.listen()
			gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1}")
			d := c.dial(gw)
			d.send(get("/"))
			p := up.next()
			p.mustRequest()
			p.send(x.answer)
			m := d.head() // so that the head has gone out before upstream fails
			cut(p)
			d.body(m, "GET")
			c.broken(m, x.begun)
			gw.counted(`gatebench_gateway_requests_total{code="200",reason="protocol"}`, 1)
			gw.breaker("open")
			c.problem(c.ask(gw, get("/")), 503, "breaker_open")
		}
	}
}

func shortReplies(c *check) {
	up := c.serve(func(p *peer) {
		m, err := p.head()
		if err != nil {
			return
		}
		if m.method() == "GET" {
			p.send(ok("fine", "Connection: close"))
			return
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nshort")
	})
	gw := c.gateway(up, "circuit_breaker: {enabled: false}")
	body := strings.Repeat("u", 1<<20)
	for range 2 {
		var all sync.WaitGroup
		for range 5 {
			d := c.dial(gw)
			all.Go(func() {
				go func() { _, _ = d.Write([]byte(post("/", body))) }()
				if m, err := d.tryHead(); err == nil {
					if d.body(m, "POST"); m.status() == 200 && m.Err == nil {
						c.errorf("a short reply looks whole: %q", m.Body)
					}
				}
			})
		}
		all.Wait()
	}
	c.whole(c.ask(gw, get("/")), 200, "fine")
	gw.counted(inFlight, 0)
}

func early413(c *check) {
	apology := strings.Repeat("too large ", 5<<10)
	for _, closes := range []bool{true, false} {
		up := c.serve(func(p *peer) {
			m, err := p.head()
			if err != nil {
				return
			}
			if m.method() == "GET" {
				p.send(ok("fine", "Connection: close"))
				return
			}
			p.send(reply("413 Content Too Large", apology, "Connection: close"))
			if !closes {
				<-p.u.done // unread, as long as the case lasts
			}
		})
		gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1}", "timeouts: {body_idle: 5s}")
		d := c.dial(gw)
		written := d.upload(8 << 20)
		m := d.response("POST")
		c.whole(m, 413, apology)
		<-written
		gw.breaker("closed")
		c.whole(c.ask(gw, get("/")), 200, "fine")
	}
}

func earlyAnswerSlowUpload(c *check) {
	for _, begun := range []string{
		request("POST", "/", "Content-Length: 10000") + "a little",
		request("POST", "/", "Transfer-Encoding: chunked") + chunk("a little"),
	} {
		up := c.listen()
		d := c.dial(c.gateway(up))
		d.send(begun)
		p := up.next()
		p.mustHead()
		p.send(reply("401 Unauthorized", "who?", "Connection: close"))
		c.whole(d.response("POST"), 401, "who?")
		p.end()
	}
}

// upload sends a POST of n bytes beside the caller's reading; the channel closes
// when it has been sent or cannot be.
func (d *caller) upload(n int) <-chan struct{} {
	done := make(chan struct{})
	d.c.running.Go(func() {
		defer close(done)
		_, err := d.Write([]byte(request("POST", "/", "Content-Length: "+strconv.Itoa(n))))
		for sent := 0; sent < n && err == nil; sent += len(piece) {
			_, err = d.Write([]byte(piece))
		}
	})
	return done
}

func own413(c *check) {
	up := c.answer(func(m *message) string { return ok(m.Body) })
	gw := c.gateway(up, "limits: {request_body: 1KiB}", "circuit_breaker: {minimum_calls: 1}")
	full, more := strings.Repeat("f", 1<<10), strings.Repeat("f", 1<<10+1)
	c.whole(c.ask(gw, post("/", full)), 200, full)
	c.whole(c.ask(gw, request("POST", "/", "Transfer-Encoding: chunked")+chunk(full)+"0\r\n\r\n"), 200, full)
	c.problem(c.ask(gw, post("/", more)), 413, "request_too_large")
	equal(c, "requests that arrived", len(up.requests()), 2)
	c.problem(c.ask(gw, request("POST", "/", "Transfer-Encoding: chunked")+chunk(more)+"0\r\n\r\n"), 413, "request_too_large")
	for _, m := range up.requests() {
		if m.Whole && len(m.Body) > len(full) {
			c.errorf("upstream got a whole request of %d bytes", len(m.Body))
		}
	}
	gw.breaker("closed")
}

func responseLimit(c *check) {
	full, more := strings.Repeat("f", 1<<10), strings.Repeat("f", 1<<10+1)
	up := c.answer(func(m *message) string {
		switch m.target() {
		case "/full":
			return ok(full)
		case "/length":
			return ok(more)
		}
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(full[:512]) + chunk(more[:513]) + "0\r\n\r\n"
	})
	gw := c.gateway(up, "limits: {response_body: 1KiB}")
	c.whole(c.ask(gw, get("/full")), 200, full)
	c.problem(c.ask(gw, get("/length")), 502, "response_too_large")
	m := c.ask(gw, get("/chunked"))
	equal(c, "status of what turns out too large", m.status(), 200)
	c.broken(m, full)
	m = c.ask(gw, request("HEAD", "/length"))
	equal(c, "length after HEAD", fmt.Sprint(m.status(), m.all("Content-Length")), "200 [1025]")
	c.whole(c.ask(gw, get("/full")), 200, full)
}

func slowGiant(c *check) {
	up := c.listen()
	gw := c.gateway(up, "limits: {response_body: 0B}")
	d := c.dial(gw)
	d.send(get("/"))
	p := up.next()
	p.mustRequest()
	p.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n" + piece)
	m := d.head()
	equal(c, "Content-Length", m.Fields.Get("Content-Length"), "10000000000")
	if _, err := d.br.Peek(1); err != nil {
		c.errorf("nothing of the body comes: %v", err)
	}
	d2 := c.dial(gw)
	d2.send(get("/"))
	q := up.next()
	q.mustRequest()
	q.send(ok("served", "Connection: close"))
	c.whole(d2.response("GET"), 200, "served")
	p.end()
	d.body(m, "GET")
	c.broken(m, piece)
}

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"

func trailersAnnounced(c *check) {
	up := c.answer(func(m *message) string {
		a := chunkedHead + "Trailer: X-Sum\r\nTrailer: X-Late\r\n\r\n"
		if m.target() == "/body" {
			a += chunk("hello")
		}
		return a + "0\r\nX-Sum: 1\r\nX-Late: a\r\nX-Late: b\r\n\r\n"
	})
	for _, keys := range []string{"retry: {max_attempts: 1}", `retry: {max_attempts: 3, retry_on: ["5xx", reset]}`} {
		d := c.dial(c.gateway(up, keys))
		for target, body := range map[string]string{"/body": "hello", "/empty": ""} {
			m := d.ask(get(target, "TE: trailers"))
			c.whole(m, 200, body)
			equal(c, "trailers", fmt.Sprint(values(m.Trailers, "X-Sum"), values(m.Trailers, "X-Late")), "[1] [a b]")
			if !m.Fields.Has("Trailer") {
				c.errorf("the trailers are not announced downstream")
			}
		}
	}
}

func trailersUnannounced(c *check) {
	gw := c.gateway(c.always(chunkedHead + "\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"))
	m := c.ask(gw, get("/", "TE: trailers"))
	c.whole(m, 200, "hello")
	equal(c, "trailers", fmt.Sprint(values(m.Trailers, "X-Sum")), "[1]")
}

func trailersNoFields(c *check) {
	gw := c.gateway(c.always(chunkedHead + "Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"))
	d := c.dial(gw)
	for range 2 {
		m := d.ask(get("/"))
		c.whole(m, 200, "hello")
		if m.Fields.Has("X-Sum") || m.Fields.Has("X-Other") {
			c.errorf("trailers stand among the fields: %v", m.Fields)
		}
	}
	// No trailers without chunks.
	old := c.dial(gw)
	old.send("GET / HTTP/1.0\r\n\r\n")
	m := old.response("GET")
	c.whole(m, 200, "hello")
	if m.Fields.Has("Trailer") || m.Fields.Has("Transfer-Encoding") {
		c.errorf("HTTP/1.0 gets %v", m.Fields)
	}
}
