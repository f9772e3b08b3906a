package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gatebench/clients"
)

// What goes out.
func responseRules() []rule {
	return []rule{
		{"response-fields", "fields go out as given, repeated ones repeated, several cookies in their order", responseFields},
		{"repeated-fields", "any field may stand twice", repeatedFields},
		{"no-inventions", "a field that was not given is not invented, Date and Connection aside", noInventions},
		{"date", "a Date that was given is kept", date},
		{"date-added", "a Date is added where none was given", dateAdded},
		{"no-response-splitting", "line ends in values and names that are none do not become fields", noSplitting},
		{"framing-is-the-server's", "Content-Length and Transfer-Encoding among the fields are ignored", framingIgnored},
		{"length-known", "a body of known length has it", lengthKnown},
		{"length-unknown", "a body of unknown length goes out in chunks", lengthUnknown},
		{"large-body", "megabytes arrive whole", largeBody},
		{"http10-unknown", "over HTTP/1.0 a body of unknown length ends with the connection, without chunks", http10Unknown},
		{"head", "HEAD has the length and no body, and the connection goes on", headRequest},
		{"no-content", "204 has neither body nor length", noContent},
		{"not-modified", "304 has no body", notModified},
		{"not-modified-length", "304 keeps its Content-Length (RFC 9110, section 8.6)", notModifiedLength},
		{"flush", "head and pieces of a body of unknown length go out at once", flushed(-1, "")},
		{"flush-first", "head and first bytes of a body of known length go out while the rest is still to come, and so do the pieces that follow", flushedOnceBegun},
		{"one-write", "a short body goes out in one write with its head", oneWrite},
		{"flush-events", "so do those of an event stream whose length is known", flushed(10, "Text/Event-Stream; charset=utf-8")},
		{"borrowed-response", "a response whose strings are gone after End goes out right", borrowedResponse},
		{"bad-status", "a status that cannot be sent is 500", badStatus},
	}
}

// answers makes a handler that always answers so.
func answers(f func() *clients.Response) handlerFunc {
	return func(context.Context, *Inbound) *clients.Response { return f() }
}

// headOf gives the lines of the head that the response gets, without the status
// line.
func (c *check) headOf(f func() *clients.Response) []string {
	p := c.serve(answers(f)).dial()
	p.send("GET" + head + "\r\n")
	return p.head()[1:]
}

func responseFields(c *check) {
	want := []string{"Set-Cookie: a=1; Path=/", "Set-Cookie: a=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "Set-Cookie: b=3", "Vary: A", "Vary: B", "X-Empty: ", "X-Odd: \xe2\x82\xac;,\"", "Server: s", "Content-Type: text/plain", "Content-Encoding: gzip"}
	got := c.headOf(func() *clients.Response {
		var fields clients.Fields
		for _, l := range want {
			name, value, _ := strings.Cut(l, ": ")
			fields.Add(name, value)
		}
		return clients.NewResponse(200, fields, []byte("x"))
	})
	for _, l := range want {
		if !slices.Contains(got, l) && !slices.Contains(got, strings.TrimSuffix(l, " ")) {
			c.errorf("%q is missing in %q", l, got)
		}
	}
	var cookies []string
	for _, l := range got {
		if strings.HasPrefix(l, "Set-Cookie") {
			cookies = append(cookies, l)
		}
	}
	if !slices.Equal(cookies, want[:3]) {
		c.errorf("cookies %q", cookies)
	}
}

func repeatedFields(c *check) {
	want := []string{"Content-Encoding: a", "Content-Encoding: b", "Content-Type: a/a", "Content-Type: b/b", "Server: a", "Server: b"}
	got := c.headOf(func() *clients.Response {
		var fields clients.Fields
		for _, l := range want {
			name, value, _ := strings.Cut(l, ": ")
			fields.Add(name, value)
		}
		return clients.NewResponse(200, fields, []byte("x"))
	})
	for _, l := range want {
		if !slices.Contains(got, l) {
			c.errorf("%q is missing in %q", l, got)
		}
	}
}

