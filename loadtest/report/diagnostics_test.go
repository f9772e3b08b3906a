package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gatebench/loadtest/result"
)

// shuffled gives the arms of every block random places, and lets a figure depend on
// block and place.
func shuffled(d *result.Document, factor func(t result.Trial) float64) *result.Document {
	r := rand.New(rand.NewPCG(7, 7))
	places := map[int][]int{}
	for i := range d.Trials {
		t := &d.Trials[i]
		if places[t.Block] == nil {
			places[t.Block] = r.Perm(len(d.Arms))
		}
		t.Position = places[t.Block][t.Position]
		for name := range t.Metrics {
			t.Metrics[name] *= factor(*t)
		}
	}
	return d
}

func saying(ds []string, words string) []string {
	return slices.DeleteFunc(ds, func(d string) bool { return !strings.Contains(d, words) })
}

func TestDriftAndPosition(t *testing.T) {
	for _, c := range []struct {
		name            string
		factor          func(t result.Trial) float64
		drift, position int // how many metrics say so
	}{
		{"steady", func(result.Trial) float64 { return 1 }, 0, 0},
		{"5 % a block", func(tr result.Trial) float64 { return math.Pow(1.05, float64(tr.Block)) }, 3, 0},
		{"0.5 % a block", func(tr result.Trial) float64 { return math.Pow(1.005, float64(tr.Block)) }, 0, 0},
		// A duet has no places: its arms run at once.
		{"10 % a place", func(tr result.Trial) float64 { return math.Pow(1.1, float64(tr.Position)) }, 0, 2},
	} {
		d := shuffled(made(12, 0.01, map[string]float64{"fasthttp": 0.6}), c.factor)
		ds := diagnostics(d)
		if got := len(saying(slices.Clone(ds), "drifted by")); got != c.drift {
			t.Errorf("%s: %d metrics drift: %q", c.name, got, ds)
		}
		if got := len(saying(slices.Clone(ds), "place in the block")); got != c.position {
			t.Errorf("%s: %d metrics hang on the place: %q", c.name, got, ds)
		}
	}
}

// TestFragile: a verdict that one block turns is said to be one, a plain one is not.
func TestFragile(t *testing.T) {
	d := made(9, 0.01, map[string]float64{"fasthttp": 0.6, "resty": 1.19})
	if ds := saying(diagnostics(d), "fragile"); len(ds) != 0 {
		t.Errorf("plain verdicts: %q", ds)
	}
	// Against eight blocks stands one: the claim is made, but only just.
	for i := range d.Trials {
		tr := &d.Trials[i]
		if tr.Arm == "retryablehttp" && tr.Phase == result.Duet {
			base := d.Trials[slices.IndexFunc(d.Trials, func(b result.Trial) bool {
				return b.Arm == "net/http" && b.Block == tr.Block && b.Phase == result.Duet
			})].Metrics["cpu_us_per_request"]
			ratio := 1.03 + 0.005*float64(tr.Block)
			if tr.Block == 4 {
				ratio = 0.95 // against the others
			}
			tr.Metrics["cpu_us_per_request"] = base * ratio
		}
	}
	want := "fragile: gateway CPU per request [duet] of retryablehttp would have another verdict without "
	ds := saying(diagnostics(d), "fragile")
	if len(ds) != 1 || !strings.HasPrefix(ds[0], want) {
		t.Errorf("got %q", ds)
	}
	Conclude(d)
	if len(ds) == 1 && !slices.Contains(d.Warnings, ds[0]) {
		t.Errorf("the document does not warn of it: %q", d.Warnings)
	}
}

func TestDiagnosticsOfNothing(t *testing.T) {
	for name, doc := range documents() {
		for _, d := range diagnostics(doc()) {
			if strings.Contains(d, "NaN") || strings.Contains(d, "Inf") {
				t.Errorf("%s: %q", name, d)
			}
		}
	}
}
