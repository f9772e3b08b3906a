package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/clients"
	"gatebench/gateway"
)

// A library is a client that must not be used once it is closed.
type library struct {
	t      *testing.T
	name   string
	hold   chan struct{} // nil, or what a request waits for
	inUse  atomic.Int64
	closed atomic.Bool
}

func (l *library) Do(context.Context, *clients.Request) (*clients.Response, error) {
	if l.closed.Load() {
		l.t.Errorf("%s is used after its end", l.name)
	}
	l.inUse.Add(1)
	if l.hold != nil {
		<-l.hold
	}
	resp := clients.NewResponse(200, nil, []byte(l.name))
	resp.Attempts = 1
	resp.OnEnd(func(error) { l.inUse.Add(-1) })
	return resp, nil
}

func (l *library) Close() error {
	if n := l.inUse.Load(); n != 0 {
		l.t.Errorf("%s is closed with %d requests on their way", l.name, n)
	}
	if l.closed.Swap(true) {
		l.t.Errorf("%s is closed twice", l.name)
	}
	return nil
}

// generation is a gateway with l as its client.
func generation(t *testing.T, l *library, before *gateway.Gateway) *gateway.Gateway {
	t.Helper()
	cfg := gateway.DefaultConfig()
	cfg.Client = l.name
	g, err := gateway.New(cfg, gateway.Parts{Client: l, Dialer: &clients.Dialer{}, Succeeds: before})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func bodyOf(s *gateway.Switch) string {
	resp := s.Serve(context.Background(), inbound("GET", "/"))
	text := make([]byte, 16)
	n, _ := resp.Body.Read(text)
	resp.End(nil)
	return string(text[:n])
}

func TestSwitchEndsTheOldClientAfterItsLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := &library{t: t, name: "old", hold: make(chan struct{})}, &library{t: t, name: "next"}
		s := gateway.NewSwitch(generation(t, old, nil))
		answered := make(chan *clients.Response)
		go func() { answered <- s.Serve(context.Background(), inbound("GET", "/")) }()
		synctest.Wait()

		s.To(generation(t, next, s.Now()))
		if got := bodyOf(s); got != "next" {
			t.Errorf("a new request went to %s", got)
		}
		close(old.hold)
		resp := <-answered
		synctest.Wait()
		if old.closed.Load() {
			t.Error("the old client is closed while a body of its flows")
		}
		resp.End(nil)
		synctest.Wait()
		if !old.closed.Load() || next.closed.Load() {
			t.Errorf("closed: old %v, next %v", old.closed.Load(), next.closed.Load())
		}

		_, text := exposed(s)
		for _, want := range []string{
			`gatebench_gateway_requests_total{code="200",reason=""} 2`, "gatebench_gateway_upstream_attempts_total 2",
			`gatebench_gateway_config_reloads_total{outcome="applied"} 1`, "gatebench_gateway_in_flight 0",
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("the metrics lack %s", want)
			}
		}
		if err := s.Close(); err != nil || !next.closed.Load() {
			t.Errorf("closing: %v, next closed %v", err, next.closed.Load())
		}
	})
}

func exposed(s *gateway.Switch) (int, string) {
	resp := s.Serve(context.Background(), inbound("GET", "/-/metrics"))
	defer resp.End(nil)
	var b strings.Builder
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return resp.Status, b.String()
		}
	}
}

// A stuck client answers nothing until it is closed.
type stuck struct{ closed chan struct{} }

func (s *stuck) Do(context.Context, *clients.Request) (*clients.Response, error) {
	<-s.closed
	return nil, &clients.Error{Kind: clients.Reset, Err: errors.New("closed")}
}

func (s *stuck) Close() error {
	close(s.closed)
	return nil
}

// A request that hangs with either client, the one before the switch or the one after it,
// does not hold up the end.
func TestSwitchEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := func(before *gateway.Gateway) *gateway.Gateway {
			g, err := gateway.New(gateway.DefaultConfig(), gateway.Parts{Client: &stuck{make(chan struct{})}, Dialer: &clients.Dialer{}, Succeeds: before})
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		s := gateway.NewSwitch(made(nil))
		var requests sync.WaitGroup
		ask := func() {
			requests.Go(func() { s.Serve(context.Background(), inbound("GET", "/")).End(nil) })
			synctest.Wait()
		}
		ask()
		s.To(made(s.Now()))
		ask()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		requests.Wait()
	})
}

// A breaker that opened before the switch has opened all the same.
func TestSwitchForgetsNoTransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &upstream{answer: fails(clients.Dial, 1)}
		cfg := gateway.DefaultConfig()
		made := func(c clients.Client, before *gateway.Gateway) *gateway.Gateway {
			g, err := gateway.New(cfg, gateway.Parts{Client: c, Dialer: &clients.Dialer{}, Succeeds: before})
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		s := gateway.NewSwitch(made(down, nil))
		for range cfg.CircuitBreaker.MinimumCalls {
			s.Serve(t.Context(), inbound("GET", "/")).End(nil)
		}
		s.To(made(&upstream{answer: responds(200)}, s.Now()))
		synctest.Wait()
		_, text := exposed(s)
		for _, want := range []string{`breaker_transitions_total{from="closed",to="open"} 1`, `breaker_state{state="closed"} 1`} {
			if !strings.Contains(text, want) {
				t.Errorf("the metrics lack %s", want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever the order in which requests and switches meet, no request gets a client
// that is closed.
func TestSwitchUnderLoad(t *testing.T) {
	s := gateway.NewSwitch(generation(t, &library{t: t, name: "0"}, nil))
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					bodyOf(s)
				}
			}
		})
	}
	for range 300 {
		s.To(generation(t, &library{t: t, name: "n"}, s.Now()))
		time.Sleep(50 * time.Microsecond)
	}
	close(stop)
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSwitchKeepsWhatItsServerWasBuiltFrom(t *testing.T) {
	now := gateway.DefaultConfig()
	next := now
	next.Client, next.Upstream, next.Retry.MaxAttempts = "fasthttp", "http://127.0.0.1:9", 3
	if err := now.Fixed(next); err != nil {
		t.Errorf("what can change: %v", err)
	}
	next.Listen, next.Server, next.Admin.Listen = "127.0.0.1:9", "fasthttp", "127.0.0.1:10"
	next.Limits.Header, next.Limits.RequestBody, next.Timeouts.BodyIdle = 1<<15, 1, time.Minute
	err := now.Fixed(next)
	for _, key := range []string{"listen", "server", "admin.listen", "limits.header", "limits.request_body", "timeouts.body_idle"} {
		if err == nil || !strings.Contains(err.Error(), key+" is ") && !strings.Contains(err.Error(), key+": is ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