func noInventions(c *check) {
	for _, body := range []string{"", "<html>sniff me"} {
		got := c.headOf(func() *clients.Response { return clients.NewResponse(200, nil, []byte(body)) })
		got = slices.DeleteFunc(got, func(l string) bool { return strings.HasPrefix(l, "Date: ") })
		if want := []string{fmt.Sprint("Content-Length: ", len(body))}; !slices.Equal(got, want) {
			c.errorf("got %q, want %q", got, want)
		}
	}
}

func date(c *check) {
	const given = "Date: Thu, 01 Jan 1970 00:00:00 GMT"
	for _, name := range []string{"Date", "date"} {
		got := c.headOf(func() *clients.Response {
			return clients.NewResponse(200, clients.Fields{{Name: name, Value: given[6:]}}, nil)
		})
		if n := slices.DeleteFunc(got, func(l string) bool { return !strings.HasPrefix(l, "Date: ") }); !slices.Equal(n, []string{given}) {
			c.errorf("got %q", n)
		}
	}
}

func dateAdded(c *check) {
	got := c.headOf(func() *clients.Response { return text(200, "") })
	for _, l := range got {
		if v, ok := strings.CutPrefix(l, "Date: "); ok {
			if at, err := http.ParseTime(v); err != nil || time.Since(at).Abs() > time.Minute {
				c.errorf("%s: %v", l, err)
			}
			return
		}
	}
	c.errorf("no Date in %q", got)
}

func noSplitting(c *check) {
	hostile := clients.Fields{{Name: "X-A", Value: "1\r\nX-Evil: 1"}, {Name: "X-B\r\nX-Evil", Value: "1"}, {Name: "X-C", Value: "1\n\nX-Evil: 1"}, {Name: "", Value: "1"}}
	for _, l := range c.headOf(func() *clients.Response { return clients.NewResponse(200, hostile, nil) }) {
		if strings.HasPrefix(l, "X-Evil") || strings.HasPrefix(l, ":") {
			c.errorf("sent %q", l)
		}
	}
}

func framingIgnored(c *check) {
	p := c.serve(answers(func() *clients.Response {
		return clients.NewResponse(200, clients.Fields{{Name: "content-length", Value: "2"}, {Name: "Transfer-Encoding", Value: "chunked"}}, []byte("hello"))
	})).dial()
	p.send("GET" + head + "\r\n")
	resp, body := p.answer("GET")
	if body != "hello" || resp.ContentLength != 5 || len(resp.TransferEncoding) > 0 {
		c.errorf("got %q of %d, coding %v", body, resp.ContentLength, resp.TransferEncoding)
	}
}

func lengthKnown(c *check) {
	for _, size := range []int{0, 1, 2047, 2048, 2049, 4096, 5000, 32 << 10, 32<<10 + 1, 200 << 10} {
		want := strings.Repeat("x", size)
		p := c.serve(answers(func() *clients.Response { return text(200, want) })).dial()
		for range 2 {
			p.send("GET" + head + "\r\n")
			if resp, got := p.answer("GET"); got != want || resp.ContentLength != int64(size) || resp.TransferEncoding != nil {
				c.errorf("%d bytes: got %d of %d, coding %v", size, len(got), resp.ContentLength, resp.TransferEncoding)
			}
		}
	}
}

func lengthUnknown(c *check) {
	p := c.serve(answers(func() *clients.Response { return streaming(strings.NewReader("hello")) })).dial()
	for range 2 {
		p.send("GET" + head + "\r\n")
		if resp, got := p.answer("GET"); got != "hello" || !slices.Equal(resp.TransferEncoding, []string{"chunked"}) {
			c.errorf("got %q, coding %v", got, resp.TransferEncoding)
		}
	}
}

func largeBody(c *check) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	for _, length := range []int64{int64(len(want)), -1} {
		p := c.serve(answers(func() *clients.Response {
			return &clients.Response{Status: 200, Body: io.NopCloser(bytes.NewReader(want)), ContentLength: length}
		})).dial()
		p.send("GET" + head + "\r\n")
		if _, got := p.answer("GET"); got != string(want) {
			c.errorf("length %d: got %d other bytes", length, len(got))
		}
	}
}

func http10Unknown(c *check) {
	s := c.serve(answers(func() *clients.Response {
		resp := streaming(strings.NewReader("hello"))
		resp.Fields.Add("Trailer", "X-T")
		return resp
	}))
	got := s.talk("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	for _, wrong := range []string{"chunked", "Content-Length", "keep-alive", "Trailer"} {
		if strings.Contains(head, wrong) {
			c.errorf("%s in %q", wrong, got)
		}
	}
	if body != "hello" {
		c.errorf("got %q", got)
	}
}

