package stats

import (
	"math"
	"slices"
	"testing"
)

// With two values that all have, the test is Fisher's: the tail is hypergeometric and
// can be counted by hand, and it does not matter which side comes first.
func TestMannWhitneyWithTiesIsTheSameFromEitherSide(t *testing.T) {
	zeros, ones := func(n int) []float64 { return make([]float64, n) }, func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for _, c := range []struct {
		from, to []float64
		want     float64
	}{
		{zeros(8), ones(6), 2.0 / 3003}, // of C(14,6) ways one is as far apart
		{slices.Concat(zeros(4), ones(4)), slices.Concat(zeros(1), ones(5)), 2 * (126*5 + 84.0) / 3003}, // C(9,5)·C(5,1) + C(9,6)
	} {
		for _, order := range [][2][]float64{{c.from, c.to}, {c.to, c.from}} {
			if p := MannWhitney(order[0], order[1]); math.Abs(p-c.want) > 1e-9 {
				t.Errorf("%v against %v: p = %v, want %v", order[0], order[1], p, c.want)
			}
		}
	}
}
