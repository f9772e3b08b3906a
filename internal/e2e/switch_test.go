package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatebench/clients/registry"
	"gatebench/loadtest/load"
	"gatebench/server"
)

// rewrite gives a command another configuration file.
func (c *command) rewrite(yaml string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(yaml), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// survive keeps this process from being ended by a hang-up that comes when the last of
// its gateways has just ended.
var survive = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) })

// hangUp sends the signal that has every gateway of this process read its file anew.
func hangUp(t *testing.T) {
	t.Helper()
	survive()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// outcome is how many configurations a gateway has taken up, or refused.
func (c *command) outcome(outcome string) float64 {
	c.t.Helper()
	return metricsOf(c.t, c, "/-/metrics").By("gatebench_gateway_config_reloads_total", "outcome")[outcome]
}

// Ten times the client is another one, under load and behind either server: no request
// fails, none is lost or sent twice, and nothing is left of the clients before.
func TestClientIsSwitchedUnderLoad(t *testing.T) {
	for _, kind := range server.Kinds() {
		t.Run(kind, func(t *testing.T) {
			backend := startBackend(t, "backend: {latency: 5ms}")
			config := func(client string) string {
				return fmt.Sprintf("gateway: {server: %s, client: %s}", kind, client)
			}
			names := registry.Names()
			gateway := startGateway(t, backend.addr, config(names[0]))

			const switches, apart = 10, 100 * time.Millisecond
			p := load.DefaultProfile()
			p.Executor, p.Duration, p.Timeout = load.ConstantArrivalRate, (switches+2)*apart, patience
			p.Rate.PerSecond = 200
			done := make(chan *load.Summary, 1)
			go func() {
				s, err := load.Run(t.Context(), load.Target{URL: "http://" + gateway.addr + "/product"}, p, nil)
				if err != nil {
					t.Error(err)
				}
				done <- s
			}()
			for i := range switches {
				time.Sleep(apart)
				gateway.rewrite(config(names[(i+1)%len(names)]))
				hangUp(t)
				eventually(t, "the switch", func() bool { return gateway.outcome("applied") == float64(i+1) })
			}
			s := <-done
			if s == nil {
				return
			}
			if s.Requests.Failed != 0 || s.Requests.Dropped != 0 || s.Requests.Sent == 0 {
				t.Errorf("%+v, %v %v", s.Requests, s.Errors, s.ErrorExamples)
			}
			if n := arrived(t, backend); n != float64(s.Requests.Sent) {
				t.Errorf("%d requests sent, %v arrived", s.Requests.Sent, n)
			}
			m := metricsOf(t, gateway, "/-/metrics")
			if n, _ := m.Sum("gatebench_gateway_requests_total"); n != float64(s.Requests.Sent) {
				t.Errorf("%d requests sent, %v counted", s.Requests.Sent, n)
			}
			opened, _ := m.Sum("gatebench_gateway_upstream_connections_opened_total")
			if accepted, _ := metricsOf(t, backend, "/metrics").Sum("gatebench_backend_connections_opened_total"); accepted != opened {
				// Those that read its metrics connect to the backend too.
				own := accepted - opened
				if own < 0 || own > 4 {
					t.Errorf("%v connections opened, %v accepted", opened, accepted)
				}
			}
			last := names[switches%len(names)]
			if _, about := get(t, newClient(t), "http://"+gateway.addr+"/-/about"); !strings.Contains(about, fmt.Sprintf("%q: %q", "name", last)) {
				t.Errorf("it does not say that it calls with %s: %s", last, about)
			}
			// The clients before hold nothing: all that is open is the last one's.
			eventually(t, "the old clients' connections close", func() bool {
				open, _ := metricsOf(t, gateway, "/-/metrics").Sum("gatebench_gateway_upstream_connections_open")
				live, _ := metricsOf(t, backend, "/metrics").Sum("gatebench_backend_connections_live")
				return live <= open+1 // and the one that asks
			})
		})
	}
}

// A file with a mistake, or with what cannot change, is refused with its place, and the
// gateway goes on with what it had; the next good one is taken up.
func TestBadConfigurationIsRefusedAndTheOldOneStays(t *testing.T) {
	backend := startBackend(t, "")
	gateway := startGateway(t, backend.addr, "gateway: {client: resty}")
	c := newClient(t)
	for i, tt := range []struct{ yaml, says string }{
		{"gateway:\n  client: restee\n", "gateway.yaml:2"},
		{"gateway: {client: resty, server: fasthttp}", "server: is net/http while the gateway serves, and cannot become fasthttp"},
		{"gateway: {client: fasthttp, limits: {header: 8KiB}}", "limits.header: is 16KiB while"},
		{"gateway: {", "gateway.yaml"},
		{"", "is empty"},
	} {
		gateway.rewrite(tt.yaml)
		hangUp(t)
		eventually(t, "the refusal", func() bool { return gateway.outcome("refused") == float64(i+1) })
		if said := gateway.stderr.String(); !strings.Contains(said, "not taken up: ") || !strings.Contains(said, tt.says) {
			t.Errorf("%q: said %s", tt.yaml, said)
		}
		if status, _ := get(t, c, "http://"+gateway.addr+"/product"); status != 200 {
			t.Errorf("%q: then answered %d", tt.yaml, status)
		}
	}
	gateway.rewrite("gateway: {client: fasthttp}")
	hangUp(t)
	eventually(t, "the switch", func() bool { return gateway.outcome("applied") == 1 })
	if _, about := get(t, c, "http://"+gateway.addr+"/-/about"); !strings.Contains(about, `"name": "fasthttp"`) {
		t.Error(about)
	}
}

// Under watch: true no signal is needed.
func TestWatchedFileIsReadWhenItChanges(t *testing.T) {
	backend := startBackend(t, "")
	gateway := startGateway(t, backend.addr, "gateway: {client: resty, watch: true}")
	gateway.rewrite("") // as most writers leave a file for a moment, or longer
	eventually(t, "the refusal", func() bool { return gateway.outcome("refused") == 1 })
	gateway.rewrite("gateway: {client: fasthttp, watch: true}")
	eventually(t, "the switch", func() bool { return gateway.outcome("applied") == 1 })
	if _, about := get(t, newClient(t), "http://"+gateway.addr+"/-/about"); !strings.Contains(about, `"name": "fasthttp"`) {
		t.Error(about)
	}
}

// An answer of which half was on its way before the switch ends after it, whole.
func TestWhatIsOnItsWayOutlastsASwitch(t *testing.T) {
	for _, kind := range server.Kinds() {
		for i, client := range registry.Names() {
			t.Run(kind+" "+client, func(t *testing.T) {
				half, rest := strings.Repeat("a", 64<<10), strings.Repeat("b", 64<<10)
				release := make(chan struct{})
				upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, half)
					w.(http.Flusher).Flush()
					<-release
					_, _ = io.WriteString(w, rest)
				}))
				defer upstream.Close()
				config := func(client string) string {
					return fmt.Sprintf("gateway: {server: %s, client: %s}", kind, client)
				}
				gateway := startGateway(t, upstream.Listener.Addr().String(), config(client))
				resp, err := newClient(t).Get("http://" + gateway.addr + "/product")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got := make([]byte, len(half))
				if _, err := io.ReadFull(resp.Body, got); err != nil {
					t.Fatal(err)
				}
				gateway.rewrite(config(registry.Names()[(i+1)%len(registry.Names())]))
				hangUp(t)
				eventually(t, "the switch", func() bool { return gateway.outcome("applied") == 1 })
				close(release)
				after, err := io.ReadAll(resp.Body)
				if err != nil || string(got) != half || string(after) != rest {
					t.Errorf("%d and %d bytes, %v", len(got), len(after), err)
				}
			})
		}
	}
}
