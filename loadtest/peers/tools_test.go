package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func close2(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }

// The outputs are the tools' own, of the versions that are installed.
func TestOutputsOfPeersAreRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		read func(string, used, error) (figures, error)
		out  string
		want figures
	}{
		{"wrk", readWrk, "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    21.20ms    1.40ms  28.06ms   91.38%\n" +
			"  Latency Distribution\n     50%   20.81ms\n     75%   21.13ms\n     99%  990.00us\n  940 requests in 2.00s, 176.25KB read\n",
			figures{requests: 940, rate: 470, mean: 21.2, p50: 20.81, p99: .99}},
		{"ab", readAB, "Complete requests:      909\nRequests per second:    908.20 [#/sec] (mean)\nTime per request:       22.022 [ms] (mean)\nTime per request:       1.101 [ms] (mean, across all concurrent requests)\n",
			figures{requests: 909, rate: 908.2, mean: 22.022}},
		{"hey", readHey, "  Total:\t2.0 secs\n  Requests/sec:\t946.5\n", figures{requests: 1893, rate: 946.5}},
		{"fortio", readFortio, `{"RequestedDuration": "2s", "DurationHistogram": {"Count": 96, "Avg": 0.0205, "Percentiles": [{"Percentile": 50, "Value": 0.0217}, {"Percentile": 99, "Value": 0.023}]}}`,
			figures{requests: 96, rate: 48, mean: 20.5, p50: 21.7, p99: 23}},
	} {
		got, err := tt.read(tt.out, used{}, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !close2(got.requests, tt.want.requests) || !close2(got.rate, tt.want.rate) || !close2(got.mean, tt.want.mean) || !close2(got.p50, tt.want.p50) || !close2(got.p99, tt.want.p99) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		failed := errors.New("x")
		if _, err := tt.read("", used{}, failed); !errors.Is(err, failed) {
			t.Errorf("%s: %v for a tool that failed", tt.name, err)
		}
	}
	if _, err := readWrk("usage: wrk", used{}, nil); err == nil {
		t.Error("an output without figures was read")
	}
}

func TestTableFailsWithARow(t *testing.T) {
	var out bytes.Buffer
	tb := &table{w: &out}
	tb.atMost("low enough", 1, 2, " ms")
	tb.near("near enough", 1.05, 1, .1, "")
	if err := tb.verdict(); err != nil {
		t.Error(err)
	}
	tb.near("off", 1.2, 1, .1, "")
	tb.missing("gone", errMissing)
	if err := tb.verdict(); err == nil || !strings.Contains(err.Error(), "off; gone") || strings.Count(out.String(), "FAIL") != 2 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// The target answers, swallows and refuses as it is told.
func TestTarget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serveTarget(ctx, targetConfig{faults: true}, w) }()
	line := make([]byte, 100)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "listening on ")
	client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	statuses := map[int]int{}
	swallowed := 0
	for range 100 {
		resp, err := client.Get("http://" + addr + "/")
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			swallowed++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		statuses[resp.StatusCode]++
		if resp.StatusCode == 200 && len(b) != 60 {
			t.Fatalf("%d bytes", len(b))
		}
	}
	if swallowed != 1 || statuses[503] != 5 || statuses[200] != 94 {
		t.Errorf("%d swallowed, %v", swallowed, statuses)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
