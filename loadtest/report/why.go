package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// Explanation is what was measured beside a difference that is claimed, and may be its
// cause.
type Explanation struct {
	Arm    string
	Metric result.Metric
	// Profile is that of the claim.
	Profile string
	Claim   *result.Comparison
	// Causes differ from the baseline's, the largest difference first; Alike are
	// those that were measured and do not.
	Causes []Cause
	Alike  []result.Metric
	// Keys are the configuration keys in which the arm differs from the baseline.
	Keys []Difference
}

// Cause is one figure of an arm as a ratio to the baseline's.
type Cause struct {
	Metric result.Metric
	Ratio  float64
}

// worthNaming is the smallest relative difference of a cause that is put forward.
const worthNaming = 0.03

// unknowable is what no explanation holds.
const unknowable = "They go together; which of them makes the difference, and where in a library's code " +
	"the time is spent, these figures cannot say. A CPU profile of each arm can: run with --pprof cpu."

// explanations are those of every claim, in the order of the tables.
func explanations(doc *result.Document, js []Judged) []Explanation {
	var es []Explanation
	for _, j := range js {
		for _, row := range j.claims() {
			e := Explanation{Arm: row.Arm, Metric: j.Metric, Profile: j.Profile, Claim: row.Comparison}
			e.Causes, e.Alike = causesOf(doc, j, row.Arm)
			e.Keys = keysApart(doc, row.Arm)
			es = append(es, e)
		}
	}
	return es
}

// causesOf holds every figure that explains against the baseline's, block by block: of
// the same profile, or where that phase does not measure it of the first that does. One
// differs where its whole interval says so, or where it is the same number every time.
func causesOf(doc *result.Document, j Judged, arm string) (differ []Cause, alike []result.Metric) {
	for _, m := range result.Metrics {
		if !m.Explains || m.Name == j.Metric.Name {
			continue
		}
		names := profiles(doc, m.Phase)
		if slices.Contains(names, j.Profile) {
			names = []string{j.Profile}
		}
		if len(names) == 0 {
			continue
		}
		s := measure(doc, m, names[0])
		d := s.logRatios(arm, doc.Arms[0].Name)
		if len(d) == 0 {
			continue
		}
		iv := stats.HodgesLehmann(d, level)
		ratio := math.Exp(iv.Center)
		if math.Abs(ratio-1) >= worthNaming && iv.Excludes(0) {
			differ = append(differ, Cause{m, ratio})
		} else {
			alike = append(alike, m)
		}
	}
	slices.SortStableFunc(differ, func(a, b Cause) int {
		return cmp.Compare(math.Abs(math.Log(b.Ratio)), math.Abs(math.Log(a.Ratio)))
	})
	return differ, alike
}

// keysApart are the keys of gateway and backend that the arm and the baseline give
// different values.
func keysApart(doc *result.Document, arm string) []Difference {
	baseline := doc.Arms[0].Name
	byArm := map[string]map[string]string{baseline: {}, arm: {}}
	for key, value := range flatten(doc.Config) {
		for name, keys := range byArm {
			if rest, ok := strings.CutPrefix(key, "arms."+name+"."); ok && rest != "name" {
				keys[rest] = value
			}
		}
	}
	return differences(byArm[baseline], byArm[arm])
}

// sentence is one line: the claim, what differs beside it, what does not.
func (e Explanation) sentence() string {
	var parts []string
	for _, c := range e.Causes {
		parts = append(parts, fmt.Sprintf("%s %s %%", c.Metric.Title, signed(c.Ratio-1)))
	}
	s := fmt.Sprintf("%s %s in %s", e.Arm, difference(e.Claim), e.Metric.Title)
	if e.Metric.Phase == result.Solo {
		s += " [" + e.Profile + "]"
	}
	if len(parts) > 0 {
		s += ": with it go " + strings.Join(parts, ", ")
	} else {
		s += ": nothing that was measured beside it differs"
	}
	if len(e.Alike) > 0 {
		var names []string
		for _, m := range e.Alike {
			names = append(names, m.Title)
		}
		s += "; not shown to differ: " + strings.Join(names, ", ")
	}
	return s + ". " + e.configured()
}

// configured says what the arm was told otherwise than the baseline.
func (e Explanation) configured() string {
	var keys []string
	for _, d := range e.Keys {
		keys = append(keys, fmt.Sprintf("%s (%s, baseline %s)", d.Key, cmp.Or(d.New, "not set"), cmp.Or(d.Old, "not set")))
	}
	if len(keys) == 0 {
		return "Configured like the baseline."
	}
	return "Configured apart in " + strings.Join(keys, ", ") + "."
}
