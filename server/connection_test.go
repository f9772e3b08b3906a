package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/clients"
)

// Interim responses, trailers, another protocol.
func beyondRules() []rule {
	return []rule{
		{"interim", "1xx responses go out before the answer, in their order, to HTTP/1.1 peers only", interim},
		{"interim-in-step", "a 1xx never overtakes an earlier answer to a pipelining peer", interimInStep},
		{"trailers", "announced trailers follow a chunked body", trailers},
		{"unannounced-trailers", "trailers that were not announced do too", unannouncedTrailers},
		{"upgrade", "after 101 bytes flow both ways, those too that came with the request, and half-closes pass", upgrade},
	}
}

func interim(c *check) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		in.Informational(103, clients.Fields{{Name: "Link", Value: "<a>"}, {Name: "Link", Value: "<b>"}})
		in.Informational(102, nil)
		return text(200, "x")
	})
	p := s.dial()
	p.send("GET" + head + "\r\n")
	if got, want := p.head(), []string{"HTTP/1.1 103 Early Hints", "Link: <a>", "Link: <b>"}; !slices.Equal(got, want) {
		c.errorf("got %q, want %q", got, want)
	}
	if got, want := p.head(), []string{"HTTP/1.1 102 Processing"}; !slices.Equal(got, want) {
		c.errorf("got %q, want %q", got, want)
	}
	if resp, body := p.answer("GET"); body != "x" || resp.Header.Get("Link") != "" {
		c.errorf("got %q with %v", body, resp.Header)
	}
	if got := s.talk("GET / HTTP/1.0\r\n\r\n"); strings.Count(got, "HTTP/1.") != 1 {
		c.errorf("HTTP/1.0 got %q", got)
	}
}

func interimInStep(c *check) {
	p := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		in.Informational(103, clients.Fields{{Name: "X-For", Value: in.Target}})
		return text(200, in.Target)
	}).dial()
	var raw strings.Builder
	for i := range 5 {
		fmt.Fprintf(&raw, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
	}
	p.send(raw.String())
	for i := range 5 {
		lines := p.head()
		for strings.HasPrefix(lines[0], "HTTP/1.1 103 ") {
			if want := fmt.Sprintf("X-For: /%d", i); lines[1] != want {
				c.errorf("before answer %d came %q", i, lines)
			}
			lines = p.head()
		}
		body := make([]byte, 2)
		if _, err := io.ReadFull(p.r, body); err != nil || string(body) != fmt.Sprintf("/%d", i) {
			c.fatalf("answer %d is %q, %v", i, body, err)
		}
	}
}

func withTrailers(announce bool) *clients.Response {
	resp := streaming(strings.NewReader("hello"))
	if announce {
		resp.Fields.Add("Trailer", "X-Sum, x-more")
	}
	resp.Trailers = func() clients.Fields {
		return clients.Fields{{Name: "X-Sum", Value: "1"}, {Name: "X-More", Value: "2"}, {Name: "X-More", Value: "3"}}
	}
	return resp
}

func wantsTrailers(announce bool) func(*check) {
	return func(c *check) {
		p := c.serve(answers(func() *clients.Response { return withTrailers(announce) })).dial()
		for range 2 {
			p.send("GET" + head + "\r\n")
			resp, body := p.answer("GET")
			if body != "hello" || resp.Trailer.Get("X-Sum") != "1" || len(resp.Trailer.Values("X-More")) != 2 {
				c.errorf("got %q, trailers %v", body, resp.Trailer)
			}
			if resp.Header.Get("X-Sum") != "" {
				c.errorf("a trailer stands in the head: %v", resp.Header)
			}
		}
	}
}

func trailers(c *check)            { wantsTrailers(true)(c) }
func unannouncedTrailers(c *check) { wantsTrailers(false)(c) }

