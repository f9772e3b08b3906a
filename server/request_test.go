package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients"
)

// What the handler is given.
func requestRules() []rule {
	return []rule{
		{"target-verbatim", "the target reaches the handler byte for byte", targetVerbatim},
		{"bad-escape-target", "so does one with a malformed percent escape: that is for upstream to judge", func(c *check) { c.seesTarget("GET", "/%zz", "/%zz", "h") }},
		{"absolute-form", "an absolute target is reduced to its path, and its authority is the host (RFC 9112, section 3.2.2)", absoluteForm},
		{"options-asterisk", "OPTIONS * is for the handler", func(c *check) { c.seesTarget("OPTIONS", "*", "*", "h") }},
		{"request-fields", "fields arrive with their values, repeated ones repeated, without Host and framing, hop-by-hop ones included", requestFields},
		{"field-order", "fields keep their order, both ways", fieldOrder},
		{"field-case", "field names keep their case", fieldCase},
		{"request-line", "method, version and peer are told", requestLine},
	}
}

// seesTarget wants target to reach the handler as seen, with that host.
func (c *check) seesTarget(method, target, seen, host string) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		return text(200, in.Host+" "+in.Target)
	})
	p := s.dial()
	p.send(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")
	p.ok(host + " " + seen)
}

func targetVerbatim(c *check) {
	for _, target := range []string{
		"/", "/a%2Fb", "/a//b", "/a/../b", "/a/%2e%2e/b", "/a?", "/a?x=1;y=2", "/a?x=%zz", "/%E2%82%AC",
		"/a%3Fb", "/a;p=1", "//h/p", "/p!q", "/%252e", "/a?u=http://x/", "/\"<>",
	} {
		c.seesTarget("GET", target, target, "h")
	}
}

func absoluteForm(c *check) {
	for target, seen := range map[string]string{
		"http://other:81/a%2Fb?x":  "other:81 /a%2Fb?x",
		"HTTPS://other":            "other /",
		"http://other?x":           "other /?x",
		"http://127.0.0.1:1//p/..": "127.0.0.1:1 //p/..",
	} {
		host, origin, _ := strings.Cut(seen, " ")
		c.seesTarget("GET", target, origin, host)
	}
	c.seesTarget("OPTIONS", "http://other", "*", "other")
}

// seen returns a handler that keeps an owned copy of what it is given.
func seen() (handlerFunc, <-chan Inbound) {
	ch := make(chan Inbound, 1)
	return func(_ context.Context, in *Inbound) *clients.Response {
		got := *in
		got.Fields = slices.Clone(in.Fields)
		got.Own()
		ch <- got
		return text(200, "-")
	}, ch
}

const head = " / HTTP/1.1\r\nHost: h\r\n"

func requestFields(c *check) {
	h, got := seen()
	p := c.serve(h).dial()
	p.send("POST" + head + "X-A: 1\r\nX-A:2  \r\nConnection: keep-alive, X-Hop\r\nX-Empty:\r\nCookie: a=1;b=2; a=3\r\nX-B: \xe2\x82\xac\r\nContent-Length: 2\r\n\r\nhi")
	p.status(200)
	in := receive(c, "the request", got)
	want := clients.Fields{{Name: "Connection", Value: "keep-alive, X-Hop"}, {Name: "Cookie", Value: "a=1;b=2; a=3"}, {Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-B", Value: "€"}, {Name: "X-Empty", Value: ""}}
	slices.SortStableFunc(in.Fields, func(a, b clients.Field) int { return strings.Compare(a.Name, b.Name) })
	if d := cmp.Diff(want, in.Fields); d != "" {
		c.errorf("fields (-want +got):\n%s", d)
	}
	if in.ContentLength != 2 {
		c.errorf("length %d, want 2", in.ContentLength)
	}
}

func fieldOrder(c *check) {
	got := make(chan string, 1)
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		var names []string
		for _, f := range in.Fields {
			names = append(names, f.Name)
		}
		got <- strings.Join(names, " ")
		return clients.NewResponse(200, clients.Fields{{Name: "X-Z", Value: "1"}, {Name: "Content-Type", Value: "a/b"}, {Name: "Set-Cookie", Value: "a"}, {Name: "X-A", Value: "2"}}, nil)
	})
	p := s.dial()
	p.send("GET" + head + "X-Z: 1\r\nX-A: 2\r\nX-M: 3\r\n\r\n")
	if order := receive(c, "the request", got); order != "X-Z X-A X-M" {
		c.errorf("received %s", order)
	}
	var order []string
	for _, l := range p.head() {
		if name, _, ok := strings.Cut(l, ":"); ok && name != "Date" && name != "Content-Length" {
			order = append(order, name)
		}
	}
	if want := []string{"X-Z", "Content-Type", "Set-Cookie", "X-A"}; !slices.Equal(order, want) {
		c.errorf("sent %v, want %v", order, want)
	}
}

