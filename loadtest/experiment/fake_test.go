package experiment_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// TestMain makes this test binary the system under test when it is started as one:
// gateways, backends and load generators whose figures are known.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "gateway":
			s := read[gatewayScript](os.Args[3])
			n := starts(os.Args[3])
			if n > 1 && s.GoodputLater > 0 {
				s.Goodput = s.GoodputLater
			}
			if n%2 == 0 {
				s.CPU *= 1 + s.Wobble
			}
			if n == s.InvalidAt {
				s.Load = "invalid"
			}
			if len(os.Args) > 7 && os.Args[4] == "--pprof" && os.Args[6] == "--pprof-file" {
				must(0, os.WriteFile(os.Args[7], []byte(os.Args[5]+" of "+os.Args[3]), 0o600))
			}
			fakeGateway(s)
			return
		case "backend":
			fakeBackend(read[backendScript](os.Args[3]))
			return
		case "load":
			fakeLoad(os.Args[2:])
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// starts counts the starts with a configuration, this one included, by marks beside
// it.
func starts(path string) int {
	for n := 1; ; n++ {
		f, err := os.OpenFile(fmt.Sprintf("%s.started%d", path, n), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			return n
		}
		if !errors.Is(err, os.ErrExist) {
			panic(err)
		}
	}
}

// gatewayScript is what a fake gateway reads in place of its configuration.
type gatewayScript struct {
	CPU, Allocs, Bytes float64 // per request; CPU in microseconds
	Connections        int     // to open upstream at the first request
	Unclaimed          int     // of which the metrics do not tell
	Goodput            float64 // that the load is to report
	GoodputLater       float64 // the same for every start but the first; 0 is no change

	Wobble float64 // CPU is that share more at every second start

	Load      string // what the load is to do, see fakeLoad
	InvalidAt int    // the start, from 1, whose load is not valid

	Phantoms int            // attempts that the backend does not see
	Reasons  map[string]int // failed requests by reason

	Idle     bool // the metrics show no request
	Mute     bool // no metrics at all
	Stubborn bool // ignores SIGTERM
	Dies     bool // at the first request
}

// backendScript is what a fake backend reads.
type backendScript struct {
	Dies   bool // at the first request, with last words
	Refuse bool // does not start
	Number int  // makes two scripts differ
}

func (s gatewayScript) yaml() []byte { return marshal(s) }
func (s backendScript) yaml() []byte { return marshal(s) }

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func read[T any](path string) (v T) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return v
}

// perScrape is how many requests a fake gateway has served more at every scrape:
// its figures do not hang on how fast this machine is.
const perScrape = 1000

// about is what a fake gateway says of itself.
type about struct {
	Upstream, Admin string
	GOMAXPROCS      int
	Environment     []string
}

func fakeGateway(s gatewayScript) {
	var served, opened atomic.Int64
	upstream, admin := os.Getenv("GATEBENCH_GATEWAY_UPSTREAM"), os.Getenv("GATEBENCH_GATEWAY_ADMIN_LISTEN")
	var first sync.Once
	mux := http.NewServeMux()
	mux.HandleFunc("/-/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/-/about", func(w http.ResponseWriter, _ *http.Request) {
		ours := slices.DeleteFunc(os.Environ(), func(kv string) bool {
			return !strings.HasPrefix(kv, "GATEBENCH_") && !strings.HasPrefix(kv, "GIVEN")
		})
		w.Write(marshal(about{upstream, admin, runtime.GOMAXPROCS(0), ours}))
	})
	mux.HandleFunc("/-/metrics", func(w http.ResponseWriter, _ *http.Request) {
		if s.Mute {
			http.Error(w, "no metrics today", http.StatusInternalServerError)
			return
		}
		n := float64(served.Load())
		if !s.Idle {
			n = float64(served.Add(perScrape))
		}
		fmt.Fprintf(w, "gatebench_gateway_requests_total{code=\"200\",reason=\"\"} %v\n", n)
		fmt.Fprintf(w, "gatebench_process_cpu_seconds_total{mode=\"user\"} %v\n", n*s.CPU/4e6)
		fmt.Fprintf(w, "gatebench_process_cpu_seconds_total{mode=\"system\"} %v\n", n*s.CPU*3/4e6)
		fmt.Fprintf(w, "gatebench_process_allocs_total %v\n", n*s.Allocs)
		fmt.Fprintf(w, "gatebench_process_alloc_bytes_total %v\n", n*s.Bytes)
		fmt.Fprintf(w, "gatebench_process_gc_cycles_total %v\n", n/250)
		fmt.Fprintf(w, "gatebench_process_goroutines %v\n", 9)
		for reason, n := range s.Reasons {
			fmt.Fprintf(w, "gatebench_gateway_requests_total{code=\"502\",reason=%q} %d\n", reason, n)
		}
		fmt.Fprintf(w, "gatebench_gateway_upstream_attempts_total %v\n", opened.Load()+int64(s.Phantoms))
		fmt.Fprintf(w, "gatebench_gateway_breaker_transitions_total{from=\"closed\",to=\"open\"} 2\n")
		fmt.Fprintf(w, "gatebench_gateway_breaker_transitions_total{from=\"open\",to=\"half-open\"} 1\n")
		fmt.Fprintf(w, "gatebench_gateway_upstream_connections_opened_total %v\n", opened.Load()-int64(s.Unclaimed))
	})
	mux.HandleFunc("/product", func(w http.ResponseWriter, _ *http.Request) {
		first.Do(func() {
			if s.Dies {
				fmt.Fprintln(os.Stderr, "gateway: out of cheese")
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			for range s.Connections {
				t := &http.Transport{DisableKeepAlives: true}
				if resp, err := t.RoundTrip(must(http.NewRequest(http.MethodGet, upstream+"/product", nil))); err == nil {
					resp.Body.Close()
				}
				opened.Add(1)
			}
		})
		w.Header().Set("X-Load", s.Load)
		w.Header().Set("X-Goodput", fmt.Sprint(s.Goodput))
	})
	serve(os.Getenv("GATEBENCH_GATEWAY_LISTEN"), mux, nil, s.Stubborn)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func fakeBackend(s backendScript) {
	if s.Refuse {
		fmt.Fprintln(os.Stderr, "upload folder: no space left on device")
		os.Exit(1)
	}
	var opened, served atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Goodput", "90000") })
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "gatebench_backend_connections_opened_total %v\n", opened.Load())
		fmt.Fprintf(w, "gatebench_backend_requests_total{route=\"/product\",code=\"200\"} %v\n", served.Load())
	})
	mux.HandleFunc("PUT /-/latency", func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("dealt anew,", r.URL.RawQuery)
	})
	mux.HandleFunc("/product", func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		w.Header().Set("X-Goodput", "40000")
		if s.Dies {
			fmt.Fprintln(os.Stderr, "disk on fire")
			os.Exit(7)
		}
	})
	serve(os.Getenv("GATEBENCH_BACKEND_LISTEN"), mux, &opened, false)
}

