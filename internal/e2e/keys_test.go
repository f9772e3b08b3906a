package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatebench/clients"
	"gatebench/clients/registry"
	"gatebench/gateway"
)

// upstream is an HTTP server whose answers the test decides, and which counts.
type upstream struct {
	*httptest.Server
	opened   atomic.Int64 // connections
	open     atomic.Int64
	arrived  atomic.Int64 // requests
	inFlight atomic.Int64
	most     atomic.Int64  // in flight at once
	hold     chan struct{} // requests to /hold wait for it
}

// newUpstream answers by path: /ok, /status/N, /hold (waits for release or for the
// caller to go), /silent (never), /stall (half a body, then silence).
func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{hold: make(chan struct{})}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(u.serve))
	u.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			u.opened.Add(1)
			u.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			u.open.Add(-1)
		}
	}
	u.Start()
	t.Cleanup(func() { u.release(); u.CloseClientConnections(); u.Close() })
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.arrived.Add(1)
	now := u.inFlight.Add(1)
	defer u.inFlight.Add(-1)
	for most := u.most.Load(); now > most && !u.most.CompareAndSwap(most, now); most = u.most.Load() {
	}
	switch {
	case r.URL.Path == "/hold":
		select {
		case <-u.hold:
		case <-r.Context().Done():
		}
	case r.URL.Path == "/silent":
		<-r.Context().Done()
	case r.URL.Path == "/stall":
		_, _ = w.Write(make([]byte, 10))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case strings.HasPrefix(r.URL.Path, "/status/"):
		var code int
		_, _ = fmt.Sscanf(r.URL.Path, "/status/%d", &code)
		w.WriteHeader(code)
	}
}

func (u *upstream) release() {
	select {
	case <-u.hold:
	default:
		close(u.hold)
	}
}

func (u *upstream) addr() string { return u.Listener.Addr().String() }

// asker sends requests through one gateway.
type asker struct {
	t    *testing.T
	c    *http.Client
	base string
}

// ask returns the status and the reason that the gateway gives, "" for none.
func (a asker) ask(path string) (status int, reason string) {
	a.t.Helper()
	resp, err := a.c.Get(a.base + path)
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	var p struct{ Reason string }
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			a.t.Error(err)
		}
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode, p.Reason
}

// many asks n times at once and counts the outcomes, "200" or "503 pool_exhausted".
func (a asker) many(n int, path string) func() map[string]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range n {
		wg.Go(func() {
			status, reason := a.ask(path)
			mu.Lock()
			defer mu.Unlock()
			outcomes[strings.TrimSpace(fmt.Sprint(status, " ", reason))]++
		})
	}
	return func() map[string]int { wg.Wait(); return outcomes }
}

func (a asker) expect(path string, status int, reason string) {
	a.t.Helper()
	if s, r := a.ask(path); s != status || r != reason {
		a.t.Errorf("%s: %d %q, want %d %q", path, s, r, status, reason)
	}
}