func fieldCase(c *check) {
	h, got := seen()
	p := c.serve(h).dial()
	p.send("GET" + head + "x-lower: 1\r\nX-UPPER: 2\r\n\r\n")
	p.status(200)
	if in := receive(c, "the request", got); in.Fields[0].Name != "x-lower" || in.Fields[1].Name != "X-UPPER" {
		c.errorf("received %v", in.Fields)
	}
}

func requestLine(c *check) {
	h, got := seen()
	s := c.serve(h)
	for minor, method := range []string{"BREW", "GET"} {
		s.dial().send(fmt.Sprintf("%s / HTTP/1.%d\r\nHost: h\r\n\r\n", method, minor))
		in := receive(c, "the request", got)
		if in.Method != method || in.ProtoMinor != minor || in.RemoteIP != "127.0.0.1" || in.Body != nil || in.ContentLength != 0 {
			c.errorf("got %s 1.%d from %q, body %v of %d", in.Method, in.ProtoMinor, in.RemoteIP, in.Body, in.ContentLength)
		}
	}
}

// Request bodies.
func bodyRules() []rule {
	return []rule{
		{"body-streams", "the handler reads a body while it is still being sent", bodyStreams},
		{"body-known", "a body of known length has it, one of length 0 is none", bodyKnown},
		{"body-chunked", "a chunked body has length -1 and arrives whole", bodyChunked},
		{"body-limit-known", "a body announced longer than the limit is 413 before the handler runs", bodyLimitKnown},
		{"body-limit-unknown", "a chunked body gives request_too_large at the byte beyond the limit, and all of it up to there", bodyLimitUnknown},
		{"body-silence", "silence within a body is timeout_body, told by BodyErr", bodySilence},
		{"body-slower-than-head", "a body may take longer than a head, from its first byte on", bodySlowerThanHead},
		{"body-cut-short", "a body whose sender goes away is canceled, never a clean end", bodyCutShort},
		{"body-bad-chunk", "a chunk that is none is bad_request, and nothing behind it becomes a request", bodyBadChunk},
		{"body-detached", "a Read after the exchange gives an error, one in progress is interrupted, and the connection closes", bodyDetached},
		{"body-read-after-early-answer", "a client that reads on after an early answer harms nobody (a panic there once ended the process)", bodyReadAfterEarlyAnswer},
		{"early-answer", "an answer that does not wait for the body reaches a peer that is still sending, even a slow one", earlyAnswer},
		{"answer-before-body", "an answer does not wait for any byte of the body", answerBeforeBody},
		{"lingering", "a connection that closes on a peer that is still sending does not reset it at once (RFC 9112, section 9.6)", lingering},
		{"late-reader", "what follows an upload cut off within is never taken for a request", lateReader},
		{"unwanted-body", "a small body that nobody read does not cost the connection", unwantedBody},
		{"continue-on-read", "100 Continue goes out when the body is read first, and not if it is not (RFC 9110, section 10.1.1)", continueOnRead},
		{"expect-too-large", "a peer that waits for 100 Continue gets 413 instead if its body is too long", expectTooLarge},
		{"expect-continue", "a peer that waits for 100 Continue gets it and is served", expectContinue},
	}
}

