package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatebench/loadtest/result"
)

type ratios = map[string]float64

// run is a concluded document of a configured run.
func run(day uint64, n int, noise float64, rs ratios) *result.Document {
	d := madeOn(day, n, noise, rs)
	d.Config = json.RawMessage(`{"experiment":{"blocks":8,"seed":42,"budget":"4m","profiles":["steady"]},
		"profiles":{"steady":{"rate":"45%","duration":"2s"}},"thresholds":{},
		"arms":[{"name":"net/http","gateway":{"pool":{"max_conns":256}}},{"name":"resty","gateway":{"pool":{"max_conns":256}}}]}`)
	d.About = map[string]json.RawMessage{}
	for _, a := range d.Arms {
		d.About[a.Name] = json.RawMessage(`{"go":"go1.26.0","client":{"name":"x","version":"v1.2.3"},"config":{"pool":{}}}`)
	}
	Conclude(d)
	return d
}

// withFloor turns retryablehttp's arm into the floor.
func withFloor(d *result.Document) *result.Document {
	d.Arms[2].Client, d.Arms[2].Floor = "floor", true
	Conclude(d)
	return d
}

// slower multiplies every time and cost of a run: the machine had a bad day.
func slower(d *result.Document, by float64) *result.Document {
	for i := range d.Trials {
		for name := range d.Trials[i].Metrics {
			d.Trials[i].Metrics[name] *= by
		}
	}
	Conclude(d)
	return d
}