// serve serves until SIGTERM, and counts connections in opened.
func serve(addr string, h http.Handler, opened *atomic.Int64, stubborn bool) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	srv := &http.Server{Handler: h, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew && opened != nil {
			opened.Add(1)
		}
	}}
	go srv.Serve(ln)
	fmt.Printf("listening on %s\n", ln.Addr())
	for <-end; stubborn; {
		<-end
	}
}

// fakeLoad sends ten requests, waits out its time and prints a summary. The first
// answer may tell it to do otherwise.
func fakeLoad(args []string) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	f := flag.NewFlagSet("load", flag.ExitOnError)
	url, file, name := f.String("url", "", ""), f.String("f", "", ""), f.String("profile", "", "")
	f.Bool("json", false, "")
	f.Parse(args)
	p := profileIn(*file, *name)
	fmt.Fprintln(os.Stderr, "seed", p.Seed)

	over := time.After(p.Warmup + p.Duration)
	s := load.Summary{
		Schema:  load.SummarySchema,
		URL:     *url,
		Seconds: 2, BodyBytes: 5000,
		ResponseTime: &load.Times{Mean: 2, Min: 0.5, Max: 12, P50: new(1.5), P90: new(2.5), P95: new(4.5), P99: new(9.5)},
		Errors:       map[string]int64{},
		Generator:    load.Generator{CPUMicrosPerRequest: 16, LagP99: 0.25},
		Throughput:   500,
		Valid:        true,
	}
	if p.Rate.PerSecond > 0 {
		s.Throughput = p.Rate.PerSecond
	}
	todo := ""
	for range 10 {
		s.Requests.Sent++
		resp, err := http.Get(*url)
		if err != nil {
			s.Requests.Failed++
			s.Errors["reset"]++
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		s.Requests.OK++
		s.Requests.Completed++
		todo = resp.Header.Get("X-Load")
		fmt.Sscan(resp.Header.Get("X-Goodput"), &s.Goodput)
	}
	switch todo {
	case "die":
		fmt.Fprintln(os.Stderr, "load: cannot assign requested address")
		os.Exit(1)
	case "garbage":
		fmt.Println("{}")
		return
	case "hang":
		<-end
		select {} // not even now
	case "invalid":
		s.Valid, s.Warnings = false, []string{"it was late"}
	case "empty":
		s.Requests = load.Requests{}
	case "few":
		s.ResponseTime.P99 = nil
	case "errors":
		s.Requests.OK, s.Requests.Failed, s.Errors = 7, 3, map[string]int64{"status": 2, "timeout": 1, "cut": 0}
	case "drops":
		s.Requests.Planned, s.Requests.Dropped = 1000, 5
	case "waited":
		s.Valid, s.Warnings = false, []string{"it was late"}
		s.Generator.Waited, s.Generator.LagP99 = 3, 500
	}
	select {
	case <-over:
	case <-end:
		s.Interrupted = true
	}
	fmt.Print(string(marshal(s)))
}

// profileIn reads a profile as the real load does.
func profileIn(path, name string) load.Profile {
	d, err := strictyaml.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var file struct {
		Profiles map[string]strictyaml.Overlay `yaml:"profiles"`
	}
	if _, err := d.Decode(&file, strictyaml.Environment{}); err != nil {
		panic(err)
	}
	p := load.DefaultProfile()
	if _, err := file.Profiles[name].Decode(&p); err != nil {
		panic(err)
	}
	return p
}
