package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// recorded is an engine that has recorded what a test says, and nothing else.
func recorded(samples ...time.Duration) *engine {
	e := newEngine(anything(), Profile{Executor: ConstantVUs, VUs: 1, Duration: time.Hour}, nil)
	for i, d := range samples {
		e.shards[i%len(e.shards)].record(e, sample{done: d, outcome: outcome{answer: answer{status: 200, body: 10}}})
	}
	return e
}

// Quantiles are those of the sorted sample, to the histogram's three digits.
func TestQuantilesAreThoseOfTheSortedSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 7))
	for _, n := range []int{1, 2, 3, 10, 99, 100, 1000, 1001, 1_000_000} {
		sample := make([]time.Duration, n)
		var d distribution
		for i := range sample {
			sample[i] = time.Duration(rng.ExpFloat64() * float64(50*time.Millisecond))
			d.record(sample[i])
		}
		slices.Sort(sample)
		for _, q := range []float64{0, .001, .01, .5, .9, .95, .99, .999, .9999, 1} {
			want := sample[max(1, int(math.Ceil(q*float64(n)-1e-9)))-1]
			got := d.quantile(q)
			if diff := math.Abs(float64(got - want)); diff > float64(want)/1000 {
				t.Errorf("n=%d q=%v: %v, want %v", n, q, got, want)
			}
		}
		if d.min != sample[0] || d.max != sample[n-1] {
			t.Errorf("n=%d: [%v, %v], want [%v, %v]", n, d.min, d.max, sample[0], sample[n-1])
		}
	}
}

func TestQuantilesAreOrderedAndWithinTheExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d distribution
		for _, ns := range rapid.SliceOfN(rapid.Int64Range(-1, int64(3*time.Hour)), 1, 50).Draw(t, "ns") {
			d.record(time.Duration(ns))
		}
		last := d.min
		for q := 0.0; q <= 1; q += .01 {
			v := d.quantile(q)
			if v < last || v > d.max {
				t.Fatalf("q=%v is %v, after %v, of [%v, %v]", q, v, last, d.min, d.max)
			}
			last = v
		}
	})
}