// echo answers with the body.
func echo(_ context.Context, in *Inbound) *clients.Response {
	if in.Body == nil {
		return text(200, "none")
	}
	b, err := io.ReadAll(in.Body)
	if err != nil {
		return text(400, err.Error())
	}
	return text(200, fmt.Sprint(in.ContentLength, " ", string(b)))
}

func bodyStreams(c *check) {
	first := make(chan string)
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		b := make([]byte, 5)
		_, _ = io.ReadFull(in.Body, b)
		first <- string(b)
		rest, _ := io.ReadAll(in.Body)
		return text(200, string(rest))
	})
	for framing, parts := range map[string][2]string{
		"Content-Length: 10\r\n":         {"first", "last!"},
		"Transfer-Encoding: chunked\r\n": {"5\r\nfirst\r\n", "5\r\nlast!\r\n0\r\n\r\n"},
	} {
		p := s.dial()
		p.send("POST" + head + framing + "\r\n" + parts[0])
		if got := receive(c, "the beginning of the body", first); got != "first" {
			c.errorf("%s: got %q first", framing, got)
		}
		p.send(parts[1])
		p.ok("last!")
	}
}

func bodyKnown(c *check) {
	p := c.serve(echo).dial()
	p.send("POST" + head + "Content-Length: 3\r\n\r\nabc")
	p.ok("3 abc")
	p.send("POST" + head + "Content-Length: 0\r\n\r\n")
	p.ok("none")
	p.send("GET" + head + "Content-Length: 2\r\n\r\nhi")
	p.ok("2 hi")
}

func bodyChunked(c *check) {
	p := c.serve(echo).dial()
	p.send("POST" + head + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n")
	p.ok("-1 abc0123456789")
}

func bodyLimitKnown(c *check) {
	c.cfg.MaxBodyBytes = 10
	called := make(chan bool, 1)
	s := c.serve(func(context.Context, *Inbound) *clients.Response { called <- true; return text(200, "") })
	if got := s.talk("POST" + head + "Content-Length: 11\r\n\r\n0"); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		c.errorf("got %.200q", got)
	}
	select {
	case <-called:
		c.errorf("the handler ran")
	default:
	}
	p := s.dial()
	p.send("POST" + head + "Content-Length: 10\r\n\r\n0123456789")
	p.status(200)
}

func bodyLimitUnknown(c *check) {
	c.cfg.MaxBodyBytes = 10
	type result struct {
		body string
		err  error
	}
	got := make(chan result, 1)
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		b, err := io.ReadAll(in.Body)
		if err == nil != (in.BodyErr() == nil) {
			c.errorf("Read gave %v, BodyErr %v", err, in.BodyErr())
		}
		got <- result{string(b), err}
		return text(200, "")
	})
	p := s.dial()
	p.send("POST" + head + "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n2\r\n89\r\n0\r\n\r\n")
	if r := receive(c, "the body", got); r.body != "0123456789" || r.err != nil {
		c.errorf("at the limit: %q, %v", r.body, r.err)
	}
	p.status(200)
	p = s.dial()
	p.send("POST" + head + "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n5\r\n89abc\r\n0\r\n\r\n")
	if r := receive(c, "the body", got); r.body != "0123456789" || clients.KindOf(r.err) != clients.RequestTooLarge {
		c.errorf("beyond the limit: %q, %v", r.body, r.err)
	}
	p.status(200)
	p.closed()
}

