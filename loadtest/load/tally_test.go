package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWhatHasNoAnswerStandsAboveWhatHas(t *testing.T) {
	const ms = time.Millisecond
	many := func(n int, c class, d time.Duration) func(*tally) {
		return func(x *tally) {
			for range n {
				x.record(c, d)
			}
		}
	}
	for _, tt := range []struct {
		name     string
		records  []func(*tally)
		p50, p99 float64
		atLeast  []string
	}{
		{"all answered", []func(*tally){many(100, fine, 10*ms)}, 10, 10, nil},
		{"a few timeouts beyond the p99", []func(*tally){many(995, fine, 10*ms), many(5, timeout, 1000*ms)}, 10, 10, []string{"mean", "max", "p99.9"}},
		{"timeouts at the p99", []func(*tally){many(90, fine, 10*ms), many(10, timeout, 1000*ms)}, 10, 1000, []string{"mean", "max", "p95", "p99"}},
		{"quick errors do not flatter", []func(*tally){many(40, fine, 300*ms), many(60, badStatus, ms)}, 300, 300, []string{"p50", "p90", "p95", "p99"}},
		{"cut young", []func(*tally){many(50, fine, 100*ms), many(50, cut, ms)}, 1, 100, []string{"mean", "p50", "p90", "p95", "p99"}},
		{"one cut of many changes nothing", []func(*tally){many(999, fine, 100*ms), many(1, cut, ms)}, 100, 100, []string{"mean"}},
	} {
		var x tally
		for _, r := range tt.records {
			r(&x)
		}
		got := x.times()
		near(t, tt.name+": p50", *got.P50, tt.p50, tt.p50/1000)
		near(t, tt.name+": p99", *got.P99, tt.p99, tt.p99/1000)
		if diff := cmp.Diff(tt.atLeast, got.AtLeast); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		ordered(t, got)
	}
	var none tally
	none.record(refused, ms)
	if none.times() != nil {
		t.Error("a time of requests that have none")
	}
}

// Whatever the true times of those given up are (their age or anything longer), the
// true quantile is not below the one shown, and is it where no bound is declared.
func TestQuantilesBoundTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(1, 1000)
		ok := rapid.SliceOfN(ms, 1, 60).Draw(t, "ok")
		ages := rapid.SliceOfN(ms, 0, 20).Draw(t, "ages")
		errors := rapid.IntRange(0, 20).Draw(t, "errors")
		var x tally
		truth := slices.Clone(ok)
		for _, v := range ok {
			x.record(fine, time.Duration(v)*time.Millisecond)
		}
		for _, age := range ages {
			x.record(timeout, time.Duration(age)*time.Millisecond)
			truth = append(truth, age+rapid.Int64Range(0, 5000).Draw(t, "longer"))
		}
		for range errors {
			x.record(reset, time.Millisecond)
			truth = append(truth, math.MaxInt64)
		}
		slices.Sort(truth)
		got := x.times()
		for _, q := range got.quantiles(int64(len(truth))) {
			want := float64(truth[rankOf(q.q, int64(len(truth)))-1])
			v := **q.to
			if v > want*1.001 {
				t.Fatalf("%s = %v, and the truth is %v", q.name, v, want)
			}
			if !slices.Contains(got.AtLeast, q.name) && v < want*.989 {
				t.Fatalf("%s = %v is said to be exact, and the truth is %v", q.name, v, want)
			}
		}
	})
}
