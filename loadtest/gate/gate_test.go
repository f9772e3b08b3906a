package gate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/loadtest/result"
)

// TestThresholdsAreOrdered: every gate can trip, a warning comes before a void, and
// a name means one thing in a phase.
func TestThresholdsAreOrdered(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range All {
		key := fmt.Sprint(g.Name, " in ", g.Phase)
		if seen[key] || g.Warn == nil && g.Void == nil || g.Title == "" {
			t.Errorf("%s: known already, or without threshold or title", key)
		}
		seen[key] = true
		if g.Warn != nil && g.Void != nil && !g.worse(*g.Void, *g.Warn) {
			t.Errorf("%s voids at %v before it warns at %v", key, *g.Void, *g.Warn)
		}
	}
}

// TestJudge: the threshold itself passes; what lies beyond it does not. These are
// the numbers of the method.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		phase   result.Phase
		reading float64
		want    Strength
	}{
		{Lag, result.Solo, 1, Passed},
		{Lag, result.Solo, 1.01, Warned},
		{Lag, result.Solo, 10.01, Voided},
		{Unsent, result.Solo, 0, Passed},
		{Unsent, result.Solo, 1e-6, Warned},
		{Unsent, result.Solo, 0.021, Voided},
		{GeneratorCPU, result.Solo, 0.7, Passed},
		{GeneratorCPU, result.Solo, 0.71, Warned},
		{GeneratorCPU, result.Solo, 0.91, Voided},
		{Steal, result.Solo, 0.01, Passed},
		{Steal, result.Solo, 0.02, Warned},
		{Steal, result.Solo, 0.051, Voided},
		{Steal, result.Duet, 0.02, Passed},
		{Steal, result.Duet, 0.5, Warned},
		{Foreign, result.Solo, 0.03, Passed},
		{Foreign, result.Solo, 0.031, Warned},
		{Foreign, result.Solo, 0.101, Voided},
		{Foreign, result.Duet, 0.09, Passed},
		{Foreign, result.Duet, 0.9, Warned},
		{Throttled, result.Solo, 0, Passed},
		{Throttled, result.Solo, 1, Voided},
		{Throttled, result.Duet, 1, Warned},
		{Tail, result.Solo, 20, Passed},
		{Tail, result.Solo, 19, Warned},
		{Ports, result.Duet, 0.8, Passed},
		{Ports, result.Solo, 0.81, Warned},
		{OwnLimits, result.Solo, 1, Voided},
		{Busy, result.Duet, 0.9, Passed},
		{Busy, result.Duet, 0.89, Warned},
		{GCCycles, result.Duet, 3, Passed},
		{GCCycles, result.Duet, 2, Warned},
		{Work, result.Solo, 0, Passed},
		{Work, result.Solo, 1, Voided},
	} {
		if got := named(t, c.name, c.phase).Judge(c.reading); got != c.want {
			t.Errorf("%s of %v in %s: got %v, want %v", c.name, c.reading, c.phase, got, c.want)
		}
	}
}

func named(t *testing.T, name string, phase result.Phase) Gate {
	t.Helper()
	for _, g := range All {
		if g.Name == name && g.Phase == phase {
			return g
		}
	}
	t.Fatalf("no gate %s in %s", name, phase)
	return Gate{}
}

func trial(phase result.Phase, readings map[string]float64) result.Trial {
	return result.Trial{Phase: phase, Valid: true, Gates: readings}
}

func TestVoidGivesTheFirstReason(t *testing.T) {
	for _, c := range []struct {
		trial result.Trial
		want  string
	}{
		{trial(result.Solo, nil), ""},
		{trial(result.Solo, map[string]float64{Foreign: 0.05, Lag: 2}), ""}, // warnings
		{trial(result.Solo, map[string]float64{Work: 3, Foreign: 0.2, "unknown": 9}),
			"CPU time that other processes used: more than 10 %"},
		{trial(result.Duet, map[string]float64{Foreign: 0.2, Busy: 0.1}), ""}, // hits all arms alike
		{trial(result.Solo, map[string]float64{Lag: 12.34}), "the load generator's lag, p99: more than 10 ms"},
	} {
		got, ok := Void(c.trial)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%v: got %q, %v", c.trial.Gates, got, ok)
		}
	}
}