// LD08.
func TestFewSamples(t *testing.T) {
	ms := func(v ...int) (d []time.Duration) {
		for _, v := range v {
			d = append(d, time.Duration(v)*time.Millisecond)
		}
		return d
	}
	for _, tt := range []struct {
		samples            []time.Duration
		p50, p90, p99, max float64
	}{
		{ms(575), 575, 575, 575, 575},
		{ms(10, 1000), 10, 1000, 1000, 1000},
		{ms(10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 50, 90, 100, 100},
	} {
		s := recorded(tt.samples...).summary()
		balanced(t, s)
		x := s.ResponseTime
		near(t, "p50", *x.P50, tt.p50, tt.p50/1000)
		near(t, "p90", *x.P90, tt.p90, tt.p90/1000)
		near(t, "p99", *x.P99, tt.p99, tt.p99/1000)
		near(t, "max", x.Max, tt.max, 0)
		if x.P999 != nil {
			t.Errorf("a p99.9 of %d samples", len(tt.samples))
		}
		if !strings.Contains(strings.Join(s.Warnings, "\n"), "the p99 stands on") {
			t.Errorf("it does not say how little the p99 stands on: %q", s.Warnings)
		}
	}
}

// LD05: beyond a million samples, of which the last are ten times slower.
func TestNoSampleIsLeftOut(t *testing.T) {
	e := newEngine(anything(), Profile{Executor: ConstantVUs, VUs: 1, Duration: time.Hour}, nil)
	for i := range 1_200_000 {
		d, status := 10*time.Millisecond, 200
		if i >= 1_000_000 {
			d, status = 100*time.Millisecond, 202
		}
		e.shards[i%len(e.shards)].record(e, sample{done: d, outcome: outcome{answer: answer{status: status, body: 60}}})
	}
	s := e.summary()
	balanced(t, s)
	near(t, "sent", float64(s.Requests.Sent), 1_200_000, 0)
	near(t, "200", float64(s.Statuses["200"]), 1_000_000, 0)
	near(t, "202", float64(s.Statuses["202"]), 200_000, 0)
	near(t, "body bytes", float64(s.BodyBytes), 72_000_000, 0)
	near(t, "mean", s.ResponseTime.Mean, 25, 1e-9)
	near(t, "p50", *s.ResponseTime.P50, 10, .01)
	near(t, "p90", *s.ResponseTime.P90, 100, .1)
	near(t, "p99", *s.ResponseTime.P99, 100, .1)
}

// LD07: 0 ns, and more than the histogram holds.
func TestOutOfRangeSamplesCount(t *testing.T) {
	samples := make([]time.Duration, 100, 102)
	for i := range samples {
		samples[i] = time.Millisecond
	}
	s := recorded(append(samples, 0, 2*time.Hour)...).summary()
	balanced(t, s)
	near(t, "sent", float64(s.Requests.Sent), 102, 0)
	near(t, "over range", float64(s.OverRange), 1, 0)
	near(t, "min", s.ResponseTime.Min, 0, 0)
	near(t, "max", s.ResponseTime.Max, 7_200_000, 0)
	near(t, "mean", s.ResponseTime.Mean, (7_200_000.0+100)/102, 1e-6)
	if !strings.Contains(strings.Join(s.Warnings, "\n"), "over range: 1 ") {
		t.Errorf("%q", s.Warnings)
	}
}

func TestShardsMergeIntoOneRun(t *testing.T) {
	e := newEngine(anything(), Profile{Executor: ConstantVUs, VUs: 1, Duration: 8}, nil)
	a, b := newShard(0, 1, time.Second), newShard(0, 1, time.Second)
	a.record(e, sample{0, 0, 1, 5, true, outcome{answer: answer{status: 200, body: 1}}})
	b.record(e, sample{0, 0, 2, 9, true, outcome{answer: answer{status: 500, body: 2}, class: badStatus}})
	b.record(e, sample{0, 0, 3, 7, true, outcome{class: protocol, err: protocolError("x")}})
	b.record(e, sample{0, 0, 3, 6, false, outcome{class: timeout}})
	b.opened()
	b.record(e, sample{0, -9, -9, -5, true, outcome{}}) // in the warm-up
	a.merge(b)
	r := &a.response
	switch {
	case r.ok.count() != 1, r.censored.count() != 1, r.errors != 2, a.service.count() != 4, a.lag.max != 3:
		t.Error("times are missing")
	case a.completed != 2, a.within != answered{1, 1}, a.after != answered{1, 0}, a.bytes != 3, a.lastDone != 9, a.lastEnd != 9, a.connections != 1, a.onWire != 4, a.inFlight != 4+6+4+3:
		t.Errorf("%+v", []any{a.completed, a.within, a.after, a.bytes, a.lastDone, a.lastEnd, a.connections, a.onWire, a.inFlight})
	case a.errors[protocol] != 1, a.examples[protocol] == "", a.statuses[500] != 1:
		t.Errorf("%v %v", a.errors, a.examples)
	case len(a.series.slots) != 1, a.series.slots[0].sent != 4, a.series.slots[0].ok != 1, a.series.slots[0].failed != 3:
		t.Errorf("%+v", a.series.slots)
	}
}

// A curve is the sorted sample at its shares, up to one beyond which one sample lies, and
// ends where what is known does.
func TestCurveIsTheDistribution(t *testing.T) {
	samples := make([]time.Duration, 2000)
	for i := range samples {
		samples[i] = time.Duration(i+1) * time.Millisecond
	}
	s := recorded(samples...).summary()
	c := s.ResponseTime.Curve
	if c[0].Q != 0 || math.Abs(c[0].MS-1) > .001 || c[len(c)-1].Q != 1-.0005 {
		t.Errorf("from %+v to %+v", c[0], c[len(c)-1])
	}
	for _, p := range c {
		near(t, fmt.Sprintf("the time of %v of the requests", p.Q), p.MS, max(1, 2000*p.Q), max(1, 2000*p.Q)/500+1)
	}
	if len(s.ServiceTime.Curve) != len(c) {
		t.Errorf("%d points of the service time, %d of the response time", len(s.ServiceTime.Curve), len(c))
	}

	// One request in four was given up after a second: the curve knows three quarters.
	e := newEngine(anything(), Profile{Executor: ConstantVUs, VUs: 1, Duration: time.Hour}, nil)
	for i := range 1000 {
		x := sample{done: time.Duration(i+1) * time.Millisecond, outcome: outcome{answer: answer{status: 200}}}
		if i >= 750 {
			x = sample{done: time.Second, outcome: outcome{class: timeout}}
		}
		e.shards[0].record(e, x)
	}
	c = e.summary().ResponseTime.Curve
	if last := c[len(c)-1]; last.Q != .7 {
		t.Errorf("it ends at %+v", last)
	}
}
