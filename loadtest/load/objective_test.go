package load

import (
	"strings"
	"testing"

	"gatebench/internal/conf"
)

func TestObjective(t *testing.T) {
	s := &Summary{
		Seconds: 1, Throughput: 990, Goodput: 980,
		Requests:     Requests{Planned: 1000, Sent: 990, Completed: 990, OK: 980, Failed: 10, Dropped: 10},
		ResponseTime: &Times{Mean: 5, Max: 80, P50: new(4.0), P99: new(50.0), P95: new(20.0), AtLeast: []string{"p95"}},
	}
	for _, tt := range []struct {
		bound  string
		missed string // part of what is said; "" for met
	}{
		{"p99<50ms", "p99 is to be < 50ms, and is 50ms"},
		{"p99<=50ms", ""},
		{"p99 > 49ms", ""},
		{"p50<0.004s", "and is 4ms"},
		{"p95<1s", "and is at least 20ms"},
		{"p95>=20ms", ""},
		{"max<1m", ""},
		{"mean<5ms", "mean"},
		{"errors<2%", ""},
		{"errors<=1%", "and is 1.010101%"},
		{"dropped<1%", "and is 1%"},
		{"throughput>1000/s", "and is 990/s"},
		{"goodput>=980/s", ""},
		{"p99.9<1s", "there is no figure to say so"},
	} {
		o := Objective{}
		if err := o.Parse(tt.bound); err != nil {
			t.Errorf("%s: %v", tt.bound, err)
			continue
		}
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", tt.bound, err)
		}
		missed := strings.Join(o.Missed(s), "\n")
		if (missed == "") != (tt.missed == "") || !strings.Contains(missed, tt.missed) {
			t.Errorf("%s: %q", tt.bound, missed)
		}
	}
	for _, bad := range []string{"p99", "p99<fast", "p99=50ms", "<50ms!", ""} {
		if err := (Objective{}).Parse(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	for _, bad := range []string{"p98<50ms", "p99<5%", "errors<50ms", "throughput<5%"} {
		o := Objective{}
		if err := o.Parse(bad); err != nil {
			t.Errorf("%q: %v", bad, err)
		}
		if len(conf.Problems(o.Validate())) != 1 {
			t.Errorf("%q is taken: %v", bad, o.Validate())
		}
	}
}
