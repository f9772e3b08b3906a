package report

import (
	"math"
	"testing"

	"gatebench/loadtest/result"
)

// floored has arms of 60, 80, 100 … µs over a floor of 40 in blocks whose speed
// drifts.
func floored(n int) *result.Document {
	d := &result.Document{Arms: []result.Arm{{Name: "a"}, {Name: "b"}, {Name: "floor", Client: "floor", Floor: true}, {Name: "a (sentinel)", SentinelOf: "a"}}}
	for block := range n {
		for arm, cpu := range map[string]float64{"a": 60, "b": 80, "floor": 40, "a (sentinel)": 60} {
			d.Trials = append(d.Trials, result.Trial{Arm: arm, Block: block, Phase: result.Duet, Profile: "duet", Valid: true,
				Metrics: map[string]float64{"cpu_us_per_request": cpu * (1 + .01*float64(block%3-1))}})
		}
		d.Trials = append(d.Trials, result.Trial{Arm: "a", Block: block, Phase: result.Solo, Profile: "steady", Valid: true, Metrics: map[string]float64{"response_time_p50": 1}})
	}
	return d
}

func TestWhatAnArmAddsIsItsDistanceFromTheFloor(t *testing.T) {
	d := floored(9)
	Conclude(d)
	got := map[string]float64{}
	for _, f := range d.AboveFloor {
		got[f.Arm] = math.Round(*f.Value*100) / 100
		if f.Floor != "floor" || f.Metric != "cpu_us_per_request" || f.Blocks != 9 || !(*f.Lo < *f.Value && *f.Value < *f.Hi) {
			t.Errorf("%+v: %v [%v, %v]", f, *f.Value, *f.Lo, *f.Hi)
		}
	}
	if len(got) != 3 || got["a"] != 20 || got["b"] != 40 || got["a (sentinel)"] != 20 {
		t.Errorf("above the floor: %v", got)
	}
}

// A floor is no competitor: it wins nothing, and no threshold is held against it.
func TestTheFloorIsNotCompared(t *testing.T) {
	d := floored(9)
	concluded(t, d)
	for _, c := range d.Comparisons {
		if c.Arm == "floor" {
			t.Errorf("compared: %+v", c)
		}
	}
	for _, th := range d.Thresholds {
		if th.Arm == "floor" {
			t.Errorf("asked to keep %s", th.Threshold)
		}
	}
	if _, judged := (measured{}).outcomes(d)["floor"]; judged {
		t.Error("a block may decide about the floor")
	}
}

// A floor that comes first is the baseline, and everything is held against it.
func TestTheFloorMayBeTheBaseline(t *testing.T) {
	d := floored(9)
	d.Arms[0], d.Arms[2] = d.Arms[2], d.Arms[0]
	d.Arms[3].SentinelOf = "floor"
	Conclude(d)
	arms := map[string]bool{}
	for _, c := range d.Comparisons {
		if c.Metric == "cpu_us_per_request" {
			arms[c.Arm] = true
		}
	}
	if len(arms) != 3 || !arms["a"] || !arms["b"] {
		t.Errorf("compared with the floor: %v", arms)
	}
}

func TestFewBlocksAboveTheFloorAreNotBounded(t *testing.T) {
	d := floored(2)
	d.Trials = append(d.Trials, result.Trial{Arm: "c", Block: 0, Phase: result.Duet, Profile: "duet"})
	d.Arms = append(d.Arms, result.Arm{Name: "c"})
	Conclude(d)
	for _, f := range d.AboveFloor {
		if f.Lo != nil || f.Hi != nil || (f.Value == nil) != (f.Arm == "c") {
			t.Errorf("%s: %v [%v, %v]", f.Arm, f.Value, f.Lo, f.Hi)
		}
	}
}
