package report

import (
	"fmt"
	"strings"
	"testing"

	"gatebench/loadtest/load"
)

// Whatever a load run can come to has its place on the page.
func TestLoadPageOfStagesMixAndSearch(t *testing.T) {
	var p99 load.Bound
	if err := p99.UnmarshalText([]byte("< 50ms")); err != nil {
		t.Fatal(err)
	}
	at := &load.Times{Mean: 6, Min: .3, Max: 1000, P50: new(4.5), P90: new(20.0), P95: new(40.0), P99: new(1000.0), AtLeast: []string{"mean", "max", "p99"}}
	ok := &load.Times{Mean: 5, Min: .3, Max: 48, P50: new(4.4), P90: new(19.0), P95: new(39.0), P99: new(47.0)}
	r := load.Requests{Planned: 200, Sent: 198, Completed: 195, OK: 194, Failed: 4, Dropped: 2}
	s := &load.Summary{
		URL: "http://127.0.0.1:8080/", Executor: load.RampingArrivalRate, Seconds: 4, Valid: true,
		Requests: r, Throughput: 50, Goodput: 49, ResponseTime: at, OKResponseTime: ok, ServiceTime: ok,
		Errors: map[string]int64{"timeout": 3, "status": 1},
		Steps: []load.Step{
			{At: 0, Seconds: 2, From: "0", To: "50/s", Requests: load.Requests{Planned: 50, Sent: 50, OK: 50, Completed: 50}, Offered: 25, Throughput: 25, Goodput: 25, ResponseTime: ok},
			{At: 2, Seconds: 2, From: "50/s", To: "50/s", Requests: r, Offered: 75, Throughput: 72, Goodput: 70, ResponseTime: at},
			{At: 4, Seconds: 2, From: "50/s", To: "0"},
		},
		ByRequest: []load.Kind{{Name: "GET /product", Requests: r, ResponseTime: at}, {Name: "POST /postProduct2"}},
		Search: &load.Search{
			Objective: load.Objective{"p99": p99}, Lo: new(95.0), Hi: new(99.5), Confirmed: true,
			Probes: []load.Probe{{Rate: 95, Met: true, ResponseTime: ok}, {Rate: 99.5, Missed: []string{"p99 is to be < 50ms, and is at least 1s"}, ResponseTime: at}},
		},
	}
	for _, width := range []int{40, 100} {
		var b strings.Builder
		if err := Load(&b, s, width); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("load-all-%d.txt", width), b.String())
		fits(t, b.String(), width)
	}
}
