package threshold

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatebench/loadtest/result"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, condition string
		metric          string
		baseline        bool
		limit           float64
		holds, misses   float64
	}{
		{"p99", "< 50ms", "response_time_p99", false, 50, 49.9, 50},
		{"response_time_p50", "<= 1.5ms", "response_time_p50", false, 1.5, 1.5, 1.51},
		{"cpu", "<80us", "cpu_us_per_request", false, 80, 79, 80},
		{"errors", "< 0.1%", Errors, false, .001, .0009, .001},
		{"errors", "<= 0%", Errors, false, 0, 0, 1e-9},
		{"throughput", "> 1000/s", "throughput", false, 1000, 1000.1, 1000},
		{"memory", "<= 64MiB", "memory_peak_bytes", false, 64 << 20, 64 << 20, 64<<20 + 1},
		{"goroutines", "< 100", "goroutines", false, 100, 99, 100},
		{"p99 vs baseline", "<= +10%", "response_time_p99", true, 1.1, 1.1, 1.11},
		{"cpu vs baseline", "< -5%", "cpu_us_per_request", true, .95, .94, .95},
		{"throughput vs baseline", ">= -3%", "throughput", true, .97, .97, .96},
	} {
		got, err := Parse(c.name, c.condition)
		if err != nil {
			t.Errorf("%s: %s: %v", c.name, c.condition, err)
			continue
		}
		if got.Metric != c.metric || got.Baseline != c.baseline || math.Abs(got.Limit-c.limit) > 1e-12 {
			t.Errorf("%s: %s became %+v", c.name, c.condition, got)
		}
		if !got.Holds(c.holds) || got.Holds(c.misses) {
			t.Errorf("%s: %s: holds at %v: %v, at %v: %v", c.name, c.condition, c.holds, got.Holds(c.holds), c.misses, got.Holds(c.misses))
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, condition, want string }{
		{"p42", "< 50ms", "not a figure"},
		{"", "< 50ms", "not a figure"},
		{"p99", "50ms", "not a condition"},
		{"p99", "", "not a condition"},
		{"p99", "== 50ms", "not a condition"},
		{"p99", "< 50", "not a duration"},
		{"p99", "< -5ms", "not a duration"},
		{"p99", "> 50ms", "better when it is lower"},
		{"throughput", "< 50/s", "better when it is higher"},
		{"throughput", "> 45%", "not a rate"},
		{"errors", "< 0.001", "not a share"},
		{"errors", "< 0%", "can never hold"},
		{"errors vs baseline", "< +10%", "no ratio"},
		{"p99 vs baseline", "<= 10%", "with its sign"},
		{"p99 vs baseline", "<= +10", "with its sign"},
		{"p99 vs baseline", "<= -100%", "with its sign"},
		{"p99 vs baseline", "<= +NaN%", "with its sign"},
		{"p99 vs  baseline", "<= +10%", "not a figure"},
		{"memory", "< 64", "not a size"},
		{"goroutines", "< NaN", "not a number"},
		{"goroutines", "< many", "not a number"},
	} {
		if got, err := Parse(c.name, c.condition); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %q gave %+v, %v; want %q", c.name, c.condition, got, err, c.want)
		}
	}
}

// Whatever is accepted is a bound: some figure holds it and some other does not.
func TestWhatIsAcceptedBounds(t *testing.T) {
	names := []string{Errors, "p50", "p99", "cpu"}
	for _, m := range result.Metrics {
		names = append(names, m.Name, m.Name+versus)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		condition := rapid.SampledFrom([]string{"<", "<=", ">", ">=", ""}).Draw(t, "operator") +
			rapid.SampledFrom([]string{"", " "}).Draw(t, "blank") +
			rapid.StringMatching(`[+-]?[0-9]{0,4}(\.[0-9]{1,3})?(ms|us|s|%|/s|MiB|B|)`).Draw(t, "limit")
		b, err := Parse(name, condition)
		if err != nil {
			return
		}
		least, most := 0.0, math.MaxFloat64
		if b.Upper == b.Holds(most) || b.Upper && !b.Holds(least) {
			t.Fatalf("%+v: holds at %v: %v, at %v: %v", b, least, b.Holds(least), most, b.Holds(most))
		}
	})
}
