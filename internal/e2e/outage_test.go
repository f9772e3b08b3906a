package e2e

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatebench/clients/registry"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
	"gatebench/server"
)

// onEachClient runs a test for every client that is compared.
func onEachClient(t *testing.T, test func(t *testing.T, client string)) {
	for _, client := range registry.Names() {
		t.Run(client, func(t *testing.T) { test(t, client) })
	}
}

// onEachPair does so before a backend of each kind.
func onEachPair(t *testing.T, test func(t *testing.T, kind, client string)) {
	for _, kind := range server.Kinds() {
		t.Run(kind, func(t *testing.T) {
			onEachClient(t, func(t *testing.T, client string) { test(t, kind, client) })
		})
	}
}

// breakBackend puts faults in force at a backend.
func breakBackend(t *testing.T, backend *command, faults string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://"+backend.addr+"/-/faults", strings.NewReader(`{"faults": [`+faults+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// metricsOf reads a command's metrics, and leaves no connection behind.
func metricsOf(t *testing.T, c *command, path string) sut.Metrics {
	t.Helper()
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	_, text := get(t, once, "http://"+c.addr+path)
	m, err := sut.ParseMetrics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// arrived is how many attempts the backend has had.
func arrived(t *testing.T, backend *command) float64 {
	t.Helper()
	n, _ := metricsOf(t, backend, "/metrics").Sum("gatebench_backend_requests_total")
	return n
}

// With the breaker off, an outage makes of every request as many attempts as the
// policy allows, no matter which client makes them: the storm factor is n.
func TestStormFactorIsTheNumberOfAttempts(t *testing.T) {
	const requests = 5 // whose retries the least budget holds
	onEachClient(t, func(t *testing.T, client string) {
		for n := 1; n <= 3; n++ {
			backend := startBackend(t, "")
			gateway := startGateway(t, backend.addr, fmt.Sprintf(`
gateway:
  client: %s
  retry: {max_attempts: %d, retry_on: ["5xx"], budget: 100%%, backoff: {base: 1ms, max: 2ms}}
  circuit_breaker: {enabled: false}
`, client, n))
			breakBackend(t, backend, `{"status": 503}`)
			c := newClient(t)
			for range requests {
				if status, _ := get(t, c, "http://"+gateway.addr+"/product?type=T"); status != http.StatusServiceUnavailable {
					t.Errorf("status %d", status)
				}
			}
			if got := arrived(t, backend); got != float64(n*requests) {
				t.Errorf("%d attempts allowed: %d requests became %v", n, requests, got)
			}
		}
	})
}

// With the breaker on, what arrives in an outage is
//
//	attempts · (minimum_calls + probes)
//
// where one after the other asks, a probe that fails opens the breaker again, so that
// there is one of them per open_for.
func TestAnOpenBreakerLeavesTheProbes(t *testing.T) {
	const minimum, attempts, openFor = 20, 2, 300 * time.Millisecond
	onEachClient(t, func(t *testing.T, client string) {
		backend := startBackend(t, "")
		gateway := startGateway(t, backend.addr, fmt.Sprintf(`
gateway:
  client: %s
  retry: {max_attempts: %d, retry_on: ["5xx"], budget: 100%%, backoff: {base: 1ms, max: 2ms}}
  circuit_breaker: {failure_rate: 50%%, minimum_calls: %d, window: 60s, open_for: %v, half_open_calls: 3}
`, client, attempts, minimum, openFor))
		breakBackend(t, backend, `{"status": 503}`)
		c := newClient(t)
		sent := 0
		probes := func() float64 {
			return metricsOf(t, gateway, "/-/metrics").By("gatebench_gateway_breaker_transitions_total", "to")["half-open"]
		}
		eventually(t, "three probes", func() bool {
			for range 10 {
				get(t, c, "http://"+gateway.addr+"/product?type=T")
				sent++
			}
			return probes() >= 3
		})
		if got, want := arrived(t, backend), attempts*(minimum+probes()); got != want {
			t.Errorf("of %d requests %v attempts arrived, want %v", sent, got, want)
		}
		if sent < 2*minimum {
			t.Errorf("only %d requests: nothing was rejected", sent)
		}
	})
}

// Every fault of the backend comes downstream as the same thing whatever the client.
func TestFaultsThroughTheGateway(t *testing.T) {
	onEachPair(t, func(t *testing.T, kind, client string) {
		backend := startBackend(t, "backend: {server: "+kind+"}")
		gateway := startGateway(t, backend.addr, fmt.Sprintf(`
gateway:
  client: %s
  timeouts: {response_header: 200ms, request: 1s, body_idle: 200ms}
  circuit_breaker: {enabled: false}
`, client))
		_, whole := get(t, newClient(t), "http://"+backend.addr+"/product?type=T")
		for _, tt := range []struct {
			fault  string
			status int
			holds  string // the body; "" where it must not look whole
		}{
			{`{"status": 503}`, 503, "a fault on purpose"},
			{`{"latency": "50ms"}`, 200, whole},
			{`{"latency": "5s"}`, 504, "timeout_header"},
			{`{"hang": true}`, 504, "timeout_header"},
			{`{"reset": "before-head"}`, 502, "reset"},
			{`{"reset": "after-head"}`, 200, ""},
			{`{"slow_body": "300ms"}`, 200, whole},
			{`{"slow_body": "20s"}`, 200, ""},
			{`{"truncate": true}`, 200, ""},
			{`{"length": "long"}`, 200, ""},
			{`{"length": "short"}`, 200, whole[:len(whole)/2]},
		} {
			breakBackend(t, backend, tt.fault)
			resp, err := newClient(t).Get("http://" + gateway.addr + "/product?type=T")
			if err != nil {
				if tt.holds != "" {
					t.Errorf("%s: %v", tt.fault, err)
				}
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("%s: status %d, want %d", tt.fault, resp.StatusCode, tt.status)
			}
			switch {
			case tt.holds == "" && err == nil:
				t.Errorf("%s: the answer %q looks whole", tt.fault, body)
			case tt.holds != "" && (err != nil || !strings.Contains(string(body), tt.holds)):
				t.Errorf("%s: %q, %v, want %q", tt.fault, body, err, tt.holds)
			}
		}
		// Bytes beyond a length that was too short are no answer to anybody.
		for range 3 {
			breakBackend(t, backend, `{"length": "short"}`)
			c := newClient(t)
			get(t, c, "http://"+gateway.addr+"/product?type=T")
			breakBackend(t, backend, "")
			resp, err := c.Get("http://" + gateway.addr + "/product?type=T")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == 200 && string(body) != whole {
				t.Errorf("the answer after a short length is %q", body)
			}
		}
	})
}

// Where an attempt fails with a chance of its own, requests take the attempts that follow
// from it, whichever client makes them: of n at most, (1−pⁿ)/(1−p) each, and pⁿ of them
// fail for good. Counted on the wire.
func TestAttemptsFollowFromTheChanceOfFailure(t *testing.T) {
	const (
		p, n     = 0.4, 3
		requests = 2000
	)
	onEachClient(t, func(t *testing.T, client string) {
		var wire atomic.Int64
		rng := rand.New(rand.NewPCG(42, 1))
		var mu sync.Mutex
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			wire.Add(1)
			mu.Lock()
			failed := rng.Float64() < p
			mu.Unlock()
			if failed {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer upstream.Close()
		gateway := startGateway(t, upstream.Listener.Addr().String(), fmt.Sprintf(`
gateway:
  client: %s
  retry: {max_attempts: %d, retry_on: ["5xx"], budget: 100%%, backoff: {base: 0s, max: 0s}}
  circuit_breaker: {enabled: false}
`, client, n))
		lost := askFor(t, gateway, requests)
		attempts := 0.0
		for i := range n {
			attempts += math.Pow(p, float64(i))
		}
		// Three standard errors of as many requests.
		var square float64
		for k := 1; k <= n; k++ {
			share := math.Pow(p, float64(k-1))
			if k < n {
				share *= 1 - p
			}
			square += share * float64(k*k)
		}
		within := 3 * math.Sqrt((square-attempts*attempts)/requests)
		if got := float64(wire.Load()) / requests; math.Abs(got-attempts) > within {
			t.Errorf("%v attempts a request, want %v ± %v", got, attempts, within)
		}
		ends := math.Pow(p, n)
		if got := float64(lost) / requests; math.Abs(got-ends) > 3*math.Sqrt(ends*(1-ends)/requests) {
			t.Errorf("%v of the requests fail for good, want %v", got, ends)
		}
		if counted, _ := metricsOf(t, gateway, "/-/metrics").Sum("gatebench_gateway_upstream_attempts_total"); counted != float64(wire.Load()) {
			t.Errorf("the gateway counts %v attempts, on the wire are %d", counted, wire.Load())
		}
	})
}

// In an outage a budget of b leaves a request 1 + b attempts, however many are allowed.
func TestBudgetBoundsTheStorm(t *testing.T) {
	const requests = 500
	onEachClient(t, func(t *testing.T, client string) {
		backend := startBackend(t, "")
		gateway := startGateway(t, backend.addr, fmt.Sprintf(`
gateway:
  client: %s
  retry: {max_attempts: 5, retry_on: ["5xx"], budget: 20%%, backoff: {base: 0s, max: 0s}}
  circuit_breaker: {enabled: false}
`, client))
		breakBackend(t, backend, `{"status": 503}`)
		if lost := askFor(t, gateway, requests); lost != requests {
			t.Errorf("%d of %d requests fail", lost, requests)
		}
		// Ten retries are granted to start with.
		if n := arrived(t, backend); n < 1.18*requests || n > 1.2*requests+10 {
			t.Errorf("%v attempts for %d requests", n, requests)
		}
	})
}

// askFor sends requests from eight callers at once, and returns how many got 503.
func askFor(t *testing.T, gateway *command, requests int) (lost int64) {
	t.Helper()
	p := load.DefaultProfile()
	p.Executor, p.VUs, p.Iterations, p.Timeout = load.SharedIterations, 8, int64(requests), patience
	s, err := load.Run(t.Context(), load.Target{URL: "http://" + gateway.addr + "/product"}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests.OK+s.Statuses["503"] != int64(requests) {
		t.Fatalf("%+v %v", s.Requests, s.Errors)
	}
	return s.Statuses["503"]
}

// runPlan carries out a plan without duet and sentinel as a process, and returns its
// result, whatever a busy machine makes of its validity.
func runPlan(t *testing.T, yaml string) *result.Document {
	t.Helper()
	dir := t.TempDir()
	path, out := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "out")
	const experiment = "experiment: {sentinel: false, blocks: 1, budget: 40s, duet: {duration: 0s}, "
	if err := os.WriteFile(path, []byte(strings.Replace(yaml, "experiment: {", experiment, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram("run", path, "--out", out)
	if code := p.run(t); code != 0 && code != 5 {
		t.Fatalf("exit code %d\n%s\n%s", code, &p.stdout, &p.stderr)
	}
	doc, err := result.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range doc.Trials {
		if len(trial.Timeline) == 0 {
			t.Errorf("%s: no timeline", trial.Arm)
		}
		if c := trial.Metrics["connections_opened"]; c != trial.Metrics["backend_connections_accepted"] {
			t.Errorf("%s: the dialer opened %v connections, the backend accepted %v", trial.Arm, c, trial.Metrics["backend_connections_accepted"])
		}
	}
	nothingLeft(t, out)
	return doc
}

// A run measures an outage as the formulas say.
func TestRunMeasuresAnOutage(t *testing.T) {
	var arms []string
	for _, client := range registry.Names() {
		arms = append(arms, fmt.Sprintf("{name: %s retry, client: %[1]s, retry: {max_attempts: 2}}", client), fmt.Sprintf("{name: %s neither, client: %[1]s}", client))
	}
	doc := runPlan(t, `
gateway:
  retry: {retry_on: ["5xx"], budget: 100%, backoff: {base: 1ms, max: 2ms}}
  circuit_breaker: {enabled: false}
experiment: {arms: [`+strings.Join(arms, ", ")+`], profile: out}
profiles:
  out: {executor: constant-arrival-rate, rate: 200/s, duration: 1750ms, faults: [{at: 250ms, for: 500ms, backend: {status: 503}}]}
`)
	if len(doc.Faults) != 1 || doc.Faults[0].What != "backend status 503" {
		t.Errorf("faults %+v", doc.Faults)
	}
	for _, trial := range doc.Trials {
		want := map[string]float64{"storm_factor": 1, "goodput_lost": 1}
		if strings.HasSuffix(trial.Arm, "retry") {
			want["storm_factor"] = 2
		}
		for metric, value := range want {
			// The edges of half a second are good to some hundredths.
			if got, ok := trial.Metrics[metric]; !ok || math.Abs(got-value) > 0.15*value {
				t.Errorf("%s: %s is %v, want about %v", trial.Arm, metric, got, value)
			}
		}
		if r, ok := trial.Metrics["recovery_ms"]; !ok || r > 300 {
			t.Errorf("%s: recovered after %v ms, %v", trial.Arm, r, ok)
		}
	}
}

// A fault on the wire slows every answer, and costs none.
func TestRunSlowsTheWire(t *testing.T) {
	doc := runPlan(t, `
experiment: {profile: wire}
profiles:
  wire: {executor: constant-arrival-rate, rate: 100/s, duration: 500ms, faults: [{at: 100ms, for: 200ms, wire: {latency: 30ms}}]}
`)
	for _, trial := range doc.Trials {
		if trial.Errors != 0 || trial.Metrics["response_time_max"] < 30 {
			t.Errorf("%s: %d errors, greatest response time %v", trial.Arm, trial.Errors, trial.Metrics["response_time_max"])
		}
	}
}
