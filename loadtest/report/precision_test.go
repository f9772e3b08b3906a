package report

import (
	"math"
	"strings"
	"testing"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
	"gatebench/loadtest/threshold"
)

// A run whose length was found from its pilot has intervals at 96 %, and says so.
func TestATwoStageRunIsJudgedAtItsLevel(t *testing.T) {
	fixed, staged := made(20, 0.02, nil), made(20, 0.02, nil)
	staged.Precision = &result.Precision{Half: map[string]float64{"cpu_us_per_request": 0.01, "response_time_p99": 0.05}, Pilot: 10, Wanted: 31, Widest: "response time p99 of resty [steady]", Level: 0.96}
	Conclude(fixed)
	Conclude(staged)
	for i, c := range staged.Comparisons {
		if f := fixed.Comparisons[i]; c.Level != 0.96 || f.Level != 0.95 || *c.Lo > *f.Lo || *c.Hi < *f.Hi {
			t.Errorf("%s %s: [%v, %v] at %v, fixed [%v, %v] at %v", c.Arm, c.Metric, *c.Lo, *c.Hi, c.Level, *f.Lo, *f.Hi, f.Level)
		}
	}
	var page strings.Builder
	if err := Text(&page, Summarize(staged), 400); err != nil {
		t.Fatal(err)
	}
	want := "blocks: ±1 % in gateway CPU per request, ±5 % in response time p99 asked for; a pilot of 10, seen by its scatter alone, needs 31 in all for response time p99 of resty [steady]; " +
		"the budget held 20, so that what is open stays open; intervals at a nominal 96 %"
	if !strings.Contains(page.String(), want) {
		t.Error(page.String())
	}
}

// Where one of two runs has that level, what is held against each other has it, and so
// has a bound on a ratio.
func TestAStagedRunKeepsItsLevelWhereverItIsJudged(t *testing.T) {
	fixed, staged := run(1, 20, 0.02, ratios{}), run(2, 20, 0.02, ratios{})
	staged.Precision = &result.Precision{Level: 0.96}
	for _, c := range compare(t, fixed, staged, 0).Changes {
		if c.Level != 0.96 {
			t.Errorf("%s %s: level %v", c.Arm, c.Metric, c.Level)
		}
	}
	for _, c := range compare(t, fixed, fixed, 0).Changes {
		if c.Level != 0.95 {
			t.Errorf("both fixed: %s %s: level %v", c.Arm, c.Metric, c.Level)
		}
	}

	s := series(staged)[0]
	d := s.logRatios(staged.Arms[1].Name, staged.Arms[0].Name)
	wide, usual := stats.HodgesLehmann(d, 0.96), stats.HodgesLehmann(d, 0.95)
	if wide.Hi <= usual.Hi {
		t.Fatalf("the two levels have one interval: %v", wide)
	}
	between := threshold.Threshold{Name: s.metric.Name + " vs baseline", Metric: s.metric.Name, Baseline: true, Upper: true, Limit: math.Exp((wide.Hi + usual.Hi) / 2)}
	for doc, want := range map[*result.Document]result.Attainment{staged: result.Open, run(2, 20, 0.02, ratios{}): result.Met} {
		Check(doc, []threshold.Threshold{between})
		if got := doc.Thresholds[0]; got.Outcome != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}
