package experiment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/loadtest/experiment"
	"gatebench/loadtest/result"
)

// scattered is a plan of six blocks in which b is 0 and 10 % dearer than a in turn:
// log-ratios of a standard deviation of 0.0522. What scatters more is no contender.
func scattered(half float64) experiment.Plan {
	p := plan(6,
		arm("a", gatewayScript{CPU: 100}, backendScript{}),
		arm("b", gatewayScript{CPU: 100, Wobble: 0.1}, backendScript{}),
		arm("floor", gatewayScript{CPU: 50, Wobble: 1}, backendScript{}),
		arm("a (sentinel)", gatewayScript{CPU: 100, Wobble: 1}, backendScript{}))
	p.Arms[2].Floor, p.Arms[3].SentinelOf = true, "a"
	p.Profiles = nil
	p.Budget = time.Minute
	p.Precision = []experiment.Precision{{Metric: "cpu_us_per_request", Half: half}}
	return p
}

// (2.571 × 0.0522 ÷ ln 1.04)² = 11.7: the pilot of six is followed by six more.
func TestAPilotTellsHowManyBlocksAPrecisionNeeds(t *testing.T) {
	t.Parallel()
	doc, err := carryOut(t, t.Context(), scattered(0.04))
	if err != nil {
		t.Fatal(err)
	}
	want := &result.Precision{Half: map[string]float64{"cpu_us_per_request": 0.04}, Pilot: 6, Wanted: 12, Widest: "gateway CPU per request of b [duet]", Level: 0.96}
	if diff := cmp.Diff(want, doc.Precision); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := blocksOf(doc); got != 12 {
		t.Errorf("%d blocks", got)
	}
}

func TestAPilotThatIsPreciseEnoughIsAll(t *testing.T) {
	t.Parallel()
	doc, err := carryOut(t, t.Context(), scattered(0.2))
	if err != nil {
		t.Fatal(err)
	}
	if got := blocksOf(doc); got != 6 || doc.Precision.Wanted != 6 || doc.Precision.Widest != "" {
		t.Errorf("%d blocks, %+v", got, doc.Precision)
	}
}

func TestABudgetCapsWhatAPrecisionNeeds(t *testing.T) {
	t.Parallel()
	p := scattered(0.001)
	p.Budget = 8 * time.Second
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got := blocksOf(doc); got < 6 || got > 80 || doc.Precision.Wanted < 10_000 {
		t.Errorf("%d blocks, %+v", got, doc.Precision)
	}
	says := fmt.Sprintf("the precision asked for needs %d blocks, for gateway CPU per request of b [duet], and the budget of 8s holds ", doc.Precision.Wanted)
	if !slices.ContainsFunc(doc.Warnings, func(w string) bool { return strings.HasPrefix(w, says) }) {
		t.Errorf("no warning %q in %q", says, doc.Warnings)
	}
}

func blocksOf(doc *result.Document) int {
	seen := map[int]bool{}
	for _, tr := range doc.Trials {
		seen[tr.Block] = true
	}
	return len(seen)
}