// TestEveryKeyChangesBehaviour shows for each key of pool, timeouts and
// circuit_breaker, and for each client, that another value does another thing on
// the wire. A case runs two gateways that differ in the one key.
func TestEveryKeyChangesBehaviour(t *testing.T) {
	type try func(t *testing.T, u *upstream, a asker)
	type side struct {
		yaml string
		try  try
	}
	never := "circuit_breaker: {enabled: false}, "
	cases := map[string][2]side{
		"pool.max_conns": {
			{never + "pool: {max_conns: 2}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(6, "/hold")
				eventually(t, "two are upstream", func() bool { return u.inFlight.Load() == 2 })
				u.release()
				if got := wait()["200"]; got != 6 || u.most.Load() != 2 {
					t.Errorf("%d of 6 answered, %d at once, want 2", got, u.most.Load())
				}
			}},
			{never + "pool: {max_conns: 6}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(6, "/hold")
				eventually(t, "all six are upstream", func() bool { return u.inFlight.Load() == 6 })
				u.release()
				wait()
			}},
		},
		"pool.max_pending": {
			{never + "pool: {max_conns: 1, max_pending: 0, pending_timeout: 10s}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(1, "/hold")
				eventually(t, "one is upstream", func() bool { return u.inFlight.Load() == 1 })
				a.expect("/ok", 503, "pool_exhausted")
				u.release()
				wait()
			}},
			{never + "pool: {max_conns: 1, max_pending: 1, pending_timeout: 10s}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(1, "/hold")
				eventually(t, "one is upstream", func() bool { return u.inFlight.Load() == 1 })
				waiting := a.many(2, "/ok") // one may wait, the other is one too many
				eventually(t, "one of two is rejected", func() bool { return a.rejected("pool_exhausted") == 1 })
				u.release()
				wait()
				if got := waiting(); got["200"] != 1 || got["503 pool_exhausted"] != 1 {
					t.Errorf("outcomes %v", got)
				}
			}},
		},
		"pool.pending_timeout": {
			{never + "pool: {max_conns: 1, pending_timeout: 50ms}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(1, "/hold")
				eventually(t, "one is upstream", func() bool { return u.inFlight.Load() == 1 })
				start := time.Now()
				a.expect("/ok", 503, "pool_exhausted")
				if took := time.Since(start); took < 50*time.Millisecond {
					t.Errorf("rejected after %v, before its 50ms were over", took)
				}
				u.release()
				wait()
			}},
			{never + "pool: {max_conns: 1, pending_timeout: 20s}", func(t *testing.T, u *upstream, a asker) {
				wait := a.many(1, "/hold")
				eventually(t, "one is upstream", func() bool { return u.inFlight.Load() == 1 })
				waiting := a.many(1, "/ok")
				time.Sleep(150 * time.Millisecond) // three times the other side's bound
				u.release()
				wait()
				if got := waiting(); got["200"] != 1 {
					t.Errorf("outcomes %v", got)
				}
			}},
		},
		"pool.idle_timeout": {
			{"pool: {idle_timeout: 100ms}", func(t *testing.T, u *upstream, a asker) {
				a.expect("/ok", 200, "")
				eventually(t, "the idle connection is closed", func() bool { return u.open.Load() == 0 })
			}},
			{"pool: {idle_timeout: 1m}", func(t *testing.T, u *upstream, a asker) {
				a.expect("/ok", 200, "")
				time.Sleep(500 * time.Millisecond) // five times the other side's bound
				if u.open.Load() != 1 {
					t.Errorf("%d connections open, want the idle one", u.open.Load())
				}
			}},
		},
		"pool.keep_alive": {
			{"pool: {keep_alive: false}", func(t *testing.T, u *upstream, a asker) {
				for range 3 {
					a.expect("/ok", 200, "")
				}
				if got := u.opened.Load(); got != 3 {
					t.Errorf("%d connections for 3 requests", got)
				}
			}},
			{"pool: {keep_alive: true}", func(t *testing.T, u *upstream, a asker) {
				for range 3 {
					a.expect("/ok", 200, "")
				}
				if got := u.opened.Load(); got != 1 {
					t.Errorf("%d connections for 3 requests", got)
				}
			}},
		},
		"timeouts.connect": {
			// The handshake that never comes is part of connecting.
			{never + "upstream: 'https://SILENT', timeouts: {connect: 100ms}", func(_ *testing.T, _ *upstream, a asker) {
				a.expect("/ok", 504, "timeout_connect")
			}},
			{never + "upstream: 'https://SILENT', timeouts: {connect: 20s, request: 300ms}", func(_ *testing.T, _ *upstream, a asker) {
				a.expect("/ok", 504, "timeout_header") // the other bound speaks first
			}},
		},
		"timeouts.response_header": {
			{never + "timeouts: {response_header: 100ms}", func(_ *testing.T, _ *upstream, a asker) { a.expect("/silent", 504, "timeout_header") }},
			{never + "timeouts: {response_header: 20s}", func(t *testing.T, u *upstream, a asker) { outlives(t, u, a) }},
		},
		"timeouts.request": {
			{never + "timeouts: {request: 100ms}", func(_ *testing.T, _ *upstream, a asker) { a.expect("/silent", 504, "timeout_header") }},
			{never + "timeouts: {request: 20s}", func(t *testing.T, u *upstream, a asker) { outlives(t, u, a) }},
		},
		"timeouts.body_idle": {
			{never + "timeouts: {body_idle: 100ms}", func(t *testing.T, _ *upstream, a asker) {
				resp, err := a.c.Get(a.base + "/stall")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if n, err := io.Copy(io.Discard, resp.Body); err == nil || n != 10 {
					t.Errorf("%d bytes, then %v: a stalled body must end as a cut one", n, err)
				}
			}},
			{never + "timeouts: {body_idle: 20s}", func(t *testing.T, _ *upstream, a asker) {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				resp, err := getContext(ctx, a.c, a.base+"/stall")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				_, _ = io.Copy(io.Discard, resp.Body)
				if ctx.Err() == nil {
					t.Error("cut before body_idle was over")
				}
			}},
		},
		"circuit_breaker.enabled": {
			{breaker("enabled: true"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(4)
				a.expect("/ok", 503, "breaker_open")
			}},
			{breaker("enabled: false"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(4)
				a.expect("/ok", 200, "")
			}},
		},
		"circuit_breaker.failure_rate": {
			{breaker("failure_rate: 50%"), func(_ *testing.T, _ *upstream, a asker) {
				a.succeed(2)
				a.fail(2)
				a.expect("/ok", 503, "breaker_open")
			}},
			{breaker("failure_rate: 60%"), func(_ *testing.T, _ *upstream, a asker) {
				a.succeed(2)
				a.fail(2)
				a.expect("/ok", 200, "")
			}},
		},
		"circuit_breaker.consecutive_failures": {
			{breaker("consecutive_failures: 2"), func(_ *testing.T, _ *upstream, a asker) {
				a.succeed(3)
				a.fail(2)
				a.expect("/ok", 503, "breaker_open")
			}},
			{breaker("consecutive_failures: 3"), func(_ *testing.T, _ *upstream, a asker) {
				a.succeed(3)
				a.fail(2)
				a.expect("/ok", 200, "")
			}},
		},
		"circuit_breaker.failure_on": {
			{breaker(`failure_on: ["5xx"]`), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(4)
				a.expect("/ok", 503, "breaker_open")
			}},
			{breaker("failure_on: [connect]"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(4)
				a.expect("/ok", 200, "")
			}},
		},
		"circuit_breaker.minimum_calls": {
			{breaker("minimum_calls: 2"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(2)
				a.expect("/ok", 503, "breaker_open")
			}},
			{breaker("minimum_calls: 3"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(2)
				a.expect("/ok", 200, "")
			}},
		},
		"circuit_breaker.window": {
			{breaker("window: 1s"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(3)
				time.Sleep(1300 * time.Millisecond) // the three leave the window
				a.fail(1)
				a.expect("/ok", 200, "")
			}},
			{breaker("window: 1m"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(3)
				time.Sleep(1300 * time.Millisecond)
				a.fail(1)
				a.expect("/ok", 503, "breaker_open")
			}},
		},
		"circuit_breaker.open_for": {
			{breaker("open_for: 100ms"), func(t *testing.T, _ *upstream, a asker) {
				a.fail(4)
				eventually(t, "a probe gets through", func() bool { s, _ := a.ask("/ok"); return s == 200 })
			}},
			{breaker("open_for: 1m"), func(_ *testing.T, _ *upstream, a asker) {
				a.fail(4)
				time.Sleep(300 * time.Millisecond)
				a.expect("/ok", 503, "breaker_open")
			}},
		},
		"circuit_breaker.half_open_calls": {
			{breaker("open_for: 100ms, half_open_calls: 1"), func(t *testing.T, u *upstream, a asker) { probes(t, u, a, 1) }},
			{breaker("open_for: 100ms, half_open_calls: 3"), func(t *testing.T, u *upstream, a asker) { probes(t, u, a, 3) }},
		},
	}
	covers(t, cases)
	for _, client := range registry.Names() {
		for key, sides := range cases {
			for _, s := range sides {
				t.Run(client+"/"+key+"/"+s.yaml, func(t *testing.T) {
					t.Parallel()
					u := newUpstream(t)
					yaml := strings.ReplaceAll(s.yaml, "SILENT", silentAddr(t))
					up := []string{"GATEBENCH_GATEWAY_UPSTREAM=http://" + u.addr()}
					if yaml != s.yaml {
						up = nil
					}
					gw := start(t, "gateway", fmt.Sprintf("gateway: {client: %s, %s}", client, yaml), up...)
					s.try(t, u, asker{t, newClient(t), "http://" + gw.addr})
				})
			}
		}
	}
}