func bodySilence(c *check) {
	c.cfg.BodyIdle = 50 * time.Millisecond
	got := make(chan [2]error, 1)
	s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		// As a client over net/http does: the reader is elsewhere, and the
		// end of ctx may be seen first.
		read := make(chan error)
		go func() { _, err := io.ReadAll(in.Body); read <- err }()
		var readErr, bodyErr error
		select {
		case <-ctx.Done():
			bodyErr = in.BodyErr()
			readErr = <-read
		case readErr = <-read:
			bodyErr = in.BodyErr()
		}
		got <- [2]error{readErr, bodyErr}
		return text(504, "")
	})
	p := s.dial()
	p.send("POST" + head + "Content-Length: 10\r\n\r\nabc")
	for i, err := range receive(c, "an error", got) {
		if clients.KindOf(err) != clients.TimeoutBody {
			c.errorf("%s gave %v", [...]string{"Read", "BodyErr"}[i], err)
		}
	}
	p.status(504)
	p.closed()
}

// The bound of the head ends with the head.
func bodySlowerThanHead(c *check) {
	const headTime = 200 * time.Millisecond
	for _, idle := range []time.Duration{0, patience} {
		c.cfg.ReadHeaderTimeout, c.cfg.BodyIdle = headTime, idle
		s := c.serve(echo)
		for _, body := range [][3]string{
			{"Content-Length: 2\r\n\r\n", "a", "b"},
			{"Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "1\r\nb\r\n0\r\n\r\n"},
		} {
			p := s.dial()
			p.send("POST" + head + body[0])
			for _, piece := range body[1:] {
				time.Sleep(headTime * 3 / 2) // longer than the head may take
				p.send(piece)
			}
			if resp, got := p.answer("POST"); resp.StatusCode != 200 || !strings.HasSuffix(got, " ab") {
				c.errorf("body_idle %v, %q: got %d %q", idle, body[0], resp.StatusCode, got)
			}
		}
	}
}

func bodyCutShort(c *check) {
	got := make(chan error, 1)
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		_, err := io.ReadAll(in.Body)
		got <- err
		return nil
	})
	for _, cut := range []string{"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		p := s.dial()
		p.send("POST" + head + cut)
		_ = p.CloseWrite()
		if err := receive(c, "an error", got); clients.KindOf(err) != clients.Canceled {
			c.errorf("%q: got %v", cut, err)
		}
	}
}

func bodyBadChunk(c *check) {
	targets := make(chan string, 10)
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		targets <- strings.Clone(in.Target)
		_, err := io.ReadAll(in.Body)
		return text(400, clients.KindOf(err).String())
	})
	got := s.talk("POST" + head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
	if !strings.Contains(got, "bad_request") || strings.Count(got, "HTTP/1.1 ") != 1 || len(targets) != 1 {
		c.errorf("got %q after %d requests", got, len(targets))
	}
}

func bodyDetached(c *check) {
	var body io.Reader
	var read chan error
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		body = in.Body
		b := make([]byte, 1)
		_, _ = in.Body.Read(b)
		done := make(chan error, 1)
		read = done
		go func(r io.Reader) { _, err := r.Read(b); done <- err }(in.Body)
		c.eventually("a Read to be in progress", func() bool {
			in.upload.mu.Lock()
			defer in.upload.mu.Unlock()
			return in.upload.reading
		})
		return text(403, "no")
	})
	p := s.dial()
	p.send("POST" + head + "Content-Length: 1000\r\n\r\na")
	if resp, _ := p.answer("POST"); resp.StatusCode != 403 || !resp.Close {
		c.errorf("got %d, Connection: close is %v", resp.StatusCode, resp.Close)
	}
	if err := receive(c, "the Read in progress", read); clients.KindOf(err) != clients.Canceled {
		c.errorf("the Read in progress gave %v", err)
	}
	if n, err := body.Read(make([]byte, 1)); n != 0 || clients.KindOf(err) != clients.Canceled {
		c.errorf("a late Read gave %d, %v", n, err)
	}
	p.closed()
}

