package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatebench/clients"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, leakOptions...)
}

// leakOptions pass over what fasthttp leaves running: its clock for ever, and its
// worker pools until they wake up next.
var leakOptions = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
}

// patience bounds every wait: only what is broken takes as long.
const patience = 10 * time.Second

type handlerFunc func(ctx context.Context, in *Inbound) *clients.Response

func (f handlerFunc) Serve(ctx context.Context, in *Inbound) *clients.Response { return f(ctx, in) }

func text(status int, s string) *clients.Response {
	return clients.NewResponse(status, clients.Fields{{Name: "Content-Type", Value: "text/plain"}}, []byte(s))
}

// streaming is a response whose body is r, of unknown length.
func streaming(r io.Reader) *clients.Response {
	return &clients.Response{Status: 200, Body: io.NopCloser(r), ContentLength: -1}
}

// errorReader gives data, then err.
type errorReader struct {
	data string
	err  error
}

func (r *errorReader) Read(p []byte) (int, error) {
	if r.data == "" {
		return 0, r.err
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func config(kind string) Config {
	return Config{
		Kind: kind, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: patience, IdleTimeout: patience, BodyIdle: patience,
	}
}

// check is one case on one kind of server. What fails is collected, because a
// declared deviation has to fail.
type check struct {
	kind string
	cfg  Config
	logs logs

	mu       sync.Mutex
	failures []string
	ends     []func()
}

type stopCase struct{}

func (c *check) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

func (c *check) fatalf(format string, args ...any) {
	c.errorf(format, args...)
	panic(stopCase{})
}

func (c *check) must(err error) {
	if err != nil {
		c.fatalf("%v", err)
	}
}

func (c *check) onEnd(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, f)
}

// run carries the case out and gives its failures.
func (c *check) run(f func(*check)) (failures []string) {
	defer func() {
		v := recover()
		for i := len(c.ends) - 1; i >= 0; i-- {
			c.ends[i]()
		}
		if _, ok := v.(stopCase); v != nil && !ok {
			panic(v)
		}
		failures = c.failures
	}()
	f(c)
	return nil
}

// site is a running server.
type site struct {
	*Server
	c    *check
	addr string
}

// serve starts a server of the case's configuration.
func (c *check) serve(h handlerFunc) *site {
	c.cfg.Log = c.logs.logger()
	s, err := New(c.cfg, h)
	c.must(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	c.onEnd(func() {
		_ = s.Close()
		select {
		case err := <-served:
			if err != nil {
				c.errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			c.errorf("Serve does not return")
		}
		c.eventually("all exchanges to end", func() bool { return s.exchanges.Load() == 0 && s.Conns().Live == 0 })
	})
	return &site{Server: s, c: c, addr: ln.Addr().String()}
}

// peer is a client that speaks bytes.
type peer struct {
	*net.TCPConn
	c *check
	r *bufio.Reader
}

func (s *site) dial() *peer {
	nc, err := net.Dial("tcp", s.addr)
	s.c.must(err)
	s.c.must(nc.SetDeadline(time.Now().Add(patience)))
	s.c.onEnd(func() { _ = nc.Close() })
	return &peer{TCPConn: nc.(*net.TCPConn), c: s.c, r: bufio.NewReader(nc)}
}

func (p *peer) send(s string) {
	if _, err := io.WriteString(p.TCPConn, s); err != nil {
		p.c.fatalf("send: %v", err)
	}
}

// line reads one line without its end.
func (p *peer) line() string {
	s, err := p.r.ReadString('\n')
	if err != nil {
		p.c.fatalf("read a line: got %q, %v", s, err)
	}
	return strings.TrimSuffix(s, "\r\n")
}

// head reads a response head, line by line.
func (p *peer) head() []string {
	var lines []string
	for {
		l := p.line()
		if l == "" {
			return lines
		}
		lines = append(lines, l)
	}
}

// answer reads a response to method, with its body.
func (p *peer) answer(method string) (*http.Response, string) {
	resp, err := http.ReadResponse(p.r, &http.Request{Method: method})
	if err != nil {
		p.c.fatalf("read a response: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.c.fatalf("read a body: got %.100q, %v", b, err)
	}
	return resp, string(b)
}

// ok wants a 200 with that body.
func (p *peer) ok(body string) {
	if resp, b := p.answer("GET"); resp.StatusCode != 200 || b != body {
		p.c.errorf("got %d %.100q, want 200 %.100q", resp.StatusCode, b, body)
	}
}

// status wants an answer of that status.
func (p *peer) status(want int) {
	if resp, b := p.answer("GET"); resp.StatusCode != want {
		p.c.errorf("got %d %.100q, want %d", resp.StatusCode, b, want)
	}
}

// rest reads until the connection ends.
func (p *peer) rest() (string, error) {
	b, err := io.ReadAll(p.r)
	return string(b), err
}

// closed wants the connection to end with nothing more.
func (p *peer) closed() {
	if got, err := p.rest(); got != "" || isTimeout(err) {
		p.c.errorf("got %.100q, %v: want a closed connection", got, err)
	}
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// talk sends raw on a new connection and reads until it closes.
func (s *site) talk(raw string) string {
	p := s.dial()
	p.send(raw)
	got, err := p.rest()
	if isTimeout(err) {
		s.c.fatalf("%.60q: the connection stays open after %.200q", raw, got)
	}
	return got
}

// eventually polls.
func (c *check) eventually(what string, f func() bool) {
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.errorf("waited in vain for %s", what)
			return
		}
	}
}

// receive waits for a value.
func receive[T any](c *check, what string, ch <-chan T) (v T) {
	select {
	case v = <-ch:
	case <-time.After(patience):
		c.fatalf("waited in vain for %s", what)
	}
	return v
}

// each runs a test on both kinds.
func each(t *testing.T, f func(t *testing.T, c *check)) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			c := &check{kind: kind, cfg: config(kind)}
			for _, failure := range c.run(func(c *check) { f(t, c) }) {
				t.Error(failure)
			}
		})
	}
}
