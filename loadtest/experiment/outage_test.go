package experiment

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/loadtest/load"
	"gatebench/loadtest/sut"
)

const ms = time.Millisecond

func TestFaultsTurnWhereWindowsBeginAndEnd(t *testing.T) {
	a, b := json.RawMessage(`{"status":503}`), json.RawMessage(`{"hang":true}`)
	slow := sut.WireFault{Latency: 10 * ms}
	got := turns([]Fault{
		{At: 100 * ms, For: 200 * ms, Backend: a},
		{At: 200 * ms, For: 200 * ms, Backend: b},
		{At: 300 * ms, For: 100 * ms, Wire: slow},
	})
	want := []turn{
		{100 * ms, []json.RawMessage{a}, nil},
		{200 * ms, []json.RawMessage{a, b}, nil},
		{300 * ms, []json.RawMessage{b}, []sut.WireFault{slow}},
		{400 * ms, nil, nil},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(turn{})); diff != "" {
		t.Error(diff)
	}
	if got := string(orders(got[1].backend)); got != `{"faults":[{"status":503},{"hang":true}]}` {
		t.Errorf("orders %s", got)
	}
}

// course is a gateway's life at 100 requests per interval: what each interval's good
// answers are.
func course(good ...float64) []moment {
	all := []moment{{}}
	for i, n := range good {
		last := all[i]
		all = append(all, moment{at: last.at + everyMoment, answered: last.answered + 100, good: last.good + n})
	}
	return all
}

func TestFaultFiguresAreTheirFormulas(t *testing.T) {
	outage := []Fault{{At: 500 * ms, For: 500 * ms}}
	for _, tt := range []struct {
		name   string
		faults []Fault
		ms     []moment
		marks  []mark
		r      load.Requests
		want   map[string]float64
	}{
		{"an outage alone", outage, course(100, 100, 0, 0, 100, 100), []mark{{500 * ms, 200}, {1000 * ms, 400}}, load.Requests{Planned: 600, OK: 400},
			map[string]float64{"storm_factor": 1, "goodput_lost": 1, "recovery_ms": 0}},
		{"with two retries each", outage, course(100, 100, 0, 0, 100, 100), []mark{{500 * ms, 200}, {1000 * ms, 800}}, load.Requests{Planned: 600, OK: 400},
			map[string]float64{"storm_factor": 3, "goodput_lost": 1, "recovery_ms": 0}},
		{"a breaker that stays open", outage, course(100, 100, 0, 0, 0, 40, 100), []mark{{500 * ms, 200}, {1000 * ms, 220}}, load.Requests{Planned: 700, OK: 340},
			map[string]float64{"storm_factor": 0.1, "goodput_lost": 1.8, "recovery_ms": 500}},
		{"never good again", outage, course(100, 100, 0, 0, 0, 50), []mark{{500 * ms, 200}, {1000 * ms, 400}}, load.Requests{Planned: 600, OK: 250},
			map[string]float64{"storm_factor": 1, "goodput_lost": 1.75}},
		{"a relapse", outage, course(100, 100, 0, 0, 100, 0, 100), nil, load.Requests{Planned: 700, OK: 400},
			map[string]float64{"goodput_lost": 1.5, "recovery_ms": 500}},
		{"as bad before as after", outage, course(80, 80, 0, 0, 78, 80), nil, load.Requests{Planned: 600, OK: 318},
			map[string]float64{"goodput_lost": 1.41, "recovery_ms": 0}},
		{"two faults, the worse one counts", []Fault{{At: 250 * ms, For: 250 * ms}, {At: 1000 * ms, For: 250 * ms}},
			course(100, 0, 0, 100, 0, 100), []mark{{250 * ms, 100}, {500 * ms, 200}, {1000 * ms, 400}, {1250 * ms, 700}}, load.Requests{Planned: 600, OK: 300},
			map[string]float64{"storm_factor": 2, "goodput_lost": 1.5, "recovery_ms": 250}},
		{"nothing was seen", outage, nil, nil, load.Requests{Planned: 600}, map[string]float64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, faultFigures(tt.faults, tt.ms, tt.marks, tt.r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Looks that are late are of no use: the storm would be that of another time.
func TestLateMarksGiveNoStorm(t *testing.T) {
	figures := faultFigures([]Fault{{At: 500 * ms, For: 500 * ms}}, course(100, 100, 0, 0, 100, 100), []mark{{500 * ms, 200}, {1300 * ms, 400}}, load.Requests{Planned: 600, OK: 400})
	if _, ok := figures["storm_factor"]; ok {
		t.Errorf("got %v", figures)
	}
}

func TestTimelineHasWhatHappenedBetween(t *testing.T) {
	got := timeline([]moment{
		{breaker: "closed", attempts: 10, answered: 10, good: 10, rejected: map[string]float64{"reset": 1}},
		{at: 250 * ms, breaker: "open", attempts: 30, answered: 60, good: 15, inFlight: 2, rejected: map[string]float64{"reset": 1, "breaker_open": 40}},
	})
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"at_ms":250,"breaker":"open","answered":50,"ok":5,"attempts":20,"in_flight":2,"rejected":{"breaker_open":40}}]`
	if string(b) != want {
		t.Errorf("got %s\nwant %s", b, want)
	}
}
