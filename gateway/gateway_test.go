package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"gatebench/clients"
	"gatebench/gateway"
)

func TestOwnPaths(t *testing.T) {
	h := open(t)
	h.upstream.answer = fails(clients.Dial, 1)
	for _, tc := range []struct {
		method, target string
		status         int
		contentType    string
	}{
		{"GET", "/-/healthz", 200, "text/plain; charset=utf-8"},
		{"HEAD", "/-/healthz", 200, "text/plain; charset=utf-8"},
		{"GET", "/-/healthz?verbose", 200, "text/plain; charset=utf-8"},
		{"GET", "/-/metrics", 200, "text/plain; version=0.0.4; charset=utf-8"},
		{"GET", "/-/about", 200, "application/json"},
		{"POST", "/-/healthz", 405, "application/problem+json"},
		{"GET", "/-/", 404, "application/problem+json"},
		{"GET", "/-/healthz/", 404, "application/problem+json"},
		{"GET", "/-/../product", 404, "application/problem+json"},
	} {
		resp, _ := h.serve(inbound(tc.method, tc.target))
		if resp.Status != tc.status || resp.Fields.Get("Content-Type") != tc.contentType {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.target,
				resp.Status, resp.Fields.Get("Content-Type"), tc.status, tc.contentType)
		}
		if tc.status == 405 && resp.Fields.Get("Allow") != "GET, HEAD" {
			t.Errorf("405 with Allow %q", resp.Fields.Get("Allow"))
		}
	}
	if h.upstream.sent != 0 {
		t.Errorf("upstream was called %d times", h.upstream.sent)
	}
	if got := h.metrics("gatebench_gateway_requests_total"); got != nil {
		t.Errorf("own paths are counted: %v", got)
	}
}

func TestAdminListenMovesTheOwnPaths(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.Admin.Listen = "127.0.0.1:0" })
	h.serve(inbound("GET", "/-/healthz"))
	if h.upstream.last.Target != "/-/healthz" {
		t.Errorf("upstream got %q", h.upstream.last.Target)
	}
	if resp := h.Admin().Serve(t.Context(), inbound("GET", "/-/healthz")); resp.Status != 200 {
		t.Errorf("admin's healthz: %d", resp.Status)
	}
	if resp := h.Admin().Serve(t.Context(), inbound("GET", "/product")); resp.Status != 404 {
		t.Errorf("admin passes on: %d", resp.Status)
	}
	if h.upstream.sent != 1 {
		t.Errorf("sent %d times, want 1", h.upstream.sent)
	}
}

