package clienttest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// Bodies: streamed, whole, and never another's.
func bodyCases() []testCase {
	return []testCase{
		rule("streaming-request", "a request body goes upstream while it is still being given: memory stays bounded (hashicorp/go-retryablehttp#145)", streamingRequest),
		rule("head-before-upload", "the head of an upload, and each piece of its body, goes upstream before the next piece is there: else upstream's timeout for heads cuts off a caller who pauses", headBeforeUpload),
		rule("streaming-response", "a response body comes while upstream is still giving it (go-resty/resty#751)", streamingResponse),
		rule("large-bodies", "a megabyte each way is the same bytes on the other side", largeBodies),
		rule("truncated-length", "a body that ends before its length is an error of kind protocol (golang/go#23643)", truncated("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345", false)),
		rule("truncated-chunked", "a chunked body without its last chunk is an error of kind protocol (traefik/traefik#13568)", truncated(chunkedHead+chunk("12345"), false)),
		rule("truncated-chunk", "a chunk that ends before its length is an error of kind protocol", truncated(chunkedHead+"10\r\n12345", false)),
		rule("reset-in-body", "a body cut by a reset is an error of kind protocol", truncated("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345", true)),
		rule("bad-chunk", "a chunk size that is none is an error of kind protocol", truncated(chunkedHead+chunk("12345")+"zz\r\n", false)),
		rule("response-body-limit", "limits.response_body: a longer length fails at once, an unknown one at the byte beyond, HEAD never; kind response_too_large", responseBodyLimit),
		rule("request-body-error", "an *Error that reading the request body gives keeps its kind, and upstream never sees a complete request", requestBodyError),
		rule("short-request-body", "a request body shorter than its length is an error of kind bad_request, and upstream never sees a complete request", shortRequestBody),
		rule("end-once", "End runs the hooks once, the last registered first, however often it is called", endOnce),
		rule("parallel-bodies", "users at once, some hanging up half-way, get their own bytes and no others' (valyala/fasthttp#1109, #1743)", parallelBodies),
	}
}

func streamingRequest(c *check) {
	const piece = 64 << 10 // beyond any buffer for heads
	first, ended := make(chan bool, 1), make(chan struct{})
	u := c.serve(func(p *peer) {
		h, err := p.head()
		if err != nil {
			return
		}
		body := p.body(h)
		_, err = io.CopyN(io.Discard, body, piece/2)
		first <- err == nil
		n, _ := io.Copy(io.Discard, body)
		p.send(ok(strconv.FormatInt(n+piece/2, 10)))
	})
	c.onEnd(func() { close(ended) })
	for _, length := range []int64{2 * piece, -1} {
		cl := c.client(u) // upstream answers one request a connection
		r, w := io.Pipe()
		c.running.Go(func() {
			_, _ = w.Write(make([]byte, piece))
			select {
			case <-first:
			case <-ended:
			}
			_, _ = w.Write(make([]byte, piece))
			_ = w.Close()
		})
		req := streaming("/", r)
		req.ContentLength = length
		c.returns(fmt.Sprintf("an upload of length %d, the end of which waits for upstream to see its beginning", length), func() {
			c.ok(cl, req, strconv.Itoa(2*piece))
		})
		_ = r.Close()
	}
}

func headBeforeUpload(c *check) {
	arrived, ended := make(chan string, 1), make(chan struct{})
	u := c.serve(func(p *peer) {
		h, err := p.head()
		if err != nil {
			return
		}
		arrived <- "head"
		body, first := p.body(h), make([]byte, 5)
		if _, err := io.ReadFull(body, first); err != nil {
			return
		}
		arrived <- "piece"
		rest, _ := io.ReadAll(body)
		p.send(ok(string(first) + string(rest)))
	})
	c.onEnd(func() { close(ended) })
	for _, length := range []int64{10, -1} {
		cl := c.client(u) // upstream answers one request a connection
		r, w := io.Pipe()
		c.onEnd(func() { _ = r.Close() })
		c.running.Go(func() {
			for _, piece := range []string{"first", "other"} {
				select {
				case <-arrived:
				case <-ended:
					return
				}
				_, _ = io.WriteString(w, piece)
			}
			_ = w.Close()
		})
		req := streaming("/", r)
		req.ContentLength = length
		c.returns(fmt.Sprintf("an upload of length %d, each piece of which waits for upstream to see what is before it", length), func() {
			c.ok(cl, req, "firstother")
		})
	}
}

func streamingResponse(c *check) {
	more, over := make(chan bool), make(chan struct{})
	u := c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			first, last := "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst", "last!"
			if h.Target == "/chunked" {
				first, last = chunkedHead+chunk("first"), chunk("last!")+"0\r\n\r\n"
			}
			p.send(first)
			select {
			case <-more:
				p.send(last)
			case <-over:
				return
			}
		}
	})
	cl := c.client(u)
	c.onEnd(func() { close(over) })
	for _, target := range []string{"/chunked", "/length"} {
		c.returns(target+": the first bytes, before the last are sent", func() {
			resp := c.do(cl, get(target))
			got := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "first" {
				c.errorf("%s: got %q, %v", target, got, err)
			}
			select {
			case more <- true:
			case <-over:
				return
			}
			if body := c.whole(resp); body != "last!" {
				c.errorf("%s: the rest is %q", target, body)
			}
		})
	}
}

func largeBodies(c *check) {
	u := c.answer(func(h *heard) string { return ok(h.Body) })
	cl := c.client(u)
	body := noise(1<<20, 1)
	c.ok(cl, post("/", body), body)
	c.ok(cl, streaming("/", strings.NewReader(body)), body)
}