func bodyReadAfterEarlyAnswer(c *check) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		body := in.Body
		go func() {
			buf := make([]byte, 512)
			for {
				if _, err := body.Read(buf); err != nil {
					return
				}
			}
		}()
		return text(413, "too much")
	})
	chunk := strings.Repeat("x", 4<<10)
	for range 20 {
		p := s.dial()
		p.send("POST" + head + "Content-Length: 10000000\r\n\r\n" + chunk)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range 50 {
				if _, err := io.WriteString(p.TCPConn, chunk); err != nil {
					return
				}
			}
			_ = p.CloseWrite()
		}()
		resp, body := p.answer("POST")
		if resp.StatusCode != 413 || body != "too much" {
			c.errorf("got %d %q", resp.StatusCode, body)
		}
		<-sent
	}
	if n := c.logs.count("panic"); n > 0 {
		c.errorf("%d panics", n)
	}
}

func earlyAnswer(c *check) {
	c.cfg.ReadHeaderTimeout = 0 // it shall not be what ends the wait for the rest
	s := c.serve(func(context.Context, *Inbound) *clients.Response { return text(503, "busy") })
	for _, length := range []int{100, 1 << 30} { // one that fits the discard, one that does not
		p := s.dial()
		p.send("POST" + head + fmt.Sprintf("Content-Length: %d\r\n\r\nabc", length))
		resp, body := p.answer("POST")
		if resp.StatusCode != 503 || body != "busy" {
			c.errorf("got %d %q", resp.StatusCode, body)
		}
		if long := length > maxDiscard; resp.Close != long {
			c.errorf("%d bytes: Connection: close is %v", length, resp.Close)
		}
		p.closed() // at once, or as the rest does not come
	}
	// A peer that sends with all its might before it reads.
	p := s.dial()
	p.send("POST" + head + "Content-Length: 100000000\r\n\r\n")
	piece := strings.Repeat("x", 64<<10)
	for {
		if _, err := io.WriteString(p.TCPConn, piece); err != nil {
			break
		}
	}
	if got, _ := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		c.errorf("a peer that writes first got %.60q", got)
	}
}

func answerBeforeBody(c *check) {
	p := c.serve(func(context.Context, *Inbound) *clients.Response { return text(503, "busy") }).dial()
	c.must(p.SetReadDeadline(time.Now().Add(time.Second)))
	p.send("POST" + head + "Content-Length: 100\r\n\r\n")
	p.status(503)
}