// covers checks that every key of the three sections has a case, but pool.policy,
// which has a test of its own.
func covers[T any](t *testing.T, cases map[string]T) {
	t.Helper()
	for section, of := range map[string]reflect.Type{
		"pool": reflect.TypeFor[clients.Pool](), "timeouts": reflect.TypeFor[clients.Timeouts](),
		"circuit_breaker": reflect.TypeFor[gateway.CircuitBreaker](),
	} {
		for i := range of.NumField() {
			key := section + "." + of.Field(i).Tag.Get("yaml")
			if _, ok := cases[key]; !ok && key != "pool.policy" {
				t.Errorf("no case shows what %s changes", key)
			}
		}
	}
}

// breaker is a breaker that trips at four outcomes of which half failed, but for
// the keys given.
func breaker(keys string) string {
	base := map[string]string{"failure_rate": "50%", "minimum_calls": "4", "window": "1m", "open_for": "1m", "half_open_calls": "1"}
	for k := range base {
		if strings.Contains(keys, k+":") {
			delete(base, k)
		}
	}
	for k, v := range base {
		keys += fmt.Sprintf(", %s: %s", k, v)
	}
	return "circuit_breaker: {" + keys + "}"
}

func (a asker) fail(n int) {
	a.t.Helper()
	for range n {
		a.expect("/status/500", 500, "")
	}
}

