package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Hollander, Wolfe, Chicken, example 4.1 (permeability of membranes, Lazarus 1977):
// sizes 10 and 5, U = 15 of 50, exact one-sided P = 0.1272, shift −0.305.
func TestShiftMatchesTheTextbook(t *testing.T) {
	atTerm := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	near(t, "p", MannWhitney(atTerm, early), 2*0.12720613, 1e-7)
	near(t, "shift", HodgesLehmannShift(atTerm, early, 0.95).Center, -0.305, 1e-9)
}

// Critical values of the published tables (two-sided 5 %: reject at U ≤ k−1).
func TestCriticalUMatchesTheTables(t *testing.T) {
	for _, c := range []struct{ n, m, want int }{
		{3, 3, 0}, {4, 4, 1}, {5, 5, 3}, {5, 8, 7}, {8, 5, 7}, {6, 6, 6}, {8, 8, 14}, {10, 10, 24}, {20, 20, 128},
	} {
		if got := criticalU(c.n, c.m, 0.95); got != c.want {
			t.Errorf("critical rank of %d and %d is %d, want %d", c.n, c.m, got, c.want)
		}
	}
}

// Welch's t by hand: means 3 and 6, variances 2.5 and 10, t = 3/√(0.5+2), and
// 2.5²/(0.25/4 + 4/4) = 5.882 degrees of freedom.
func TestWelch(t *testing.T) {
	from, to := []float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10}
	se, v := welch(from, to)
	near(t, "standard error", se, math.Sqrt(2.5), 1e-12)
	near(t, "degrees of freedom", v, 5.882353, 1e-6)
	near(t, "p", WelchP(from, to), 0.107531, 1e-5)
	iv := Welch(from, to, 0.95)
	near(t, "centre", iv.Center, 3, 1e-12)
	near(t, "lo", iv.Lo, -0.887697, 1e-4)
}

func TestDegenerateShiftsDecideNothing(t *testing.T) {
	rule := Rule{Level: 0.95, Interest: math.Log(1.02), MinN: 6}
	same := []float64{.1, .1, .1, .1, .1, .1, .1, .1}
	more := []float64{.6, .6, .6, .6, .6, .6, .6, .6}
	for name, c := range map[string]struct {
		shift Shift
		want  Outcome
	}{
		"no block in either":          {Shift{}, Undecided},
		"no block in one":             {Shift{From: same}, Undecided},
		"one block each":              {Shift{same[:1], more[:1]}, Undecided},
		"five blocks, however clear":  {Shift{same, more[:5]}, Undecided},
		"identical":                   {Shift{same, same}, Equivalent},
		"up, the same each time":      {Shift{same, more}, Higher},
		"down, the same each time":    {Shift{more, same}, Lower},
		"of no interest":              {Shift{same, []float64{.110, .111, .110, .111, .110, .111}}, Equivalent},
		"noise":                       {Shift{[]float64{.3, -.4, .1, -.2, .5, -.3}, []float64{-.1, .2, .4, -.5, .1, 0}}, Undecided},
		"one wild block hides nought": {Shift{same, []float64{.2, .21, .19, .2, .22, .2, .21, 5}}, Undecided},
	} {
		j := JudgeShifts([]Shift{c.shift}, rule)[0]
		if j.Outcome != c.want {
			t.Errorf("%s: outcome %v, want %v (%+v)", name, j.Outcome, c.want, j)
		}
		for _, x := range []float64{j.P, j.AdjustedP, j.Estimate.Center, j.Estimate.Lo, j.Estimate.Hi, j.Student.Lo, j.Student.Hi} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s: not a number: %+v", name, j)
			}
		}
		if j.Outcome == Undecided && j.Needed <= j.N {
			t.Errorf("%s: %d blocks do not settle it, yet %d would", name, j.N, j.Needed)
		}
	}
}

// What is asked the other way round is answered the other way round.
func TestShiftsAreAntisymmetric(t *testing.T) {
	values := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 20)
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		for _, interval := range []func(from, to []float64, level float64) Interval{HodgesLehmannShift, Welch} {
			there, back := interval(a, b, 0.95), interval(b, a, 0.95)
			for _, pair := range [][2]float64{{there.Center, -back.Center}, {there.Lo, -back.Hi}, {there.Hi, -back.Lo}} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Fatalf("%+v and back %+v", there, back)
				}
			}
			if !(there.Lo <= there.Center+1e-9 && there.Center <= there.Hi+1e-9) {
				t.Fatalf("%+v", there)
			}
		}
		for _, p := range []float64{MannWhitney(a, b), WelchP(a, b)} {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("p = %v", p)
			}
		}
	})
}

// With as many blocks a run as are said to settle it, Welch's interval is as narrow
// as the interest, and with a third fewer it is not.
func TestBlocksNeededForAShift(t *testing.T) {
	rule := Rule{Level: 0.95, Interest: 0.02, MinN: 6}
	alternating := func(n int, sd float64) []float64 { // of exactly that standard deviation
		d := make([]float64, n)
		for i := range d {
			d[i] = sd * math.Sqrt(float64(n-1)/float64(n)) * float64(1-2*(i%2))
		}
		return d
	}
	needed := JudgeShifts([]Shift{{alternating(8, .03), alternating(8, .05)}}, rule)[0].Needed
	half := func(n int) float64 {
		iv := Welch(alternating(n, .03), alternating(n, .05), 0.95)
		return (iv.Hi - iv.Lo) / 2
	}
	if even := needed + needed%2; half(even) > rule.Interest || half(even*2/3/2*2) < rule.Interest {
		t.Errorf("%d blocks: half-width %.4f, with a third fewer %.4f", needed, half(even), half(even*2/3/2*2))
	}
}