func headRequest(c *check) {
	p := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		switch in.Target {
		case "/known":
			return &clients.Response{Status: 200, Body: clients.NoBody, ContentLength: 500}
		case "/held":
			return text(200, "hello")
		case "/unknown":
			return &clients.Response{Status: 200, Body: clients.NoBody, ContentLength: -1}
		}
		return text(200, "after")
	}).dial()
	for target, length := range map[string]string{"/known": "500", "/held": "5", "/unknown": ""} {
		p.send("HEAD " + target + " HTTP/1.1\r\nHost: h\r\n\r\nGET /after HTTP/1.1\r\nHost: h\r\n\r\n")
		if resp, _ := p.answer("HEAD"); resp.Header.Get("Content-Length") != length || len(resp.TransferEncoding) > 0 {
			c.errorf("%s: got length %q, coding %v", target, resp.Header.Get("Content-Length"), resp.TransferEncoding)
		}
		p.ok("after")
	}
}

// bare sends two requests and wants the first answer to be a head of that status.
func (c *check) bare(resp *clients.Response) http.Header {
	first := true
	p := c.serve(answers(func() *clients.Response {
		if first {
			first = false
			return resp
		}
		return text(200, "after")
	})).dial()
	p.send("GET" + head + "\r\nGET" + head + "\r\n")
	got, _ := p.answer("HEAD") // no body to be read
	if got.StatusCode != resp.Status {
		c.errorf("got %d, want %d", got.StatusCode, resp.Status)
	}
	p.ok("after")
	return got.Header
}

func noContent(c *check) {
	for _, length := range []int64{0, -1} {
		h := c.bare(&clients.Response{Status: 204, Body: clients.NoBody, ContentLength: length})
		if h.Get("Content-Length") != "" || h.Get("Transfer-Encoding") != "" {
			c.errorf("204 says %v", h)
		}
	}
}

func notModified(c *check) {
	h := c.bare(&clients.Response{Status: 304, Body: clients.NoBody, ContentLength: -1, Fields: clients.Fields{{Name: "ETag", Value: `"e"`}}})
	if h.Get("ETag") != `"e"` || h.Get("Transfer-Encoding") != "" {
		c.errorf("304 says %v", h)
	}
}

func notModifiedLength(c *check) {
	h := c.bare(&clients.Response{Status: 304, Body: clients.NoBody, ContentLength: 500})
	if h.Get("Content-Length") != "500" {
		c.errorf("304 says %v", h)
	}
}

func flushed(length int64, contentType string) func(*check) {
	return func(c *check) {
		r, w := io.Pipe()
		s := c.serve(answers(func() *clients.Response {
			return &clients.Response{Status: 200, Body: r, ContentLength: length, Fields: clients.Fields{{Name: "content-type", Value: contentType}}}
		}))
		c.onEnd(func() { _ = r.Close() })
		p := s.dial()
		c.must(p.SetReadDeadline(time.Now().Add(time.Second)))
		p.send("GET" + head + "\r\n")
		_ = p.head() // before there is any body
		for _, part := range []string{"first", "last!"} {
			go func() { _, _ = io.WriteString(w, part) }()
			if length < 0 {
				_ = p.line() // the chunk's size
			}
			got := make([]byte, len(part))
			if _, err := io.ReadFull(p.r, got); err != nil || string(got) != part {
				c.fatalf("got %q, %v before the rest was there", got, err)
			}
			if length < 0 {
				_ = p.line()
			}
		}
		_ = w.Close()
	}
}

func borrowedResponse(c *check) {
	p := c.serve(answers(func() *clients.Response {
		buf := []byte("X-Kept1234")
		resp := clients.NewResponse(200, clients.Fields{{Name: view(buf[:6]), Value: view(buf[6:])}}, []byte("x"))
		resp.Borrowed = true
		resp.OnEnd(func(error) { copy(buf, "overwritten") })
		return resp
	})).dial()
	p.send("GET" + head + "\r\n")
	if resp, _ := p.answer("GET"); resp.Header.Get("X-Kept") != "1234" {
		c.errorf("got %v", resp.Header)
	}
}

