package load

import (
	"strings"
	"testing"
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
