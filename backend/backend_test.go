package backend

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"gatebench/internal/conf"
	"gatebench/server"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's clock never ends, and its pool's cleaner sees the end of
		// its server only after a sleep of up to ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// newBackend serves cfg on a port of its own until the test ends.
func newBackend(t testing.TB, change func(*Config)) (*Backend, string) {
	t.Helper()
	cfg := DefaultConfig()
	change(&cfg)
	b, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(ln) }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return b, "http://" + ln.Addr().String()
}

// newClient has a pool of its own.
func newClient(t testing.TB) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

func onEachServer(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range server.Kinds() {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// fetch returns status and body; it fails the test if there is none.
func fetch(t testing.TB, c *http.Client, method, url, contentType string, body io.Reader) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, string(b)
}

// metric reads the figures of one family from /metrics, by label values.
func metric(t testing.TB, c *http.Client, base, name string) map[string]float64 {
	t.Helper()
	_, text := fetch(t, c, "GET", base+"/metrics", "", nil)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, m := range families[name].GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		figures[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return figures
}

// eventually polls until ok or ten seconds are over.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}

func TestBothServersGiveTheSameBytes(t *testing.T) {
	type reply struct {
		Status int
		Header http.Header
		Length int64
		Body   string
	}
	requests := []struct{ method, target, contentType, body string }{
		{"GET", "/product?type=T", "", ""},
		{"PUT", "/product?type=T", "text/plain", "body nobody asked for"},
		{"HEAD", "/product?type=T", "", ""},
		{"GET", "/products?type=T", "", ""},
		{"GET", "/product/a%2Fb?name=x&price=1", "", ""},
		{"GET", "/product/a?name=x", "", ""},
		{"POST", "/postProduct", formType, "id=1&name=a&price=2"},
		{"POST", "/postProduct2", jsonType, `{"name":"a","id":"1","price":2}`},
		{"POST", "/postProduct2", jsonType, `{`},
		{"POST", "/bookTickets", jsonType, `[1,2,3]`},
		{"POST", "/uploadFile", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../f\"\r\n\r\ncontent\r\n--x--\r\n"},
		{"GET", "/hello/1ms", "", ""},
		{"GET", "/healthz", "", ""},
		{"HEAD", "/healthz", "", ""},
		{"GET", "/nowhere", "", ""},
		{"GET", "/postProduct", "", ""},
	}
	replies := map[string][]reply{}
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server = kind })
		c := newClient(t)
		for _, r := range requests {
			resp, body := fetch(t, c, r.method, base+r.target, r.contentType, strings.NewReader(r.body))
			if resp.Header.Get("Date") == "" {
				t.Errorf("%s %s: no Date", r.method, r.target)
			}
			resp.Header.Del("Date")
			replies[kind] = append(replies[kind], reply{resp.StatusCode, resp.Header, resp.ContentLength, body})
		}
	})
	for i, r := range requests {
		if diff := cmp.Diff(replies[server.NetHTTP][i], replies[server.FastHTTP][i]); diff != "" {
			t.Errorf("%s %s: (-net/http +fasthttp)\n%s", r.method, r.target, diff)
		}
	}
	want := reply{200, http.Header{
		"Content-Type": {jsonType}, "Content-Length": {"36"}, "X-Appid": {"android01"}, "Set-Cookie": {"sid=1000101111"},
	}, 36, `{"name":"TA","id":"1","price":56.67}`}
	if diff := cmp.Diff(want, replies[server.NetHTTP][0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The field's name on the wire is X-appId, where the server can keep case.
func TestFieldNamesOnTheWire(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server = kind })
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /product?type=T HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		reply, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(reply), "\r\nX-appId: android01\r\n") {
			t.Errorf("%v\n%s", err, reply)
		}
	})
}

func TestMetricsCountWhatHappened(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		b, base := newBackend(t, func(c *Config) { c.Server, c.MaxWorkers = kind, 1 })
		watch, c := newClient(t), newClient(t)
		for _, target := range []string{"/product", "/product", "/product/1", "/nowhere", "/healthz"} {
			fetch(t, c, "GET", base+target, "", nil)
		}
		got := metric(t, watch, base, "gatebench_backend_requests_total")
		maps.DeleteFunc(got, func(_ string, v float64) bool { return v == 0 })
		if diff := cmp.Diff(map[string]float64{"200 /product": 2, "400 /product/{pid}": 1, "404 other": 1}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}

		// One request holds the only worker, two wait; each has a connection.
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+"/hello/30", nil)
				if resp, err := c.Do(req); err == nil {
					resp.Body.Close()
					t.Errorf("answered with %v", resp.Status)
				}
			})
		}
		one := func(name string) float64 { return metric(t, watch, base, "gatebench_backend_"+name)[""] }
		eventually(t, "one busy, two queued", func() bool { return one("workers_busy") == 1 && one("queue_length") == 2 })
		if n := one("in_flight"); n != 3 {
			t.Errorf("%v in flight, want 3", n)
		}
		// Three and the watcher's; the first requests went on one of the three.
		for name, want := range map[string]float64{"connections_opened_total": 4, "connections_live": 4, "connections_idle": 0} {
			if n := one(name); n != want {
				t.Errorf("%s is %v, want %v", name, n, want)
			}
		}
		if n := one("process"); n != 0 || len(metric(t, watch, base, "gatebench_process_cpu_seconds_total")) != 2 {
			t.Error("the process's own figures are missing")
		}
		cancel()
		wg.Wait()
		eventually(t, "all gone", func() bool { return one("in_flight") == 0 && one("workers_busy") == 0 && b.Conns().Live == 1 })
		if n := metric(t, watch, base, "gatebench_backend_requests_total")["0 /hello/{latency}"]; n != 3 {
			t.Errorf("%v callers went away, want 3", n)
		}
	})
}