func badStatus(c *check) {
	for _, status := range []int{0, 99, 100, 103, 1000} {
		p := c.serve(answers(func() *clients.Response { return text(status, "") })).dial()
		p.send("GET" + head + "\r\n")
		p.status(500)
	}
}

// How exchanges end.
func endingRules() []rule {
	return []rule{
		{"end-whole", "End is called once, with nil, when the response went out whole", endWhole},
		{"truncated", "a body that fails never looks whole: the connection is cut, and End gets the error", truncated},
		{"length-mismatch", "a body that is not as long as announced is an error, in both directions", lengthMismatch},
		{"nothing-to-say", "for a nil response the connection closes with nothing written", nothingToSay},
		{"downstream-gone", "a write that fails ends the exchange as canceled", downstreamGone},
		{"downstream-stuck", "a peer that does not read is given up after BodyIdle, one that reads slowly is not", downstreamStuck},
		{"cancellation", "ctx ends when the peer hangs up while the handler runs", cancellation},
		{"cancellation-in-body", "ctx ends when the peer hangs up while upstream is silent within a body", cancellationInBody},
		{"context-ends", "ctx ends with the exchange", contextEnds},
		{"panic", "a panic in the handler is 500, logged once with its stack, and harms no other exchange", handlerPanics},
		{"panic-in-body", "a panic in a response body cuts that exchange only", bodyPanics},
		{"panic-in-end", "a panic in a hook at the end harms nothing", endPanics},
		{"abort", "a panic with http.ErrAbortHandler cuts the connection silently", aborted},
	}
}

// ended is what End got, and how often.
type ended struct {
	calls atomic.Int32
	errs  chan error
}

func newEnded() *ended { return &ended{errs: make(chan error, 10)} }

func (e *ended) watch(r *clients.Response) *clients.Response {
	r.OnEnd(func(err error) { e.calls.Add(1); e.errs <- err })
	return r
}

// wants waits for the end and wants that kind, 0 for no error.
func (e *ended) wants(c *check, kind clients.Kind) {
	if err := receive(c, "the end of the exchange", e.errs); clients.KindOf(err) != kind || err == nil != (kind == 0) {
		c.errorf("End got %v, want kind %v", err, kind)
	}
}

func endWhole(c *check) {
	for _, f := range []func() *clients.Response{
		func() *clients.Response { return text(200, "hello") },
		func() *clients.Response { return text(200, "") },
		func() *clients.Response { return streaming(strings.NewReader("hello")) },
		func() *clients.Response { return &clients.Response{Status: 204, Body: clients.NoBody} },
		func() *clients.Response {
			return &clients.Response{Status: 304, Body: clients.NoBody, ContentLength: 5}
		},
	} {
		e := newEnded()
		s := c.serve(answers(func() *clients.Response { return e.watch(f()) }))
		for _, req := range []string{"GET", "HEAD"} {
			p := s.dial()
			p.send(req + head + "\r\n")
			resp, _ := p.answer(req)
			e.wants(c, 0)
			if n := e.calls.Swap(0); n != 1 {
				c.errorf("%s %d: End was called %d times", req, resp.StatusCode, n)
			}
		}
		_ = s.talk("GET / HTTP/1.0\r\n\r\n")
		e.wants(c, 0)
	}
}

func truncated(c *check) {
	broken := &clients.Error{Kind: clients.Protocol, Err: errors.New("upstream is gone")}
	for _, data := range []string{"", "hello", strings.Repeat("x", 100<<10)} {
		for _, length := range []int64{200 << 10, -1} {
			e := newEnded()
			s := c.serve(answers(func() *clients.Response {
				return e.watch(&clients.Response{Status: 200, ContentLength: length, Body: io.NopCloser(&errorReader{data, broken})})
			}))
			for _, version := range []string{"1.1", "1.0"} {
				p := s.dial()
				p.send("GET / HTTP/" + version + "\r\nHost: h\r\n\r\n")
				resp, err := http.ReadResponse(p.r, nil)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
				}
				if err == nil || isTimeout(err) {
					c.errorf("%d of %d bytes over HTTP/%s look whole: %v", len(data), length, version, err)
				}
				if version == "1.0" && length < 0 && err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) {
					c.errorf("got %v, want a reset", err)
				}
				e.wants(c, clients.Protocol)
			}
		}
	}
}

