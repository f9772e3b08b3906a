package load

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatebench/internal/conf"
)

// script is a server in memory: under synctest its sleeps take no time and are
// exact. It answers the i-th request it reads, from 0; an answer of "" is none,
// ever.
type script func(i int64) (answer string)

const (
	answer200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	answer503 = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
)

// pipes dials the script.
type pipes struct {
	script script
	seen   atomic.Int64 // requests read

	running sync.WaitGroup
	mu      sync.Mutex
	open    []net.Conn
}

func (p *pipes) dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	p.mu.Lock()
	p.open = append(p.open, server)
	p.mu.Unlock()
	p.running.Go(func() { p.serve(server) })
	return client, nil
}

// kill closes every connection, as the end of the process behind them does.
func (p *pipes) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
}

func (p *pipes) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		answer := p.script(p.seen.Add(1) - 1)
		if answer == "" {
			_, _ = io.Copy(io.Discard, r)
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// afterDelay answers 200 after a delay.
func afterDelay(d time.Duration) script {
	return func(int64) string { time.Sleep(d); return answer200 }
}

// profile fills in what a test does not care about.
func profile(p Profile) Profile {
	p.KeepAlive, p.Arrivals = true, cmp.Or(p.Arrivals, Constant)
	p.ThinkDistribution = cmp.Or(p.ThinkDistribution, Constant)
	if p.Timeout == 0 {
		p.Timeout = DefaultProfile().Timeout
	}
	return p
}

func perSecond(r float64) conf.Rate { return conf.Rate{PerSecond: r} }

// loadPipes runs a profile against a script, with Go's timers, which are exact in
// a synctest bubble.
func loadPipes(t *testing.T, ctx context.Context, p Profile, server *pipes) (*engine, *Summary) {
	t.Helper()
	if err := runnable(p); err != nil {
		t.Fatal(err)
	}
	m, err := Target{URL: "http://pipe/"}.prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.running.Wait)
	e := newEngine(m, p, server.dial)
	if err := e.run(ctx, sleepy, nil); err != nil {
		t.Fatal(err)
	}
	s := e.summary()
	balanced(t, s)
	return e, s
}

// balanced checks what holds for every run.
func balanced(t *testing.T, s *Summary) {
	t.Helper()
	r := s.Requests
	var classes, statuses int64
	for _, n := range s.Errors {
		classes += n
	}
	for _, n := range s.Statuses {
		statuses += n
	}
	switch {
	case r.Planned != r.Sent+r.Dropped, r.Sent != r.OK+r.Failed:
		t.Errorf("counts do not add up: %+v", r)
	case classes != r.Failed:
		t.Errorf("%d failed, but the classes hold %v", r.Failed, s.Errors)
	case statuses != r.Completed || r.Completed != r.OK+s.Errors["status"]+s.Errors["check"]+r.Rejected:
		t.Errorf("%d completed, but the statuses hold %v", r.Completed, s.Statuses)
	case s.Censored < s.Errors["timeout"]+s.Errors["cut"] || s.Censored > s.Errors["timeout"]+s.Errors["cut"]+r.Dropped:
		t.Errorf("%d censored of %+v", s.Censored, r)
	}
	for _, x := range []*Times{s.ResponseTime, s.ServiceTime, s.OKResponseTime} {
		ordered(t, x)
	}
}

func ordered(t *testing.T, x *Times) {
	t.Helper()
	if x == nil {
		return
	}
	steps := []float64{x.Min, *x.P50, *x.P90, *x.P95, *x.P99, x.Max}
	if x.P999 != nil {
		steps = []float64{x.Min, *x.P50, *x.P90, *x.P95, *x.P99, *x.P999, x.Max}
	}
	for i, v := range steps[1:] {
		if v < steps[i] {
			t.Errorf("quantiles out of order: %v", steps)
		}
	}
}

// near fails unless got is within a tolerance of want.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if got < want-tolerance || got > want+tolerance {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, tolerance)
	}
}

// anything is a mix for tests that send nothing.
func anything() *mix { return &mix{kinds: make([]kind, 1)} }

// sleepy paces with Go's timers, which are exact in a synctest bubble.
func sleepy(e *engine) (waker, error) { return sleepWaker{e}, nil }