func TestKeepAliveUsesOneConnection(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		b, base := newBackend(t, func(c *Config) { c.Server = kind })
		c := newClient(t)
		for range 20 {
			fetch(t, c, "GET", base+"/product", "", nil)
			fetch(t, c, "POST", base+"/product", "", strings.NewReader(strings.Repeat("x", 1<<20)))
			fetch(t, c, "POST", base+"/bookTickets", jsonType, strings.NewReader("[]"))
		}
		if n := b.Conns().Opened; n != 1 {
			t.Errorf("60 requests in a row opened %d connections", n)
		}
	})
}

// Unique bodies at once over few workers: nobody gets another's answer.
func TestAnswersAreNotMixedUp(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server, c.MaxWorkers = kind, 4 })
		c := newClient(t)
		var wg sync.WaitGroup
		for user := range 16 {
			wg.Go(func() {
				for i := range 50 {
					list := `["` + strings.Repeat(strconv.Itoa(user*1000+i)+" ", 1+i*97%3000) + `"]`
					if _, got := fetch(t, c, "POST", base+"/bookTickets", jsonType, strings.NewReader(list)); got != list {
						t.Errorf("user %d, request %d: got something else back", user, i)
					}
					want := fmt.Sprintf(`{"name":"n%d","id":"%d","price":%d}`, user, i, i)
					if _, got := fetch(t, c, "GET", fmt.Sprintf("%s/product/%d?name=n%d&price=%d", base, i, user, i), "", nil); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestTooLargeUploadIsToldBeforeItIsSent(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server, c.MaxUpload = kind, conf.MiB })
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "POST /uploadFile HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n", int64(1)<<40)
		fmt.Fprint(conn, "-") // fasthttp waits for a body's first byte
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || err != nil || !strings.Contains(string(body), "at most 1MiB") {
			t.Errorf("%s %s %v", resp.Status, body, err)
		}
	})
}

func TestShutdownAnswersWhatIsRunning(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		b, base := newBackend(t, func(c *Config) { c.Server, c.MaxWorkers, c.Latency = kind, 2, "30ms" })
		c := newClient(t)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if resp, body := fetch(t, c, "GET", base+"/product", "", nil); resp.StatusCode != http.StatusOK || len(body) != 36 {
					t.Errorf("%d %q", resp.StatusCode, body)
				}
			})
		}
		eventually(t, "all six are there", func() bool {
			busy, queued := b.service.workers.load()
			return busy == 2 && queued == 4
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestCloseEndsWhatIsRunningAndQueued(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		b, base := newBackend(t, func(c *Config) { c.Server, c.MaxWorkers, c.Latency = kind, 1, "1h" })
		c := newClient(t)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if resp, err := c.Get(base + "/product"); err == nil {
					resp.Body.Close()
					t.Error("answered with", resp.Status)
				}
			})
		}
		eventually(t, "all three are there", func() bool {
			busy, queued := b.service.workers.load()
			return busy == 1 && queued == 2
		})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait() // and nothing runs on: see TestMain
	})
}

func TestNewSaysWhatIsBad(t *testing.T) {
	cfg := Config{Listen: "here", Server: "nginx", MaxWorkers: -1, AcceptQueue: 1, MaxConnections: -1, Latency: "-1s", BodySize: -1, UploadDir: "\x00", MaxUpload: -1}
	var paths []string
	for _, p := range conf.Problems(cfg.Validate()) {
		paths = append(paths, p.Path)
		if len(p.Message) < 10 {
			t.Errorf("%s: %q", p.Path, p.Message)
		}
	}
	if want := []string{"listen", "server", "max_workers", "accept_queue", "max_connections", "latency", "body_size", "upload_dir", "max_upload"}; !slices.Equal(paths, want) {
		t.Errorf("problems at %q, want %q", paths, want)
	}
	if _, err := New(cfg, nil); len(conf.Problems(err)) != len(paths) {
		t.Errorf("New: %v", err)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for listen, ok := range map[string]bool{
		":0": true, "[::1]:80": true, "localhost:8081": true,
		"": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:http": false, "127.0.0.1:99999": false, "127.0.0.1:-1": false,
	} {
		cfg := DefaultConfig()
		cfg.Listen = listen
		if err := cfg.Validate(); (err == nil) != ok {
			t.Errorf("listen %q: %v", listen, err)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	before, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	after, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range after {
		if strings.HasPrefix(e.Name(), "gatebench-uploads-") && !slices.ContainsFunc(before, func(o os.DirEntry) bool { return o.Name() == e.Name() }) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

func BenchmarkProductOverTheWire(b *testing.B) {
	for _, kind := range server.Kinds() {
		b.Run(kind, func(b *testing.B) {
			_, base := newBackend(b, func(c *Config) { c.Server = kind })
			conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			request := []byte("GET /product?type=T HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")
			reply := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				for n := 0; !strings.HasSuffix(string(reply[:n]), "56.67}"); {
					more, err := conn.Read(reply[n:])
					if err != nil {
						b.Fatal(err)
					}
					n += more
				}
			}
		})
	}
}
