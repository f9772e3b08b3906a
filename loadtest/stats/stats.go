// Package stats estimates how much two things differ that were measured in
// blocks, and says how sure that is. It works on plain floats and knows neither
// clients nor metrics.
//
// The unit is the block: both things measured close together, so that what drifts
// hits both. A block gives one log-ratio d = ln(b/a); all here is about the centre
// of several d. Requests within a trial are not independent and are never the
// unit; quantiles of trials are never averaged.
//
// Two methods look at the same d: Wilcoxon's signed-rank test with the
// Hodges–Lehmann estimate, which one wild block cannot move, and Student's t,
// which uses the sizes. A difference is claimed only where both see it. Bootstrap
// intervals are not here: at 5 to 20 blocks they miss too often.
//
// Two runs share no blocks. What is compared between them is each run's own d, with
// the unpaired relatives of the two methods: Mann–Whitney and Welch.
//
// The trap: "not significant" is not "equal". [Judge] says that two things do not
// differ only where an equivalence test shows it.
package stats

import (
	"math"
	"slices"
)

// Interval is an estimate with its confidence interval, on the scale of the data.
type Interval struct {
	Center, Lo, Hi float64

	// Bounded is false where so few values cannot bound the centre at the
	// level asked; Lo and Hi are then the extremes seen.
	Bounded bool
}

// Within reports whether the whole interval lies strictly inside ±margin.
func (iv Interval) Within(margin float64) bool {
	return iv.Bounded && iv.Lo > -margin && iv.Hi < margin
}

// Excludes reports whether x lies outside the interval.
func (iv Interval) Excludes(x float64) bool {
	return iv.Bounded && (x < iv.Lo || x > iv.Hi)
}

// LogRatios returns ln(b/a) of each pair; pairs with a value that is not positive
// and finite are left out.
func LogRatios(a, b []float64) []float64 {
	var d []float64
	for i := range min(len(a), len(b)) {
		if positive(a[i]) && positive(b[i]) {
			d = append(d, math.Log(b[i])-math.Log(a[i]))
		}
	}
	return d
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// Median returns the middle value, the mean of the two middle ones if they are
// two, and false if there is none.
func Median(xs []float64) (float64, bool) {
	if len(xs) == 0 {
		return 0, false
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	return middle(s), true
}

// middle is the median of values in order, at least one.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