func upgrade(c *check) {
	e := newEnded()
	upstream := make(chan net.Conn, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	c.onEnd(func() { _ = ln.Close() })
	go func() {
		for nc, err := ln.Accept(); err == nil; nc, err = ln.Accept() {
			upstream <- nc
		}
	}()
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return nil
		}
		return e.watch(&clients.Response{
			Status: 101, Body: clients.NoBody, Upgraded: nc,
			Fields: clients.Fields{{Name: "Connection", Value: "Upgrade"}, {Name: "Upgrade", Value: "echo"}},
		})
	})
	const request = "GET" + head + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n"

	p := s.dial()
	p.send(request + "early")
	up := receive(c, "the tunnel", upstream)
	c.onEnd(func() { _ = up.Close() })
	if got, want := p.head(), []string{"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: echo"}; !slices.Equal(got, want) {
		c.errorf("got %q", got)
	}
	c.flows(p.TCPConn, nil, up, "early")
	c.flows(p.TCPConn, []byte("more"), up, "more")
	c.flows(up, []byte("back"), readWriter{p.r, p}, "back")
	_ = p.CloseWrite()
	if got, err := io.ReadAll(up); len(got) > 0 || err != nil {
		c.errorf("the half-close came as %q, %v", got, err)
	}
	c.flows(up, []byte("last words"), readWriter{p.r, p}, "last words")
	_ = up.Close()
	p.closed()
	e.wants(c, 0)

	// One side goes away altogether.
	p = s.dial()
	p.send(request)
	up = receive(c, "the tunnel", upstream)
	_ = p.head()
	_ = p.SetLinger(0)
	_ = p.Close()
	if _, err := io.ReadAll(up); isTimeout(err) {
		c.errorf("%v", err)
	}
	_ = up.Close()
	e.wants(c, 0)
}

type readWriter struct {
	io.Reader
	io.Writer
}

// flows sends b into one end and wants it out of the other.
func (c *check) flows(from io.Writer, b []byte, to io.Reader, want string) {
	if _, err := from.Write(b); err != nil {
		c.errorf("write %q: %v", b, err)
	}
	if d, ok := to.(net.Conn); ok {
		_ = d.SetReadDeadline(time.Now().Add(patience))
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != want {
		c.errorf("got %q, %v, want %q", got, err, want)
	}
}

// Connections.
func connectionRules() []rule {
	return []rule{
		{"keep-alive", "a connection serves one request after the other", keepAlive},
		{"chunked-keep-alive", "after a chunked request too", chunkedKeepAlive},
		{"http10-keep-alive", "an HTTP/1.0 peer that asks for it keeps its connection", http10KeepAlive},
		{"http10-close", "one that does not is not kept waiting", http10Close},
		{"connection-close", "Connection: close is obeyed, from either side", connectionClose},
		{"pipelining", "pipelined requests are answered in their order, bodies and all", pipelining},
		{"counts", "opened, live and idle connections are counted exactly", counts},
		{"parallel", "connections at once get their own bytes", parallelBodies},
	}
}

func keepAlive(c *check) {
	s := c.serve(echo)
	p := s.dial()
	for i := range 5 {
		p.send(fmt.Sprintf("POST"+head+"Content-Length: 1\r\n\r\n%d", i))
		p.ok(fmt.Sprintf("1 %d", i))
	}
	if n := s.Conns().Opened; n != 1 {
		c.errorf("%d connections", n)
	}
}

func chunkedKeepAlive(c *check) {
	p := c.serve(echo).dial()
	for range 2 {
		p.send("POST" + head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
		p.ok("-1 hi")
	}
}

func http10KeepAlive(c *check) {
	p := c.serve(echo).dial()
	for range 2 {
		p.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		p.ok("none")
	}
}

func http10Close(c *check) {
	if got := c.serve(echo).talk("GET / HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nnone") {
		c.errorf("got %q", got)
	}
}

func connectionClose(c *check) {
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		resp := text(200, "x")
		if in.Target == "/close" {
			resp.Fields.Add("Connection", "close")
		}
		return resp
	})
	for _, raw := range []string{"GET" + head + "Connection: close\r\n\r\n", "GET /close HTTP/1.1\r\nHost: h\r\n\r\n"} {
		if got := s.talk(raw); strings.Count(got, "Connection: close\r\n") != 1 || !strings.HasSuffix(got, "\r\n\r\nx") {
			c.errorf("got %q", got)
		}
	}
}

func pipelining(c *check) {
	p := c.serve(echo).dial()
	var raw strings.Builder
	for i := range 20 {
		fmt.Fprintf(&raw, "POST"+head+"Content-Length: %d\r\n\r\n%s", i, strings.Repeat("x", i))
	}
	p.send(raw.String())
	for i := range 20 {
		if i == 0 {
			p.ok("none")
			continue
		}
		p.ok(fmt.Sprint(i, " ", strings.Repeat("x", i)))
	}
}