func TestMetrics(t *testing.T) {
	h := open(t)
	h.serve(inbound("GET", "/"))
	h.serve(inbound("GET", "/"))
	h.upstream.answer = responds(404)
	h.serve(inbound("GET", "/"))
	h.upstream.answer = fails(clients.Dial, 3)
	h.serve(inbound("GET", "/"))
	h.upstream.answer = fails(clients.Canceled, 1)
	h.serve(inbound("GET", "/"))
	h.upstream.answer = responds(200)
	for _, end := range []error{
		&clients.Error{Kind: clients.Canceled}, &clients.Error{Kind: clients.Protocol}, context.Canceled,
	} {
		h.Serve(t.Context(), inbound("GET", "/")).End(end)
	}
	h.serve(inbound("GET", "relative"))
	_ = h.Reject(431, clients.BadRequest, "too much")
	_ = h.Reject(500, 0, "panic")
	flying := h.Serve(t.Context(), inbound("GET", "/"))

	_, text := h.serve(inbound("GET", "/-/metrics"))
	var got strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "gatebench_gateway_") && !strings.HasPrefix(line, "gatebench_gateway_time_") { // of those see TestTimeIsCountedByPhase
			got.WriteString(line)
		}
	}
	want := `gatebench_gateway_breaker_state{state="closed"} 1
gatebench_gateway_breaker_state{state="half-open"} 0
gatebench_gateway_breaker_state{state="open"} 0
gatebench_gateway_breaker_transitions_total{from="closed",to="open"} 0
gatebench_gateway_breaker_transitions_total{from="half-open",to="closed"} 0
gatebench_gateway_breaker_transitions_total{from="half-open",to="open"} 0
gatebench_gateway_breaker_transitions_total{from="open",to="half-open"} 0
gatebench_gateway_burned_seconds_total 0
gatebench_gateway_config_reloads_total{outcome="applied"} 0
gatebench_gateway_config_reloads_total{outcome="refused"} 0
gatebench_gateway_in_flight 1
gatebench_gateway_pool_pending 0
gatebench_gateway_requests_total{code="0",reason="canceled"} 1
gatebench_gateway_requests_total{code="200",reason=""} 2
gatebench_gateway_requests_total{code="200",reason="canceled"} 1
gatebench_gateway_requests_total{code="200",reason="fault"} 1
gatebench_gateway_requests_total{code="200",reason="protocol"} 1
gatebench_gateway_requests_total{code="400",reason="bad_request"} 1
gatebench_gateway_requests_total{code="404",reason=""} 1
gatebench_gateway_requests_total{code="431",reason="bad_request"} 1
gatebench_gateway_requests_total{code="500",reason="fault"} 1
gatebench_gateway_requests_total{code="502",reason="dial"} 1
gatebench_gateway_upstream_attempts_total 11
gatebench_gateway_upstream_connections_in_use 1
gatebench_gateway_upstream_connections_open 0
gatebench_gateway_upstream_connections_opened_total 0
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	flying.End(nil)
	wantMetrics(t, h, "gatebench_gateway_in_flight", " 0")
	wantMetrics(t, h, "gatebench_gateway_upstream_connections_in_use", " 0")

	// What reads it is Prometheus, not a prefix.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"gatebench_process_cpu_seconds_total", "gatebench_process_allocs_total", "gatebench_process_goroutines",
	} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestMetricsWithoutLayers(t *testing.T) {
	h := open(t, func(c *gateway.Config) {
		c.Pool.Policy, c.CircuitBreaker.Enabled = clients.PoolLibrary, false
	})
	resp := h.Serve(t.Context(), inbound("GET", "/"))
	wantMetrics(t, h, "gatebench_gateway_upstream_connections_in_use", " 1")
	wantMetrics(t, h, "gatebench_gateway_pool_pending", " 0")
	if got := h.metrics("gatebench_gateway_breaker"); got != nil {
		t.Errorf("a breaker that is not there: %v", got)
	}
	resp.End(nil)
}

func TestPoolPolicyLibraryAdmitsEverybody(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.Pool.Policy = clients.PoolLibrary })
	for range 2 * clients.DefaultSettings().Pool.MaxConns {
		resp := h.Serve(t.Context(), inbound("GET", "/"))
		if resp.Status != 200 {
			t.Fatalf("status %d", resp.Status)
		}
		defer resp.End(nil)
	}
}

func tight(c *gateway.Config) {
	c.Pool.MaxConns, c.Pool.MaxPending = 1, 0
	c.CircuitBreaker.MinimumCalls = 3
	c.CircuitBreaker.HalfOpenCalls = 1
}

// TestTheOrderOfLayers: an open breaker takes no place, and a full pool says
// nothing about upstream.
func TestTheOrderOfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, tight)
		long := h.Serve(t.Context(), inbound("GET", "/"))
		for range 10 {
			resp, body := h.serve(inbound("GET", "/"))
			wantProblem(t, resp, body, 503, "pool_exhausted")
			if resp.Fields.Has("Retry-After") {
				t.Error("pool_exhausted with Retry-After")
			}
		}
		wantMetrics(t, h, `gatebench_gateway_breaker_state{state="closed"}`, " 1")
		long.End(nil)

		h.upstream.answer = fails(clients.Reset, 1)
		h.serve(inbound("GET", "/"))
		long = func() *clients.Response { // takes the only place
			h.upstream.answer = responds(200)
			return h.Serve(t.Context(), inbound("GET", "/"))
		}()
		h.serve(inbound("GET", "/")) // exhausted: neutral
		wantMetrics(t, h, `gatebench_gateway_breaker_state{state="closed"}`, " 1")
		long.End(&clients.Error{Kind: clients.Protocol}) // the third outcome, the second failure
		wantMetrics(t, h, `gatebench_gateway_breaker_state{state="open"}`, " 1")

		sent := h.upstream.sent
		resp, body := h.serve(inbound("GET", "/"))
		wantProblem(t, resp, body, 503, "breaker_open")
		if got := resp.Fields.Get("Retry-After"); got != "2" {
			t.Errorf("Retry-After %q, want 2", got)
		}
		time.Sleep(900 * time.Millisecond)
		if resp, _ = h.serve(inbound("GET", "/")); resp.Fields.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q, want 2: 1.1 s round up", resp.Fields.Get("Retry-After"))
		}
		time.Sleep(600 * time.Millisecond)
		if h.upstream.sent != sent {
			t.Error("an open breaker let something through")
		}
		wantMetrics(t, h, "gatebench_gateway_upstream_connections_in_use", " 0")

		time.Sleep(501 * time.Millisecond)
		probe := h.Serve(t.Context(), inbound("GET", "/"))
		if resp, _ = h.serve(inbound("GET", "/")); resp.Fields.Get("Retry-After") != "1" {
			t.Errorf("a rejection while a probe flies has Retry-After %q, want 1", resp.Fields.Get("Retry-After"))
		}
		probe.End(nil)
		wantMetrics(t, h, `gatebench_gateway_breaker_state{state="closed"}`, " 1")
		wantMetrics(t, h, "gatebench_gateway_breaker_transitions_total",
			`{from="closed",to="open"} 1`, `{from="half-open",to="closed"} 1`,
			`{from="half-open",to="open"} 0`, `{from="open",to="half-open"} 1`)
	})
}

// A request without an answer from upstream does not read its body: who asked
// with Expect gets the 503 before any 100.
func TestARejectedBodyIsNotRead(t *testing.T) {
	h := open(t, tight)
	defer h.Serve(t.Context(), inbound("GET", "/")).End(nil)
	in := inbound("POST", "/", field("Expect: 100-continue"))
	in.Body, in.ContentLength = unread{t}, 5
	resp, body := h.serve(in)
	wantProblem(t, resp, body, 503, "pool_exhausted")
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, nil
}

func TestAPanicEndsOneExchangeOnly(t *testing.T) {
	h := open(t, tight)
	h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) { panic("made for the test") }
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed: the server is who answers it")
				}
			}()
			h.Serve(t.Context(), inbound("GET", "/"))
		}()
	}
	wantMetrics(t, h, "gatebench_gateway_in_flight", " 0")
	wantMetrics(t, h, "gatebench_gateway_upstream_connections_in_use", " 0")
	h.upstream.answer = responds(200)
	if resp, _ := h.serve(inbound("GET", "/")); resp.Status != 200 {
		t.Errorf("afterwards: %d", resp.Status)
	}
}

func TestReject(t *testing.T) {
	h := open(t)
	resp := h.Reject(431, clients.BadRequest, "the head is longer than 16384 bytes")
	var p map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "about:blank", "title": "Request Header Fields Too Large", "status": 431.0,
		"detail": "the head is longer than 16384 bytes", "reason": "bad_request",
	}
	if diff := cmp.Diff(want, p); diff != "" || resp.Status != 431 {
		t.Errorf("status %d (-want +got):\n%s", resp.Status, diff)
	}
}

func TestAbout(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.Timeouts.Request = 90 * time.Second })
	_, body := h.serve(inbound("GET", "/-/about"))
	var got struct {
		Schema, Version, Go string
		Client, Server      struct {
			Name, Module, Version string
			Deviations            []struct{ Name, Reason string }
		}
		Config map[string]any
	}
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if got.Schema != "gatebench.about/1" || got.Version != "v1.2.3" || !strings.HasPrefix(got.Go, "go1.") {
		t.Errorf("%+v", got)
	}
	if fmt.Sprint(got.Client) != "{fake example.org/fake v0.1.0 [{trailers it has none}]}" {
		t.Errorf("client %+v", got.Client)
	}
	if got.Server.Name != "net/http" || got.Server.Deviations == nil {
		t.Errorf("server %+v: an empty list is a list", got.Server)
	}
	for path, want := range map[string]any{
		"upstream": "http://127.0.0.1:8081", "client": "net/http", "pool.max_conns": 256.0,
		"pool.pending_timeout": "1s", "timeouts.request": "1m30s", "limits.header": "16KiB",
		"retry.budget": "20%", "retry.backoff.base": "20ms", "circuit_breaker.failure_rate": "50%",
		"circuit_breaker.enabled": true, "admin.listen": "", "tls.ca": "", "host": "upstream",
	} {
		if v := at(got.Config, path); v != want {
			t.Errorf("config %s is %v, want %v", path, v, want)
		}
	}
	// Every key of the YAML is there, today's and tomorrow's.
	for _, path := range yamlPaths(reflect.TypeFor[gateway.Config](), "") {
		if at(got.Config, path) == nil {
			t.Errorf("config %s is missing", path)
		}
	}
}

func TestAboutShowsNoBoundThatIsNotInForce(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.Pool.Policy = clients.PoolLibrary })
	_, body := h.serve(inbound("GET", "/-/about"))
	var got struct{ Config map[string]any }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"policy": "library"}, got.Config["pool"]); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
}

func at(section map[string]any, path string) any {
	head, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return section[head]
	}
	inner, _ := section[head].(map[string]any)
	return at(inner, rest)
}

func yamlPaths(typ reflect.Type, prefix string) (paths []string) {
	for f := range typ.Fields() {
		path := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct {
			paths = append(paths, yamlPaths(f.Type, path+".")...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestCloseReachesTheClient(t *testing.T) {
	h := open(t)
	if err := h.Close(); err != nil || !h.upstream.closed {
		t.Errorf("closed %v, %v", h.upstream.closed, err)
	}
}

// TestConcurrently is for the race detector, and for a request that would be
// counted as somebody else's.
func TestConcurrently(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.CircuitBreaker.Enabled = false })
	const each = 500
	u := concurrent{}
	g, err := gateway.New(gateway.DefaultConfig(), gateway.Parts{Client: u, Dialer: &clients.Dialer{}})
	if err != nil {
		t.Fatal(err)
	}
	h.Gateway = g
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				for target, status := range map[string]int{"/ok": 200, "/missing": 404} {
					resp := g.Serve(t.Context(), inbound("GET", target))
					if resp.Status != status {
						t.Errorf("%s: %d", target, resp.Status)
					}
					resp.End(nil)
				}
			}
		})
	}
	wg.Wait()
	wantMetrics(t, h, "gatebench_gateway_requests_total",
		fmt.Sprintf(`{code="200",reason=""} %d`, 4*each), fmt.Sprintf(`{code="404",reason=""} %d`, 4*each))
	wantMetrics(t, h, "gatebench_gateway_in_flight", " 0")
}

type concurrent struct{}

func (concurrent) Do(_ context.Context, r *clients.Request) (*clients.Response, error) {
	status := 200
	if r.Target == "/missing" {
		status = 404
	}
	return clients.NewResponse(status, nil, nil), nil
}

func (concurrent) Close() error { return nil }
