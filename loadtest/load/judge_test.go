package load

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestJudge(t *testing.T) {
	healthy := func() *Summary {
		return &Summary{
			Requests:     Requests{Planned: 10_000, Sent: 10_000, Completed: 10_000, OK: 10_000},
			ResponseTime: &Times{P99: new(2.0)},
			Generator:    Generator{LagP99: .15, CPUShare: .5},
			Errors:       map[string]int64{},
			Valid:        true,
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Summary)
		valid  bool
		says   string // "" for no warning at all
	}{
		{"healthy", func(*Summary) {}, true, ""},
		// A machine that two processes share is late by milliseconds now and
		// then. That bends a p99 of 2 ms and is worth a word, not a verdict.
		{"a little late", func(s *Summary) { s.Generator.LagP99 = 1.5 }, true, "the generator was late"},
		{"late in a slow run", func(s *Summary) { s.Generator.LagP99, s.ResponseTime.P99 = 15, new(500.0) }, true, ""},
		{"late", func(s *Summary) { s.Generator.LagP99, s.ResponseTime.P99 = 15, new(50.0) }, false, "more than a quarter"},
		{"late for want of users", func(s *Summary) {
			s.Generator.LagP99, s.Generator.Waited, s.ResponseTime.P99 = 900, 3000, new(1000.0)
		}, false, "3000 requests waited for one of 7 users"},
		{"a few dropped", func(s *Summary) { s.Requests.Sent, s.Requests.Dropped = 9900, 100 }, true, "100 of 10000 requests were dropped"},
		{"many dropped", func(s *Summary) { s.Requests.Sent, s.Requests.Dropped = 9700, 300 }, false, "300 of 10000 requests were dropped"},
		{"out of cores", func(s *Summary) { s.Generator.CPUShare = .95 }, false, "95 %"},
		{"out of ports", func(s *Summary) { s.Errors["ports"] = 3 }, false, "ran out of descriptors or ports"},
		{"no answers", func(s *Summary) { s.Censored = 40 }, true, "40 of 10000 requests were given up"},
		{"interrupted", func(s *Summary) { s.Interrupted, s.Seconds = true, 3.25 }, true, "the figures are of the 3.2 s until then"},
		{"nothing sent", func(s *Summary) { s.Requests = Requests{} }, false, "no request was sent"},
	} {
		e := newEngine(anything(), Profile{Executor: ConstantVUs, VUs: 7, Duration: time.Minute}, nil)
		e.cap = 7
		e.usageUntil.at = time.Minute
		s := healthy()
		tt.change(s)
		e.judge(s)
		said := strings.Join(s.Warnings, "\n")
		if s.Valid != tt.valid || !strings.Contains(said, tt.says) || (tt.says == "") != (said == "") {
			t.Errorf("%s: valid = %v, %q", tt.name, s.Valid, said)
		}
	}
}

// An even rate that a target cannot carry is said; one that it can is not, with
// arrivals by chance either.
func TestSaturated(t *testing.T) {
	for _, tt := range []struct {
		what     string
		rate     float64
		arrivals string
		want     bool
	}{
		{"twice as much", 400, Constant, true},
		{"a twentieth more", 210, Constant, true},
		{"half a hundredth more", 201, Constant, false},
		{"as much", 200, Constant, false},
		{"twice as much, by chance", 400, Poisson, true},
		{"three quarters, by chance", 150, Poisson, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(tt.rate), Arrivals: tt.arrivals, Warmup: time.Second, Duration: 4 * time.Second})
			_, s := loadPipes(t, t.Context(), p, queue(20, 100*time.Millisecond))
			if s.Saturated != tt.want || !s.Valid {
				t.Errorf("%s: saturated %v, valid %v", tt.what, s.Saturated, s.Valid)
			}
			if s.refuse(); s.Valid == tt.want || tt.want && !strings.HasPrefix(s.Warnings[0], "saturated: ") {
				t.Errorf("%s: refused: valid %v, %q", tt.what, s.Valid, s.Warnings)
			}
		})
	}
}

// A line that rises, one that does not, and one that jumps at its end.
func TestRise(t *testing.T) {
	looks := func(f func(i int) float64) []float64 {
		rng := rand.New(rand.NewPCG(1, 2))
		xs := make([]float64, 200)
		for i := range xs {
			xs[i] = f(i) + rng.NormFloat64()
		}
		return xs
	}
	by, errors, ok := rise(looks(func(i int) float64 { return 50 + .1*float64(i) }))
	if !ok || math.Abs(by-20) > 1 || errors < 10 {
		t.Errorf("a line that rises by 20: by %v, %v errors, %v", by, errors, ok)
	}
	if _, errors, _ = rise(looks(func(int) float64 { return 50 })); math.Abs(errors) > riseSure {
		t.Errorf("a flat one: %v errors", errors)
	}
	if by, errors, _ = rise(looks(func(i int) float64 { return 50 + 500*float64(i/190) })); errors > riseSure {
		t.Errorf("a jump at the end: by %v, %v errors", by, errors)
	}
	if _, _, ok = rise(make([]float64, riseBatches-1)); ok {
		t.Error("nine looks are judged")
	}
}