func counts(c *check) {
	hold := make(chan struct{})
	s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
		if in.Target == "/hold" {
			<-hold
		}
		return text(200, "x")
	})
	is := func(what string, want Conns) {
		c.eventually(fmt.Sprintf("%s: %+v, got %+v", what, want, s.Conns()), func() bool { return s.Conns() == want })
	}
	var ps []*peer
	for range 4 {
		ps = append(ps, s.dial())
	}
	is("four fresh connections", Conns{Opened: 4, Live: 4, Idle: 4})
	for _, p := range ps[:2] {
		p.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
	}
	ps[2].send("GET" + head + "\r\n")
	ps[2].ok("x")
	is("two busy", Conns{Opened: 4, Live: 4, Idle: 2})
	_ = ps[3].Close()
	is("one gone", Conns{Opened: 4, Live: 3, Idle: 1})
	close(hold)
	ps[0].ok("x")
	ps[1].ok("x")
	is("none busy", Conns{Opened: 4, Live: 3, Idle: 3})
	for _, p := range ps {
		_ = p.Close()
	}
	is("all gone", Conns{Opened: 4})
	if got := s.talk("GET" + head + "Connection: close\r\n\r\n"); got == "" {
		c.errorf("no answer")
	}
	is("one more", Conns{Opened: 5})
}

// echoStream answers with the request body, while it is still coming.
func echoStream(_ context.Context, in *Inbound) *clients.Response {
	return &clients.Response{Status: 200, Body: io.NopCloser(in.Body), ContentLength: in.ContentLength}
}

func parallelBodies(c *check) {
	s := c.serve(func(ctx context.Context, in *Inbound) *clients.Response {
		resp := echoStream(ctx, in)
		resp.Fields.Add("X-Id", strings.Clone(in.Fields.Get("X-Id")))
		return resp
	})
	var users sync.WaitGroup
	for user := range 16 {
		users.Go(func() {
			defer func() { _ = recover() }() // fatalf of a helper; its failure is recorded
			p := s.dial()
			for i := range 20 {
				id := fmt.Sprintf("%d-%d", user, i)
				body := strings.Repeat(id+".", 1+(user*i)%3000)
				go func(p *peer) {
					_, _ = io.WriteString(p, "POST"+head+"X-Id: "+id+"\r\n"+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
				}(p)
				resp, got := p.answer("POST")
				if got != body || resp.Header.Get("X-Id") != id {
					c.errorf("%s got %s's %d bytes, want %d", id, resp.Header.Get("X-Id"), len(got), len(body))
					return
				}
				if resp.Close { // the head went out before the body was read
					_ = p.Close()
					p = s.dial()
				}
			}
		})
	}
	users.Wait()
}

func TestShutdownLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		inside := make(chan struct{}, 100)
		release := make(chan struct{})
		s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
			inside <- struct{}{}
			<-release
			if in.Target == "/stream" {
				return streaming(strings.NewReader(strings.Repeat("x", 1<<20)))
			}
			return text(200, strings.Repeat("x", 1<<20))
		})
		idle, silent := s.dial(), s.dial()
		idle.send("GET" + head + "\r\n")
		receive(c, "the handler", inside)
		release <- struct{}{}
		_, _ = idle.answer("GET")

		var busy []*peer
		for i := range 20 {
			p := s.dial()
			busy = append(busy, p)
			p.send([]string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n", "GET /stream HTTP/1.0\r\n\r\n"}[i%3])
			receive(c, "the handler", inside)
		}
		down := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			down <- s.Shutdown(ctx)
		}()
		idle.closed()
		silent.closed() // long before the libraries' five seconds are over
		if _, err := net.Dial("tcp", s.addr); err == nil {
			c.errorf("connections are still accepted")
		}
		select {
		case err := <-down:
			c.errorf("Shutdown did not wait: %v", err)
		default:
		}
		close(release)
		for i, p := range busy {
			if resp, body := p.answer("GET"); resp.StatusCode != 200 || len(body) != 1<<20 {
				c.errorf("%d: got %d and %d bytes", i, resp.StatusCode, len(body))
			}
		}
		if err := receive(c, "Shutdown", down); err != nil {
			c.errorf("Shutdown: %v", err)
		}
		if n := s.exchanges.Load(); n != 0 {
			c.errorf("%d exchanges are still running", n)
		}
	})
}