func (a asker) succeed(n int) {
	a.t.Helper()
	for range n {
		a.expect("/ok", 200, "")
	}
}

// quietly asks and does not mind the answer.
func (a asker) quietly(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if resp, err := getContext(ctx, a.c, a.base+path); err == nil {
		_ = resp.Body.Close()
	}
}

// probes opens the breaker and counts how many requests get through at once when
// it is half open.
func probes(t *testing.T, u *upstream, a asker, want int64) {
	a.fail(4)
	// One request after the other, until one waits upstream: the breaker has let
	// it through.
	for u.inFlight.Load() == 0 {
		before := a.rejected("breaker_open")
		go a.quietly("/hold")
		eventually(t, "an outcome", func() bool { return u.inFlight.Load() > 0 || a.rejected("breaker_open") > before })
	}
	const more = 8
	before := a.rejected("breaker_open")
	wait := a.many(more, "/hold")
	eventually(t, "all probes are upstream, and the rest is rejected", func() bool {
		return u.inFlight.Load() == want && a.rejected("breaker_open")-before == more+1-int(want)
	})
	u.release()
	if got := wait(); int64(got["200"]) != want-1 || u.most.Load() != want {
		t.Errorf("%d were let through half open, want %d (%v)", u.most.Load(), want, got)
	}
}

// outlives shows that a request that waits 400 ms for its head is not cut.
func outlives(t *testing.T, u *upstream, a asker) {
	wait := a.many(1, "/hold")
	eventually(t, "one is upstream", func() bool { return u.inFlight.Load() == 1 })
	time.Sleep(400 * time.Millisecond) // four times the other side's bound
	u.release()
	if got := wait(); got["200"] != 1 {
		t.Errorf("outcomes %v", got)
	}
}

// rejected is how many requests were rejected so far with that reason, by the
// gateway's own count.
func (a asker) rejected(reason string) (n int) {
	a.t.Helper()
	_, metrics := get(a.t, a.c, a.base+"/-/metrics")
	for _, line := range strings.Split(metrics, "\n") {
		if value, ok := strings.CutPrefix(line, `gatebench_gateway_requests_total{code="503",reason="`+reason+`"} `); ok {
			_, _ = fmt.Sscan(value, &n)
		}
	}
	return n
}

// silentAddr accepts connections and says nothing on them.
func silentAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return ln.Addr().String()
}

// TestPoolPolicyLibrary: with `policy: library` each library's own pool shows on
// the wire. After a burst of 20, the connections that stay are those its pool keeps
// idle: two with net/http (http.DefaultTransport's MaxIdleConnsPerHost), one more
// than there are processors with resty and cleanhttp, all with fasthttp.
func TestPoolPolicyLibrary(t *testing.T) {
	const burst = 20
	keeps := map[string]int64{
		"net/http":      http.DefaultMaxIdleConnsPerHost,
		"resty":         int64(runtime.GOMAXPROCS(0) + 1),
		"retryablehttp": int64(runtime.GOMAXPROCS(0) + 1),
		"fasthttp":      burst,
	}
	for _, client := range registry.Names() {
		for policy, want := range map[string]int64{"library": keeps[client], "equal": burst} {
			t.Run(client+"/"+policy, func(t *testing.T) {
				t.Parallel()
				u := newUpstream(t)
				gw := startGateway(t, u.addr(), fmt.Sprintf("gateway: {client: %s, pool: {policy: %s}}", client, policy))
				a := asker{t, newClient(t), "http://" + gw.addr}
				wait := a.many(burst, "/hold")
				eventually(t, "the burst is upstream", func() bool { return u.inFlight.Load() == burst })
				u.release()
				wait()
				eventually(t, fmt.Sprintf("%d connections stay", want), func() bool { return u.open.Load() == want })
			})
		}
	}
}