func lingering(c *check) {
	c.cfg.MaxBodyBytes = 10 << 10
	s := c.serve(func(context.Context, *Inbound) *clients.Response { return text(503, "busy") })
	for _, length := range []int{100 << 10, 1 << 30} {
		p := s.dial()
		p.send("POST" + head + fmt.Sprintf("Content-Length: %d\r\n\r\nabc", length))
		p.status(413)
		p.closed()
		for range 10 {
			if _, err := io.WriteString(p, "more of it"); err != nil {
				c.errorf("%d bytes: %v", length, err)
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func lateReader(c *check) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, test := range []struct {
		name         string
		before, then string
		fails        bool // before is malformed, the reader does not wait
	}{
		{"within a body", "Content-Length: 1000\r\n\r\nabc", hidden, false},
		{"within a chunk's size", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1", "0\r\n\r\n" + hidden, false},
		{"at a bad chunk", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n0\r\n\r\n" + hidden, "", true},
	} {
		targets := make(chan string, 10)
		s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
			targets <- strings.Clone(in.Target)
			upload := in.upload
			if upload == nil {
				return text(200, "hidden")
			}
			return streaming(readerFunc(func([]byte) (int, error) { // after the head
				var bytes atomic.Int32
				var failed atomic.Bool
				go func() {
					for buf := make([]byte, 1); ; {
						n, err := upload.Read(buf)
						bytes.Add(int32(n))
						if err != nil {
							failed.Store(true)
							return
						}
					}
				}()
				c.eventually("the end of what was sent", func() bool {
					upload.mu.Lock()
					defer upload.mu.Unlock()
					return bytes.Load() == 3 && upload.reading != test.fails && failed.Load() == test.fails
				})
				return 0, io.EOF
			}))
		})
		p := s.dial()
		p.send("POST" + head + test.before)
		p.status(200)
		_, _ = io.WriteString(p, test.then)
		p.closed()
		if n := len(targets); n != 1 {
			c.errorf("%s: the handler ran %d times", test.name, n)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func unwantedBody(c *check) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response { return text(200, in.Target) })
	p := s.dial()
	for range 3 {
		p.send("POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("GET / HTTP/1.1\r\n\r\n..", 1000))
		p.ok("/unread")
	}
	if n := s.Conns().Opened; n != 1 {
		c.errorf("%d connections", n)
	}
}

func continueOnRead(c *check) {
	s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		if in.Target == "/refuse" {
			return text(401, "who are you")
		}
		return echo(ctx, in)
	})
	p := s.dial()
	p.send("POST /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	if l := p.line(); l != "HTTP/1.1 401 Unauthorized" {
		c.errorf("a refused upload got %q first", l)
	}
}

func expectTooLarge(c *check) {
	c.cfg.MaxBodyBytes = 4
	c.cfg.Reject = func(status int, _ clients.Kind, detail string) *clients.Response {
		return text(status, "worded: "+detail)
	}
	s := c.serve(echo)
	got := s.talk("POST" + head + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "Connection: close") || !strings.HasSuffix(got, "worded: the request body is longer than 4 bytes") {
		c.errorf("got %q", got)
	}
}

func expectContinue(c *check) {
	p := c.serve(echo).dial()
	p.send("POST" + head + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	if l := p.line(); l != "HTTP/1.1 100 Continue" {
		c.fatalf("got %q", l)
	}
	_ = p.line()
	p.send("hello")
	p.ok("5 hello")
}

// What is refused, and how.
func refusalRules() []rule {
	return []rule{
		{"bad-target", "a target that is no path, URL or OPTIONS * is 400, and never a request to where it says", badTarget},
		{"malformed", "what is not HTTP is 400 and ends the connection", refused(400,
			"GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX A: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n",
			"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", "POST"+head+"Content-Length: -1\r\n\r\n", "POST"+head+"Content-Length: 1x\r\n\r\nab")},
		{"differing-lengths", "two Content-Lengths that differ are 400", refused(400, "POST"+head+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef")},
		{"length-and-coding", "Content-Length beside Transfer-Encoding is 400 (RFC 9112, section 6.1)", refused(400,
			"POST"+head+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST"+head+"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n")},
		{"http10-coding", "Transfer-Encoding over HTTP/1.0 is 400 (RFC 9112, section 6.1)", refused(400,
			"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
		{"folded-field", "a folded field is 400 (RFC 9112, section 5.2)", refused(400, "GET"+head+"Connection: close\r\nX-A: 1\r\n 2\r\n\r\n")},
		{"unknown-coding", "a transfer coding other than chunked is refused", refusedWithAny("400 501",
			"POST"+head+"Transfer-Encoding: identity\r\n\r\n", "POST"+head+"Transfer-Encoding: gzip\r\n\r\n", "POST"+head+"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "POST"+head+"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n")},
		{"nothing-hides", "what hides behind a body never becomes a request of its own", nothingHides},
		{"version", "other versions are refused", refusedWithAny("400 505", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "GET / HTTP/0.9\r\nHost: h\r\n\r\n", "GET / HTTP/3.1\r\nHost: h\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
		{"header-limit", "a head beyond the limit is 431, one just within is served", headerLimit},
		{"worded-refusals", "the owner words every answer of the server's own", wordedRefusals},
		{"slow-head", "who takes too long over a head is cut off (net/http may call half a line malformed)", slowHead},
		{"idle", "a silent connection is closed", idleCut},
	}
}

// refused wants each of the raw requests to get that status and nothing more.
func refused(status int, raw ...string) func(*check) {
	return refusedWithAny(fmt.Sprint(status), raw...)
}

func refusedWithAny(statuses string, raws ...string) func(*check) {
	return func(c *check) {
		ran := make(chan string, 100)
		s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
			ran <- strings.Clone(in.Method)
			return echo(ctx, in)
		})
		for _, raw := range raws {
			got := s.talk(raw)
			status, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(got, "HTTP/1.1 "), "HTTP/1.0 "), " ")
			if !slices.Contains(strings.Fields(statuses), strings.TrimSuffix(status, ":")) || strings.Count(got, "HTTP/1.") > 1 {
				c.errorf("%q got %.100q, want one %s", raw, got, statuses)
			}
		}
		if len(ran) > 0 {
			c.errorf("the handler ran %d times", len(ran))
		}
	}
}

func badTarget(c *check) {
	refused(400, "GET h HTTP/1.1\r\nHost: h\r\n\r\n", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n",
		"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://u:p@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h#f HTTP/1.1\r\nHost: h\r\n\r\n")(c)
}

func nothingHides(c *check) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	targets := make(chan string, 100)
	s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		targets <- strings.Clone(in.Target)
		return echo(ctx, in)
	})
	for _, raw := range []string{
		"POST" + head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden,
		fmt.Sprintf("POST"+head+"Content-Length: %d\r\nConnection: close\r\n\r\n", len(hidden)) + hidden,
	} {
		_ = s.talk(raw)
	}
	for len(targets) > 0 {
		if target := <-targets; target != "/" {
			c.errorf("%s reached the handler", target)
		}
	}
}

func headerLimit(c *check) {
	c.cfg.MaxHeaderBytes = 8 << 10
	s := c.serve(func(context.Context, *Inbound) *clients.Response { return text(200, "") })
	frame := "GET" + head + "Connection: close\r\nX: "
	within := frame + strings.Repeat("x", 8<<10-len(frame)-4) + "\r\n\r\n"
	if got := s.talk(within); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		c.errorf("a head of %d bytes got %.60q", len(within), got)
	}
	if got := s.talk("x" + within); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		c.errorf("a head of %d bytes got %.60q", len(within)+1, got)
	}
	if got := s.talk(frame + strings.Repeat("x", 100<<10)); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		c.errorf("a head without end got %.60q", got)
	}
}

func wordedRefusals(c *check) {
	c.cfg.MaxHeaderBytes, c.cfg.MaxBodyBytes = 8<<10, 10
	c.cfg.Reject = func(status int, reason clients.Kind, detail string) *clients.Response {
		return clients.NewResponse(status, clients.Fields{{Name: "X-Reason", Value: reason.String()}}, []byte("worded: "+detail))
	}
	s := c.serve(func(context.Context, *Inbound) *clients.Response { panic("no") })
	for want, raw := range map[string]string{
		"500 none":              "GET" + head + "Connection: close\r\n\r\n",
		"413 request_too_large": "POST" + head + "Content-Length: 11\r\n\r\n0",
		"400 bad_request":       "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
		"431 bad_request":       "GET" + head + "X: " + strings.Repeat("x", 9<<10),
	} {
		status, reason, _ := strings.Cut(want, " ")
		got := s.talk(raw)
		if !strings.HasPrefix(got, "HTTP/1.1 "+status) || !strings.Contains(got, "X-Reason: "+reason) || !strings.Contains(got, "worded: ") {
			c.errorf("got %.200q, want %s", got, want)
		}
	}
}

func slowHead(c *check) {
	c.cfg.ReadHeaderTimeout = 100 * time.Millisecond
	s := c.serve(func(context.Context, *Inbound) *clients.Response { return text(200, "") })
	for _, before := range []string{"", "GET" + head + "\r\n"} {
		p := s.dial()
		if before != "" {
			p.send(before)
			p.status(200)
		}
		start := time.Now()
		ended := make(chan struct{})
		go func() { // one byte at a time, without end
			defer close(ended)
			for i := range 1000 {
				if _, err := p.Write([]byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1000))[i : i+1]); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		if got, _ := p.rest(); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			c.errorf("got %q", got)
		}
		if took := time.Since(start); took < 90*time.Millisecond {
			c.errorf("cut off after %v", took)
		}
		_ = p.Close()
		<-ended
	}
}

func idleCut(c *check) {
	c.cfg.IdleTimeout = 50 * time.Millisecond
	p := c.serve(func(context.Context, *Inbound) *clients.Response { return text(200, "") }).dial()
	p.send("GET" + head + "\r\n")
	p.status(200)
	p.closed()
}

// Nothing that knows two versions is told of a third.
func TestALaterMinorVersionIsServedAsHTTP11OrRefused(t *testing.T) {
	each(t, func(_ *testing.T, c *check) {
		s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
			return text(200, fmt.Sprint("minor ", in.ProtoMinor))
		})
		for _, minor := range []int{2, 3, 9} {
			got := s.talk(fmt.Sprintf("GET / HTTP/1.%d\r\nHost: h\r\nConnection: close\r\n\r\n", minor))
			served := strings.HasPrefix(got, "HTTP/1.1 200 ") && strings.HasSuffix(got, "minor 1")
			if !served && !strings.HasPrefix(got, "HTTP/1.1 505 ") {
				c.errorf("HTTP/1.%d got %q", minor, got)
			}
		}
	})
}

// On net/http ctx ends before the Read that timed out has returned.
func TestBodyErrKnowsOfSilenceBeforeReadReturns(t *testing.T) {
	c := new(conn)
	var in Inbound
	in.upload = newBody(readerFunc(func([]byte) (int, error) {
		if err := in.BodyErr(); err != nil {
			t.Errorf("before: %v", err)
		}
		c.timedOut.Store(true)
		if err := in.BodyErr(); clients.KindOf(err) != clients.TimeoutBody {
			t.Errorf("after: %v", err)
		}
		return 0, os.ErrDeadlineExceeded
	}), c, 10, 0)
	if _, err := in.upload.Read(make([]byte, 1)); clients.KindOf(err) != clients.TimeoutBody {
		t.Errorf("Read: %v", err)
	}
}

func TestOriginForm(t *testing.T) {
	for _, test := range []struct{ method, target, origin, host string }{
		{"GET", "/", "/", ""},
		{"GET", "/a#b", "/a#b", ""},
		{"OPTIONS", "*", "*", ""},
		{"GET", "http://h", "/", "h"},
		{"OPTIONS", "http://h", "*", "h"},
		{"OPTIONS", "http://h/", "/", "h"},
		{"GET", "hTTp://[::1]:80?q", "/?q", "[::1]:80"},
	} {
		origin, host, ok := originForm(test.method, test.target)
		if origin != test.origin || host != test.host || !ok {
			t.Errorf("%s %s: got %q, %q, %v, want %q, %q", test.method, test.target, origin, host, ok, test.origin, test.host)
		}
	}
	for _, target := range []string{"", "*", "a", "h:80", "http://", "http:///a", "http://u@h/", "ftp://h/", "://h", "http://h#f", `http://h\@i/`} {
		if origin, host, ok := originForm("GET", target); ok {
			t.Errorf("%q passes as %q at %q", target, origin, host)
		}
	}
}

func FuzzOriginForm(f *testing.F) {
	for _, seed := range []string{"/", "*", "http://h/p?q", "http://h", "https://u@h/", "//h/p", "h:80", "http://h?x", "http:/h"} {
		f.Add("GET", seed)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		origin, host, ok := originForm(method, target)
		switch {
		case !ok:
			if strings.HasPrefix(target, "/") {
				t.Errorf("%q is refused", target)
			}
		case origin != "*" && !strings.HasPrefix(origin, "/"):
			t.Errorf("%q gives %q", target, origin)
		case host == "" && origin != target:
			t.Errorf("%q was changed to %q", target, origin)
		case strings.ContainsAny(host, "/?#@"):
			t.Errorf("%q gives host %q", target, host)
		}
	})
}