// Nobody whose connection was accepted, by us or by the system, goes without an
// answer; and each is told that it is his last here.
func TestShutdownAnswersWhatIsOnItsWay(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		inside, release := make(chan struct{}, 10), make(chan struct{})
		s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
			if in.Target == "/wait" {
				inside <- struct{}{}
				<-release
			}
			return text(200, "x")
		})
		const request = "GET" + head + "\r\n"
		wait := s.dial() // keeps Shutdown from ending
		wait.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		receive(c, "the handler", inside)
		idle := s.dial()
		idle.send(request)
		idle.ok("x")

		down := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			down <- s.Shutdown(ctx)
		}()
		c.eventually("the listener to close", func() bool {
			nc, err := net.Dial("tcp", s.addr)
			if err != nil {
				return true
			}
			p := &peer{TCPConn: nc.(*net.TCPConn), c: c, r: bufio.NewReader(nc)}
			_ = p.SetDeadline(time.Now().Add(patience))
			if _, err := io.WriteString(nc, request); err == nil {
				p.ok("x")
			}
			_ = nc.Close()
			return false
		})
		idle.send(request)
		if resp, body := idle.answer("GET"); resp.StatusCode != 200 || body != "x" || !resp.Close {
			c.errorf("a request on an idle connection got %d %q, last: %t", resp.StatusCode, body, resp.Close)
		}
		idle.closed()
		close(release)
		if resp, _ := wait.answer("GET"); !resp.Close {
			c.errorf("the answer of a running exchange does not end its connection")
		}
		if err := receive(c, "Shutdown", down); err != nil {
			c.errorf("Shutdown: %v", err)
		}
	})
}

// The system's queue of accepted connections is served to its end.
func TestTheQueueOfAListenerIsServed(t *testing.T) {
	if queued := runtime.GOOS == "linux"; !queued {
		t.Skip("only Linux lets one look into the queue without waiting")
	}
	each(t, func(_ *testing.T, c *check) {
		s, err := New(c.cfg, answers(func() *clients.Response { return text(200, "x") }))
		c.must(err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		c.must(err)
		site := &site{Server: s, c: c, addr: ln.Addr().String()}
		var early []*peer
		for range 20 { // before anybody accepts
			gone := site.dial() // and broken off in the queue
			c.must(gone.SetLinger(0))
			c.must(gone.Close())
			p := site.dial()
			p.send("GET" + head + "\r\n")
			early = append(early, p)
		}
		l := newListener(ln, s.conns, 0, s.log)
		l.end()
		served := make(chan error, 1)
		go func() { served <- s.engine.serve(l) }()
		for _, p := range early {
			p.ok("x")
		}
		_ = receive(c, "the end of Serve", served)
		_ = s.Close()
	})
}

// short is a listener of a process that is out of descriptors for a moment.
type short struct {
	*net.TCPListener
	errs []error
}

func (s *short) Accept() (net.Conn, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	return s.TCPListener.Accept()
}

// Whoever is queued behind what cannot be accepted is served.
func TestAnErrorWithinTheQueueDoesNotEndIt(t *testing.T) {
	if queued := runtime.GOOS == "linux"; !queued {
		t.Skip("only Linux lets one look into the queue without waiting")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	var log logs
	l := newListener(&short{ln.(*net.TCPListener), []error{os.ErrDeadlineExceeded, syscall.EMFILE, syscall.ECONNABORTED}},
		newConnSet(), 0, log.logger())
	l.end()
	nc, err := l.Accept()
	if err != nil {
		t.Fatalf("who is in the queue is not served: %v", err)
	}
	_ = nc.Close()
	if log.count("timeout") > 0 {
		t.Errorf("the deadline of the end is told as trouble")
	}
	if nc, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the queue: %v, %v", nc, err)
	}
}

func TestAPeerThatIsGoneHasNoAddress(t *testing.T) {
	for want, a := range map[string]net.Addr{"": nil, "192.0.2.7": &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}, "pipe": pipeAddr()} {
		if got := ipOf(a); got != want {
			t.Errorf("%v: got %q, want %q", a, got, want)
		}
	}
}

func pipeAddr() net.Addr {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	return a.RemoteAddr()
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		inside, canceled := make(chan struct{}), make(chan struct{})
		s := c.serve(func(ctx context.Context, _ *Inbound) *clients.Response {
			inside <- struct{}{}
			<-ctx.Done()
			close(canceled)
			return nil
		})
		p := s.dial()
		p.send("GET" + head + "\r\n")
		receive(c, "the handler", inside)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			c.errorf("Shutdown: %v", err)
		}
		c.must(s.Close()) // the second signal
		p.closed()
		if hangUpsAreSeen {
			receive(c, "the end of ctx", canceled)
		}
	})
}

func TestShutdownClosesTunnels(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		ours, theirs := net.Pipe()
		c.onEnd(func() { _ = theirs.Close() })
		s := c.serve(answers(func() *clients.Response {
			return &clients.Response{Status: 101, Body: clients.NoBody, Upgraded: ours}
		}))
		p := s.dial()
		p.send("GET" + head + "Connection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = p.head()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			c.errorf("Shutdown: %v", err)
		}
		p.closed()
	})
}

func TestServeAfterShutdownEndsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		s, err := New(c.cfg, handlerFunc(echo))
		c.must(err)
		c.must(s.Shutdown(context.Background()))
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		c.must(err)
		if err := s.Serve(ln); err != nil {
			c.errorf("Serve: %v", err)
		}
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			c.errorf("the listener is still open")
		}
	})
}

func TestRequestsUnderShutdownAreAnsweredOrNeverBegun(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		var begun, answered atomic.Int64
		s := c.serve(func(_ context.Context, in *Inbound) *clients.Response {
			begun.Add(1)
			return text(200, strings.Repeat("x", 1000))
		})
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				for {
					nc, err := net.Dial("tcp", s.addr)
					if err != nil {
						return
					}
					p := &peer{TCPConn: nc.(*net.TCPConn), c: c}
					hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return p.TCPConn, nil }}}
					resp, err := hc.Get("http://h/")
					if err != nil {
						_ = nc.Close()
						continue
					}
					if b, err := io.ReadAll(resp.Body); err == nil && len(b) == 1000 {
						answered.Add(1)
					}
					_ = resp.Body.Close()
				}
			})
		}
		c.eventually("some load", func() bool { return answered.Load() > 50 })
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			c.errorf("Shutdown: %v", err)
		}
		users.Wait()
		if begun.Load() != answered.Load() {
			c.errorf("%d requests were begun, %d answered", begun.Load(), answered.Load())
		}
	})
}

// failing is a listener that gives errors before connections.
type failing struct {
	errs  []error
	conns chan net.Conn
	shut  chan struct{}
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	select {
	case nc := <-f.conns:
		return nc, nil
	case <-f.shut:
		return nil, net.ErrClosed
	}
}

func (f *failing) Close() error   { close(f.shut); return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func TestListenerOutlivesWhatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emfile := &net.OpError{Op: "accept", Err: syscall.EMFILE}
		f := &failing{errs: slices.Repeat([]error{emfile}, 10), conns: make(chan net.Conn, 1), shut: make(chan struct{})}
		ours, theirs := net.Pipe()
		defer theirs.Close()
		f.conns <- ours
		var log logs
		l := newListener(f, newConnSet(), 0, log.logger())
		start := time.Now()
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
		// 5+10+20+40+80+160+320+640 ms, then 1 s each.
		if took, want := time.Since(start), 3275*time.Millisecond; took != want {
			t.Errorf("accepted after %v, want %v", took, want)
		}
		if n := log.count("cannot accept"); n != 1 {
			t.Errorf("%d log lines for one spell", n)
		}

		f.errs = slices.Repeat([]error{emfile}, 1000)
		go func() { time.Sleep(time.Minute); _ = l.Close() }()
		start = time.Now()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed while waiting: %v", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("closed after %v", took)
		}
	})
}

func TestServeEndsOnAnErrorThatStays(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		s, err := New(c.cfg, handlerFunc(echo))
		c.must(err)
		defer s.Close()
		broken := errors.New("broken for good")
		if err := s.Serve(&failing{errs: []error{broken}, shut: make(chan struct{})}); !errors.Is(err, broken) {
			c.errorf("Serve: %v", err)
		}
	})
}

func TestServerOutlivesDescriptorShortage(t *testing.T) {
	each(t, func(t *testing.T, c *check) {
		c.cfg.Log = c.logs.logger()
		s, err := New(c.cfg, handlerFunc(echo))
		c.must(err)
		ours, theirs := net.Pipe()
		f := &failing{errs: []error{syscall.EMFILE, syscall.ECONNABORTED}, conns: make(chan net.Conn, 1), shut: make(chan struct{})}
		f.conns <- ours
		served := make(chan error, 1)
		go func() { served <- s.Serve(f) }()
		_ = theirs.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(theirs, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			c.errorf("%v", err)
		}
		if got, err := io.ReadAll(theirs); !strings.HasSuffix(string(got), "none") {
			c.errorf("got %q, %v", got, err)
		}
		c.must(s.Close())
		if err := receive(c, "Serve", served); err != nil {
			c.errorf("Serve: %v", err)
		}
	})
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	for _, cfg := range []Config{{Kind: "nethttp", MaxHeaderBytes: 1}, {Kind: NetHTTP}, {Kind: FastHTTP, MaxHeaderBytes: -1}} {
		if s, err := New(cfg, handlerFunc(echo)); err == nil {
			t.Errorf("%+v gives %v", cfg, s)
		}
	}
}