func TestReadAndWarn(t *testing.T) {
	trials := []result.Trial{
		trial(result.Solo, map[string]float64{Steal: 0.005}),
		trial(result.Solo, map[string]float64{Steal: 0.03}),
		trial(result.Solo, map[string]float64{Steal: 0.02}),
		trial(result.Solo, map[string]float64{Steal: 0.4}),
		trial(result.Duet, map[string]float64{Steal: 0.04, Busy: 0.95}),
		trial(result.Duet, map[string]float64{Busy: 0.5}),
		trial(result.Duet, map[string]float64{Busy: 0.75}),
	}
	got := map[string]result.Gate{}
	for _, g := range Read(trials) {
		got[g.Name+" "+string(g.Phase)] = g
	}
	if len(got) != len(All) {
		t.Errorf("%d sums of %d gates", len(got), len(All))
	}
	for name, want := range map[string]result.Gate{
		"steal solo":        {Readings: 4, Worst: new(0.4), Warned: 2, Voided: 1},
		"steal duet":        {Readings: 1, Worst: new(0.04)},
		"gateway_busy duet": {Readings: 3, Worst: new(0.5), Warned: 2},
		"lag solo":          {},
	} {
		g := got[name]
		have := result.Gate{Readings: g.Readings, Worst: g.Worst, Warned: g.Warned, Voided: g.Voided}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	want := []string{
		"in 2 of 4 solo trials, CPU time that the host took for others: up to 3 %, more than 1 %",
		"in 2 of 3 duet trials, use of the gateways' core: down to 50 %, less than 90 %",
	}
	if diff := cmp.Diff(want, Warnings(trials)); diff != "" {
		t.Error(diff)
	}
}

// TestBlocks: what spoils one phase, profile or arm leaves the others alone.
func TestBlocks(t *testing.T) {
	doc := &result.Document{Arms: []result.Arm{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for block := range 10 {
		for _, arm := range []string{"a", "b", "c"} {
			for _, profile := range []string{"steady", "burst"} {
				bad := arm == "c" && profile == "burst" && block < 3 // an arm that cannot carry it
				doc.Trials = append(doc.Trials, result.Trial{Arm: arm, Block: block, Phase: result.Solo, Profile: profile, Valid: !bad})
			}
			doc.Trials = append(doc.Trials, result.Trial{Arm: arm, Block: block, Phase: result.Duet, Profile: "duet", Valid: block > 1})
		}
	}
	for _, c := range []struct {
		what    string
		got     Blocks
		want    Blocks
		spoiled bool
	}{
		{"steady", Phase(doc, result.Solo, "steady"), Blocks{0, 10}, false},
		{"burst", Phase(doc, result.Solo, "burst"), Blocks{3, 10}, true},
		{"duet", Phase(doc, result.Duet, "duet"), Blocks{2, 10}, false},
		{"burst of b", Pairs(doc, result.Solo, "burst", "b", "a"), Blocks{0, 10}, false},
		{"burst of c", Pairs(doc, result.Solo, "burst", "c", "a"), Blocks{3, 10}, true},
		{"burst of the baseline", Pairs(doc, result.Solo, "burst", "b", "c"), Blocks{3, 10}, true},
		{"never run", Phase(doc, result.Solo, "other"), Blocks{0, 0}, false},
	} {
		if c.got != c.want || c.got.Spoiled() != c.spoiled {
			t.Errorf("%s: got %v, spoiled %v", c.what, c.got, c.got.Spoiled())
		}
	}

	for _, c := range []struct {
		blocks Blocks
		more   int
		want   bool
	}{{Blocks{2, 8}, 2, false}, {Blocks{2, 8}, 1, true}, {Blocks{0, 8}, 0, false}, {Blocks{8, 8}, 4, true}} {
		if got := c.blocks.Lost(c.more); got != c.want {
			t.Errorf("%v and %d more: lost %v", c.blocks, c.more, got)
		}
	}

	doc.Trials = append(doc.Trials, result.Trial{Arm: "a", Block: 10, Phase: result.Solo, Profile: "steady"})
	if got := Phase(doc, result.Solo, "steady"); got != (Blocks{1, 11}) {
		t.Errorf("a block that a dead process ended: got %v", got)
	}
	doc.Interrupted = true
	if got := Phase(doc, result.Solo, "steady"); got != (Blocks{0, 10}) {
		t.Errorf("a block that an interruption cut off: got %v", got)
	}
	if got := Phase(doc, result.Duet, "duet"); got != (Blocks{2, 10}) {
		t.Errorf("the other phase of an interrupted run: got %v", got)
	}
}