func lengthMismatch(c *check) {
	for _, length := range []int64{3, 10} {
		e := newEnded()
		s := c.serve(answers(func() *clients.Response {
			return e.watch(&clients.Response{Status: 200, ContentLength: length, Body: io.NopCloser(strings.NewReader("hello"))})
		}))
		if got := s.talk("GET" + head + "\r\n"); strings.HasSuffix(got, "hello") && length < 5 {
			c.errorf("got %q of %d", got, length)
		}
		e.wants(c, clients.Protocol)
	}
}

func nothingToSay(c *check) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		if in.Target == "/nil" {
			return nil
		}
		return text(200, "x")
	})
	if got := s.talk("GET /nil HTTP/1.1\r\nHost: h\r\n\r\n"); got != "" {
		c.errorf("got %q", got)
	}
	p := s.dial()
	p.send("GET" + head + "\r\nGET /nil HTTP/1.1\r\nHost: h\r\n\r\n")
	p.ok("x") // pipelined before it
	p.closed()
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func downstreamGone(c *check) {
	for _, length := range []int64{1 << 40, -1} {
		e := newEnded()
		s := c.serve(answers(func() *clients.Response {
			return e.watch(&clients.Response{Status: 200, ContentLength: length, Body: io.NopCloser(endless{})})
		}))
		p := s.dial()
		p.send("GET" + head + "\r\n")
		_ = p.head()
		_ = p.Close()
		e.wants(c, clients.Canceled)
	}
}

func downstreamStuck(c *check) {
	c.cfg.BodyIdle = 400 * time.Millisecond
	for _, length := range []int64{1 << 40, -1} {
		e := newEnded()
		s := c.serve(answers(func() *clients.Response {
			return e.watch(&clients.Response{Status: 200, ContentLength: length, Body: io.NopCloser(endless{})})
		}))
		p := s.dial()
		c.must(p.SetReadBuffer(32 << 10))
		p.send("GET" + head + "\r\n")
		_ = p.head()
		start := time.Now()
		buf := make([]byte, 8<<10)
		for time.Since(start) < 3*c.cfg.BodyIdle {
			_, _ = io.ReadFull(p.r, buf)
			time.Sleep(c.cfg.BodyIdle / 20)
		}
		select {
		case err := <-e.errs:
			c.errorf("a slow reader was cut off: %v", err)
		default:
			e.wants(c, clients.Canceled)
		}
	}
}

func cancellation(c *check) {
	canceled := make(chan error, 1)
	started := make(chan struct{}, 1)
	s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		if in.Body != nil {
			_, _ = io.ReadAll(in.Body)
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		started <- struct{}{}
		<-ctx.Done()
		canceled <- ctx.Err()
		return nil
	})
	for _, req := range []string{"GET" + head + "\r\n", "POST" + head + "Content-Length: 2\r\n\r\nhi", "POST" + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"} {
		p := s.dial()
		p.send(req)
		receive(c, "the handler", started)
		_ = p.Close()
		if err := receive(c, "the end of ctx", canceled); !errors.Is(err, context.Canceled) {
			c.errorf("ctx ended with %v", err)
		}
	}
}

func cancellationInBody(c *check) {
	e := newEnded()
	s := c.serve(func(ctx context.Context, _ *Inbound) *clients.Response {
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(&clients.Error{Kind: clients.Canceled, Err: ctx.Err()}) })
		return e.watch(streaming(r))
	})
	p := s.dial()
	p.send("GET" + head + "\r\n")
	_ = p.head()
	_ = p.Close()
	e.wants(c, clients.Canceled)
}

func contextEnds(c *check) {
	contexts := make(chan context.Context, 2)
	p := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		if err := ctx.Err(); err != nil {
			c.errorf("ctx has ended already: %v", err)
		}
		if in.Target == "/awaited" {
			_ = ctx.Done()
		}
		contexts <- ctx
		return text(200, "x")
	}).dial()
	for _, target := range []string{"/awaited", "/not"} {
		p.send("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")
		p.ok("x")
		ctx := receive(c, "ctx", contexts)
		receive(c, "the end of ctx", ctx.Done())
		if ctx.Err() == nil {
			c.errorf("%s: no error", target)
		}
	}
}