func compare(t *testing.T, old, latest *result.Document, margin float64) *Changes {
	t.Helper()
	c, err := Compare(old, latest, margin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func verdictsOf(cs []Change, metric string) map[string]ChangeVerdict {
	vs := map[string]ChangeVerdict{}
	for _, c := range cs {
		if c.Metric == metric {
			vs[c.Arm] = c.Verdict
		}
	}
	return vs
}

func TestCompare(t *testing.T) {
	const quiet = 0.004
	dead := func(d *result.Document) *result.Document {
		for i := range d.Trials {
			if tr := &d.Trials[i]; tr.Arm == "resty" && tr.Profile == "duet" {
				tr.Metrics = nil
			}
		}
		Conclude(d)
		return d
	}
	for name, c := range map[string]struct {
		old, latest *result.Document
		margin      float64
		want        map[string]ChangeVerdict
		regressed   bool
	}{
		"the same truth on two days": {
			run(1, 12, quiet, ratios{"resty": 1.2, "fasthttp": .6}), run(2, 12, quiet, ratios{"resty": 1.2, "fasthttp": .6}), 0,
			map[string]ChangeVerdict{"resty": NoChange, "retryablehttp": NoChange, "fasthttp": NoChange}, false,
		},
		"one result against itself": {
			run(1, 12, quiet, ratios{"resty": 1.2}), run(1, 12, quiet, ratios{"resty": 1.2}), 0,
			map[string]ChangeVerdict{"resty": NoChange, "retryablehttp": NoChange, "fasthttp": NoChange}, false,
		},
		"a slower machine is no regression": {
			run(1, 12, quiet, ratios{"fasthttp": .6}), slower(run(2, 12, quiet, ratios{"fasthttp": .6}), 1.5), 0,
			map[string]ChangeVerdict{"resty": NoChange, "retryablehttp": NoChange, "fasthttp": NoChange}, false,
		},
		"one up, one down": {
			run(1, 12, .02, ratios{"resty": 1.2, "fasthttp": .6}), run(2, 12, .02, ratios{"resty": 1.0, "fasthttp": .8}), 0,
			map[string]ChangeVerdict{"resty": Improvement, "retryablehttp": CannotTellChange, "fasthttp": Regression}, true,
		},
		"a regression within the margin asked for stops nothing": {
			run(1, 12, .02, ratios{"fasthttp": .60}), run(2, 12, .02, ratios{"fasthttp": .66}), .10,
			map[string]ChangeVerdict{"resty": NoChange, "retryablehttp": NoChange, "fasthttp": Regression}, false,
		},
		"five blocks claim nothing": {
			run(1, 12, .02, nil), run(2, 5, .02, ratios{"fasthttp": 3}), 0,
			map[string]ChangeVerdict{"resty": CannotTellChange, "retryablehttp": CannotTellChange, "fasthttp": CannotTellChange}, false,
		},
		"noise claims nothing": {
			run(1, 8, .3, nil), run(2, 8, .3, nil), 0,
			map[string]ChangeVerdict{"resty": CannotTellChange, "retryablehttp": CannotTellChange, "fasthttp": CannotTellChange}, false,
		},
		"what one run lacks is missing, neither 0 nor best": {
			run(1, 12, quiet, nil), dead(run(2, 12, quiet, nil)), 0,
			map[string]ChangeVerdict{"resty": CannotTellChange, "retryablehttp": NoChange, "fasthttp": NoChange}, false,
		},
		"where twins differed in one run nothing counts": {
			run(1, 12, quiet, nil), sound(run(2, 12, quiet, ratios{"net/http (sentinel)": 1.3, "fasthttp": 2})), 0,
			map[string]ChangeVerdict{"resty": ChangeNotValid, "retryablehttp": ChangeNotValid, "fasthttp": ChangeNotValid}, false,
		},
	} {
		got := compare(t, c.old, c.latest, c.margin)
		if diff := cmp.Diff(c.want, verdictsOf(got.Changes, "cpu_us_per_request")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Regressed != c.regressed {
			t.Errorf("%s: regressed %v", name, got.Regressed)
		}
		for _, a := range got.Absolutes {
			if a.Verdict != NotJudged {
				t.Errorf("%s: without a floor %s is judged: %s", name, a.Arm, a.Verdict)
			}
		}
	}
}

// sound overrides the gate on the whole result, so that the metric's own shows.
func sound(d *result.Document) *result.Document {
	d.Valid, d.InvalidReasons = true, nil
	return d
}

func TestAResultThatIsNotValidTakesEveryVerdict(t *testing.T) {
	old, latest := run(1, 12, .004, nil), run(2, 12, .004, ratios{"fasthttp": 3})
	latest.Valid, latest.InvalidReasons = false, []string{"out of luck"}
	c := compare(t, old, latest, 0)
	if c.Valid || c.Regressed || len(c.InvalidReasons) != 1 || !strings.Contains(c.InvalidReasons[0], "the new result: out of luck") {
		t.Errorf("valid %v, regressed %v, %v", c.Valid, c.Regressed, c.InvalidReasons)
	}
	for _, ch := range slices.Concat(c.Changes, c.Absolutes) {
		if ch.Verdict != ChangeNotValid {
			t.Errorf("%s in %s: %s", ch.Arm, ch.Metric, ch.Verdict)
		}
	}
}

// Absolute figures count where the floor stood still: then the baseline itself can
// regress.
func TestFloorsThatAgreeLetFiguresBeJudged(t *testing.T) {
	old := withFloor(run(1, 40, .004, nil))
	still := withFloor(run(2, 40, .004, ratios{"net/http": 1.5, "net/http (sentinel)": 1.5}))
	for i := range still.Trials { // drift within a run is for pairs; here it must not hide the floor
		undrift(&still.Trials[i])
	}
	for i := range old.Trials {
		undrift(&old.Trials[i])
	}
	c := compare(t, old, still, 0)
	want := map[string]ChangeVerdict{"net/http": Regression, "resty": NoChange, "fasthttp": NoChange}
	if diff := cmp.Diff(want, verdictsOf(c.Absolutes, "cpu_us_per_request")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !c.Regressed {
		t.Error("the baseline's regression does not count")
	}
	moved := slower(withFloor(run(2, 40, .004, nil)), 1.5)
	for arm, v := range verdictsOf(compare(t, old, moved, 0).Absolutes, "cpu_us_per_request") {
		if v != NotJudged {
			t.Errorf("on a slower machine %s is judged: %s", arm, v)
		}
	}
}

// undrift sets the figure to its arm's truth but for a trace of noise by block.
func undrift(t *result.Trial) {
	if _, ok := t.Metrics["cpu_us_per_request"]; !ok {
		return
	}
	truth := 60.0
	if strings.HasPrefix(t.Arm, "net/http") && t.Metrics["allocs_per_request"] > 100 {
		truth = 90
	}
	t.Metrics["cpu_us_per_request"] = truth * (1 + .001*float64((t.Block*7+t.Position)%11-5))
}

func TestCompareRefusesWhatIsNotAlike(t *testing.T) {
	config := func(d *result.Document, old, latest string) *result.Document {
		d.Config = json.RawMessage(strings.ReplaceAll(string(d.Config), old, latest))
		return d
	}
	fresh := func() *result.Document { return run(2, 8, .01, nil) }
	for name, c := range map[string]struct {
		latest *result.Document
		want   []Difference
	}{
		"another pool in one arm": {
			config(fresh(), `{"name":"resty","gateway":{"pool":{"max_conns":256}}}`, `{"name":"resty","gateway":{"pool":{"max_conns":2,"policy":"equal"}}}`),
			[]Difference{{"arms.resty.gateway.pool.max_conns", "256", "2"}, {"arms.resty.gateway.pool.policy", "", `"equal"`}},
		},
		"another load": {
			config(fresh(), `"2s"`, `"9s"`), []Difference{{"profiles.steady.duration", `"2s"`, `"9s"`}},
		},
		"another baseline": {
			func() *result.Document { d := fresh(); d.Arms[0], d.Arms[1] = d.Arms[1], d.Arms[0]; return d }(),
			[]Difference{{"baseline", "net/http", "resty"}},
		},
		"an arm fewer": {
			func() *result.Document { d := fresh(); d.Arms = slices.Delete(d.Arms, 1, 2); return d }(),
			[]Difference{{"arm resty", "client resty, server net/http", ""}},
		},
		"another client under the same name": {
			func() *result.Document { d := fresh(); d.Arms[1].Client = "fasthttp"; return d }(),
			[]Difference{{"arm resty", "client resty, server net/http", "client fasthttp, server net/http"}},
		},
		"more blocks, another seed, other thresholds":      {config(config(config(fresh(), `"seed":42`, `"seed":1`), `"blocks":8`, `"blocks":80`), `"thresholds":{}`, `"thresholds":{"p99":"< 1ms"}`), nil},
		"the arms in another order, the baseline as it is": {config(fresh(), `"arms":[{"name":"net/http","gateway":{"pool":{"max_conns":256}}},{"name":"resty","gateway":{"pool":{"max_conns":256}}}]`, `"arms":[{"name":"resty","gateway":{"pool":{"max_conns":256}}},{"name":"net/http","gateway":{"pool":{"max_conns":256}}}]`), nil},
	} {
		_, err := Compare(run(1, 8, .01, nil), c.latest, 0)
		var got []Difference
		if refused, ok := errors.AsType[*NotComparable](err); ok {
			got = refused.Differences
			for _, d := range got {
				if !strings.Contains(err.Error(), d.Key) {
					t.Errorf("%s: the error does not name %s: %v", name, d.Key, err)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCompareSaysWhatElseDiffers(t *testing.T) {
	old, latest := run(1, 8, .01, nil), run(2, 8, .01, nil)
	latest.About["resty"] = json.RawMessage(`{"go":"go1.26.0","client":{"name":"x","version":"v1.3.0"},"config":{"pool":{}}}`)
	latest.Machine.Cores = 4
	latest.Pilot.Rates["steady"] *= 1.5
	c := compare(t, old, latest, 0)
	if diff := cmp.Diff([]Difference{{"resty: client.version", `"v1.2.3"`, `"v1.3.0"`}}, c.Versions); diff != "" {
		t.Error(diff)
	}
	want := []string{"cores: 2 in the old run, 4 in the new", "rate of profile steady: 2140/s in the old run, 3220/s in the new"}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestChangesPages(t *testing.T) {
	for name, c := range map[string]func() *Changes{
		"changed": func() *Changes {
			return compare(t, run(1, 12, .02, ratios{"resty": 1.2, "fasthttp": .6}), run(2, 12, .02, ratios{"resty": 1.0, "fasthttp": .8}), 0)
		},
		"no-data": func() *Changes { return compare(t, sound(run(1, 0, 0, nil)), sound(run(2, 0, 0, nil)), 0) },
		"invalid": func() *Changes { return compare(t, run(1, 8, .02, nil), run(2, 0, 0, nil), 0) },
	} {
		for _, width := range []int{40, 100} {
			var b strings.Builder
			if err := ChangesText(&b, c(), width); err != nil {
				t.Fatal(err)
			}
			golden(t, fmt.Sprintf("compare-%s-%d.txt", name, width), b.String())
			fits(t, b.String(), width)
		}
	}
}

// Whatever two runs hold: the comparison is JSON without NaN, and turned round it
// says the opposite.
func TestComparisonsTurnRound(t *testing.T) {
	opposite := map[ChangeVerdict]ChangeVerdict{
		Regression: Improvement, Improvement: Regression, NoChange: NoChange,
		CannotTellChange: CannotTellChange, ChangeNotValid: ChangeNotValid, NotJudged: NotJudged,
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *result.Document {
			d := run(rapid.Uint64Range(1, 9).Draw(t, name+" day"), rapid.IntRange(0, 10).Draw(t, name+" blocks"),
				rapid.SampledFrom([]float64{0, .01, .2}).Draw(t, name+" noise"),
				ratios{"fasthttp": rapid.SampledFrom([]float64{.5, 1, 1.02, 2}).Draw(t, name+" ratio")})
			return sound(d)
		}
		a, b := draw("old"), draw("new")
		there, err := Compare(a, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Compare(b, a, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(there); err != nil {
			t.Fatal(err)
		}
		for i, c := range there.Changes {
			if got := back.Changes[i].Verdict; got != opposite[c.Verdict] {
				t.Fatalf("%s in %s: %s, and turned round %s", c.Arm, c.Metric, c.Verdict, got)
			}
		}
	})
}