// noise is n bytes that depend on seed.
func noise(n int, seed uint64) string {
	r := rand.NewChaCha8(sha256.Sum256([]byte(strconv.FormatUint(seed, 10))))
	b := make([]byte, n)
	_, _ = r.Read(b)
	return string(b)
}

// truncated is a body of which the first five bytes come.
func truncated(answer string, reset bool) func(*check) {
	return func(c *check) {
		taken := make(chan bool, 1)
		u := c.serve(func(p *peer) {
			if _, err := p.request(); err != nil {
				return
			}
			p.send(answer)
			if reset {
				<-taken // a reset overtakes what has not been read
				p.reset()
			}
		})
		resp := c.do(c.client(u), get("/"))
		got := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "12345" {
			c.errorf("the part that came is %q, %v", got, err)
		}
		taken <- true
		c.returns("the end of the body", func() { c.bodyFails(resp, clients.Protocol) })
	}
}

func responseBodyLimit(c *check) {
	u := c.answer(func(h *heard) string {
		switch h.Target {
		case "/long":
			return ok("12345678901")
		case "/chunked":
			return chunked([]string{"12345", "67890", "1"})
		case "/chunked-full":
			return chunked([]string{"12345", "67890"})
		}
		return ok("1234567890")
	})
	cl := c.client(u, func(s *clients.Settings) { s.Limits.ResponseBody = 10 * conf.Byte })
	c.ok(cl, get("/full"), "1234567890")
	c.ok(cl, get("/chunked-full"), "1234567890")
	c.fails(cl, get("/long"), clients.ResponseTooLarge)
	if got := c.bodyFails(c.do(cl, get("/chunked")), clients.ResponseTooLarge); got != "1234567890" {
		c.errorf("before the limit came %q", got)
	}
	c.whole(c.do(cl, bodyless("HEAD", "/long")))
	c.ok(cl, get("/full"), "1234567890")
}

// brokenBody gives its bytes, then its error.
type brokenBody struct {
	bytes string
	err   error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.bytes == "" {
		return 0, b.err
	}
	n := copy(p, b.bytes)
	b.bytes = b.bytes[n:]
	return n, nil
}

// incomplete is an upstream that counts the requests whose body came whole.
func (c *check) incomplete() (u *upstream, complete func() int) {
	var (
		mu sync.Mutex
		n  int
	)
	u = c.answer(func(*heard) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return ok("-")
	})
	return u, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func requestBodyError(c *check) {
	u, complete := c.incomplete()
	cl := c.client(u)
	for _, kind := range []clients.Kind{clients.RequestTooLarge, clients.BadRequest, clients.Canceled} {
		for _, length := range []int64{1 << 20, -1} {
			req := streaming("/", &brokenBody{"12345", &clients.Error{Kind: kind, Err: errors.New("read request body")}})
			req.ContentLength = length
			c.returns(fmt.Sprintf("the end of an upload with a body that fails (%v)", kind), func() { c.fails(cl, req, kind) })
		}
	}
	if !u.closedButFor(0) {
		c.errorf("a connection with half a request on it is still open")
	}
	if n := complete(); n > 0 {
		c.errorf("upstream saw %d complete requests", n)
	}
}

func shortRequestBody(c *check) {
	u, complete := c.incomplete()
	cl := c.client(u)
	req := post("/", "12345")
	req.ContentLength = 10
	c.returns("the end of an upload with a short body", func() {
		resp, err := cl.Do(c.ctx, req)
		if err == nil {
			resp.End(nil)
			c.errorf("got status %d, want an error", resp.Status)
			return
		}
		c.kind(err, clients.BadRequest)
	})
	if n := complete(); n > 0 {
		c.errorf("upstream saw a complete request")
	}
}

func endOnce(c *check) {
	u := c.always(ok("12345"))
	resp := c.do(c.client(u), get("/"))
	var order []string
	for _, name := range []string{"a", "b", "c", "d"} {
		resp.OnEnd(func(error) { order = append(order, name) })
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.End(nil)
	resp.End(nil)
	_ = resp.Body.Close()
	if got := strings.Join(order, ""); got != "dcba" {
		c.errorf("hooks ran in the order %q, want dcba", got)
	}
}

func parallelBodies(c *check) {
	const users, each, most = 16, 20, 64 << 10
	pattern := func(id string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(id, "/"))
		return strings.Repeat(id+",", 1+(n*7919)%(most/len(id+",")))
	}
	u := c.answer(func(h *heard) string {
		if len(h.Target)%2 == 0 {
			return chunked([]string{pattern(h.Target)})
		}
		return reply("200 OK", pattern(h.Target), "X-Id: "+h.Target)
	})
	cl := c.client(u, func(s *clients.Settings) { s.Pool.MaxConns = users })
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() {
			defer c.recover()
			for i := range each {
				id := "/" + strconv.Itoa(user*1000+i)
				req := get(id)
				if i%3 == 0 {
					req = post(id, pattern(id))
				}
				resp, err := cl.Do(c.ctx, req)
				if err != nil {
					c.errorf("%s: %v", id, err)
					return
				}
				if i%5 == 4 { // hang up half-way
					_, _ = io.CopyN(io.Discard, resp.Body, 10)
					resp.End(&clients.Error{Kind: clients.Canceled})
					continue
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(body, []byte(pattern(id))) {
					c.errorf("%s: %d bytes beginning %q, %v", id, len(body), brief(string(body)), err)
				}
				if got, ok := resp.Fields.Lookup("X-Id"); ok && got != id {
					c.errorf("%s: another's field: %q", id, got)
				}
				resp.End(nil)
			}
		})
	}
	wg.Wait()
	for _, h := range u.requests() {
		if h.Method == "POST" && h.Body != pattern(h.Target) {
			c.errorf("%s: another body arrived upstream", h.Target)
		}
	}
}