func handlerPanics(c *check) {
	p := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		if in.Target == "/panic" {
			panic("boom")
		}
		return text(200, "x")
	}).dial()
	p.send("GET /panic HTTP/1.1\r\nHost: h\r\n\r\n")
	p.status(500)
	p.send("GET" + head + "\r\n")
	p.ok("x")
	if c.logs.count("panic=boom") != 1 || c.logs.count("handlerPanics") == 0 {
		c.errorf("the log says %q", c.logs.b.String())
	}
}

func flushedOnceBegun(c *check) {
	r, w := io.Pipe()
	s := c.serve(answers(func() *clients.Response {
		return &clients.Response{Status: 200, Body: r, ContentLength: 100_000}
	}))
	c.onEnd(func() { _ = r.Close() })
	p := s.dial()
	p.send("GET" + head + "\r\n")
	var left int64 = 100_000
	for i, part := range []string{"first", "more", strings.Repeat("x", 5000), "and more"} {
		go func() { _, _ = io.WriteString(w, part) }()
		if i == 0 {
			_ = p.head()
		}
		got := make([]byte, len(part))
		if _, err := io.ReadFull(p.r, got); err != nil || string(got) != part {
			c.fatalf("got %.20q, %v before the rest was there", got, err)
		}
		left -= int64(len(part))
	}
	go func() { _, _ = io.CopyN(w, endless{}, left); _ = w.Close() }()
	if n, err := io.CopyN(io.Discard, p.r, left); err != nil {
		c.errorf("%d of the last %d bytes came: %v", n, left, err)
	}
}

func oneWrite(c *check) {
	for _, body := range []string{"", "short", strings.Repeat("x", 3000)} {
		s := c.serve(answers(func() *clients.Response { return text(200, body) }))
		p := s.dial()
		for i := range uint32(3) {
			p.send("GET" + head + "\r\n")
			p.ok(body)
			s.conns.each(func(conn *conn) {
				if n := conn.writes.Load(); n != i+1 {
					c.errorf("%d answers of %d bytes took %d writes", i+1, len(body), n)
				}
			})
		}
	}
}

func bodyPanics(c *check) {
	boom := func() clients.Fields { panic("boom") }
	for _, resp := range []*clients.Response{
		{Status: 200, ContentLength: 100, Body: io.NopCloser(panicReader{})},
		{Status: 200, ContentLength: 100, Body: io.NopCloser(io.MultiReader(strings.NewReader("x"), panicReader{}))},
		{Status: 200, ContentLength: -1, Body: io.NopCloser(panicReader{})},
		{Status: 200, ContentLength: -1, Body: io.NopCloser(strings.NewReader("x")), Trailers: boom},
	} {
		e := newEnded()
		s := c.serve(answers(func() *clients.Response { return e.watch(resp) }))
		p := s.dial()
		p.send("GET" + head + "\r\n")
		resp, err := http.ReadResponse(p.r, nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if err == nil || isTimeout(err) {
			c.errorf("the answer looks whole, or does not end: %v", err)
		}
		// No side of the wire is to blame, so the error is of no kind.
		if err := receive(c, "the end of the exchange", e.errs); err == nil || clients.KindOf(err) != 0 {
			c.errorf("End got %v", err)
		}
	}
	if n := c.logs.count("panic=boom"); n != 4 {
		c.errorf("logged %d times", n)
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("boom") }

func endPanics(c *check) {
	p := c.serve(answers(func() *clients.Response {
		resp := text(200, "x")
		resp.OnEnd(func(error) { panic("boom") })
		return resp
	})).dial()
	for range 2 {
		p.send("GET" + head + "\r\n")
		p.ok("x")
	}
	c.eventually("two log lines", func() bool { return c.logs.count("panic=boom") == 2 })
}

func aborted(c *check) {
	s := c.serve(func(context.Context, *Inbound) *clients.Response { panic(http.ErrAbortHandler) })
	if got := s.talk("GET" + head + "\r\n"); got != "" {
		c.errorf("got %q", got)
	}
	if n := c.logs.count("panic"); n > 0 {
		c.errorf("logged")
	}
}
