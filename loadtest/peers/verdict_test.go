package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

// The limits are the published ones, each with at most 1 % of false alarms at 5 %.
func TestMostClaimsIsWhatChanceAllows(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 20: 4, 40: 6, 60: 7, 100: 11, 200: 18, 400: 31} {
		if got := mostClaims(n); got != want {
			t.Errorf("of %d pairs %d may be claimed, want %d", n, got, want)
		}
	}
}

// A world is a document in which the metrics of a trial are a function of its arm.
func world(blocks int, arms []result.Arm, metrics func(arm string, phase result.Phase, r *rand.Rand) map[string]float64) *result.Document {
	r := rand.New(rand.NewPCG(1, 1))
	d := &result.Document{Schema: result.Schema, Arms: arms}
	for block := range blocks {
		for _, a := range arms {
			for _, phase := range []result.Phase{result.Duet, result.Solo} {
				d.Trials = append(d.Trials, result.Trial{Arm: a.Name, Block: block, Phase: phase, Profile: string(phase), Valid: true,
					Requests: 1000, Metrics: metrics(a.Name, phase, r)})
			}
		}
	}
	report.Conclude(d)
	return d
}

func page(judge func(*table)) (string, *table) {
	var b bytes.Buffer
	t := &table{w: &b}
	judge(t)
	return b.String(), t
}

func wobble(r *rand.Rand) float64 { return math.Exp(.01 * r.NormFloat64()) }

// Each pair is an experiment of its own: what is wrong with one leaves the other alone.
func TestPairsAreJudgedAlone(t *testing.T) {
	arms := []result.Arm{{Name: "a"}, {Name: "a2"}, {Name: "b"}, {Name: "b2"}}
	d := world(10, arms, func(arm string, phase result.Phase, r *rand.Rand) map[string]float64 {
		if phase == result.Duet {
			truth := 100.0
			if arm == "b2" {
				truth = 120
			}
			return map[string]float64{cpuMetric: truth * wobble(r)}
		}
		return map[string]float64{"response_time_p99": 2 * wobble(r)}
	})
	r := identicalRun{Seed: 3, Verdicts: judgePairs(d)}
	if len(r.Verdicts) != 4 || r.verdict() != "1 false claim" {
		t.Fatalf("%s: %s", r.words(), r.verdict())
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	for range 10 {
		if err := keepRun(file, r); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := readRuns(file)
	if err != nil || len(runs) != 10 || runs[9].words() != r.words() {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	text, tab := page(func(t *table) { sumUp(t, runs, cpuMetric); sumUp(t, runs, "response_time_p99") })
	if len(tab.failed) != 1 || !strings.Contains(text, "10 of 20 pairs (20 of them judged) | ≤ 4 of 20") || !strings.Contains(text, "0 of 20 pairs") {
		t.Error(text)
	}
}

func TestPairsThatWereNotJudgedDoNotPass(t *testing.T) {
	text, tab := page(func(t *table) {
		sumUp(t, []identicalRun{{Verdicts: []result.Comparison{{Metric: cpuMetric, Verdict: result.NotValid}, {Metric: cpuMetric, Verdict: result.CannotTell}}}}, cpuMetric)
	})
	if len(tab.failed) != 1 {
		t.Error(text)
	}
}

func doseWorld(response func(dose float64) float64) *result.Document {
	arms := []result.Arm{{Name: "0 µs", Floor: true}}
	for _, d := range doses[1:] {
		arms = append(arms, result.Arm{Name: d.arm})
	}
	arms = append(arms, result.Arm{Name: doses[0].arm, SentinelOf: "0 µs"})
	return world(10, arms, func(arm string, phase result.Phase, r *rand.Rand) map[string]float64 {
		if phase == result.Solo {
			return nil
		}
		burnt := 0.0
		for _, d := range doses {
			if d.arm == arm {
				burnt = d.dose
			}
		}
		speed := 1 + .01*r.Float64() // of this trial's processor
		return map[string]float64{burnedMetric: speed * (100 + burnt), cpuMetric: 30 + response(speed*(100+burnt)-speed*100) + speed*100 + .05*r.NormFloat64()}
	})
}

func TestDosesAreFoundWhereTheyAre(t *testing.T) {
	for _, tt := range []struct {
		name     string
		response func(float64) float64
		failed   string
	}{
		{"as they are", func(d float64) float64 { return d }, ""},
		{"a tenth too much", func(d float64) float64 { return 1.1 * d }, "slope of response over dose"},
		{"2 µs for any dose", func(d float64) float64 { return d + 2*min(1, d) }, "intercept"},
		{"nothing", func(float64) float64 { return 0 }, "50 µs"},
	} {
		text, tab := page(func(t *table) { judgeDoses(t, doseWorld(tt.response)) })
		if failed := strings.Join(tab.failed, "; "); (failed == "") != (tt.failed == "") || !strings.Contains(failed, tt.failed) {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}

func TestATailIsFoundInItsQuantileAlone(t *testing.T) {
	with := func(cpu, p50, p99 float64) *result.Document {
		arms := []result.Arm{{Name: evenArm}, {Name: tailedArm}, {Name: "even (sentinel)", SentinelOf: evenArm}}
		return world(10, arms, func(arm string, phase result.Phase, r *rand.Rand) map[string]float64 {
			f := [3]float64{1, 1, 1}
			if arm == tailedArm {
				f = [3]float64{cpu, p50, p99}
			}
			if phase == result.Duet {
				return map[string]float64{cpuMetric: 100 * f[0] * wobble(r)}
			}
			return map[string]float64{"response_time_p50": 10.5 * f[1] * wobble(r), "response_time_p99": 11 * f[2] * wobble(r)}
		})
	}
	for _, tt := range []struct {
		name          string
		cpu, p50, p99 float64
		pass          bool
	}{{"as put in", 1, 1, 5.6, true}, {"no tail", 1, 1, 1, false}, {"p50 too", 1, 1.1, 5.6, false}, {"CPU too", 1.1, 1, 5.6, false}} {
		text, tab := page(func(t *table) { judgeTail(t, with(tt.cpu, tt.p50, tt.p99)) })
		if (len(tab.failed) == 0) != tt.pass || !strings.Contains(text, "; power ") {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}
