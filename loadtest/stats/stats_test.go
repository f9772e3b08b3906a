package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, tolerance)
	}
}

// Hollander, Wolfe, Chicken, example 3.1 (depression scores, Salsburg 1970): T+ = 5
// of n = 9, exact one-sided P = 0.0195, estimate −0.46, 96.1 % interval
// (−0.786, −0.010).
func TestSignedRankMatchesTheTextbook(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = y[i] - x[i]
	}
	near(t, "p", SignedRank(d), 2*0.01953125, 1e-12) // 10/512 one-sided
	iv := HodgesLehmann(d, 0.95)
	near(t, "estimate", iv.Center, -0.46, 1e-9)
	near(t, "lo", iv.Lo, -0.786, 1e-9)
	near(t, "hi", iv.Hi, -0.010, 1e-9)
	if !iv.Bounded {
		t.Error("nine values bound the centre at 95 %")
	}
}

func TestSignedRankSmallSamples(t *testing.T) {
	for n := 1; n <= 10; n++ {
		d := make([]float64, n)
		for i := range d {
			d[i] = float64(i + 1)
		}
		// All of one sign is the most extreme of the 2^n sign patterns, twice.
		near(t, "p of all positive", SignedRank(d), math.Pow(2, float64(1-n)), 1e-15)
		if got, want := HodgesLehmann(d, 0.95).Bounded, n >= 6; got != want {
			t.Errorf("n = %d: bounded at 95 %%: %v", n, got)
		}
	}
	// Critical ranks of the published tables: two-sided 5 %, T ≤ k−1.
	for n, want := range map[int]int{6: 1, 7: 3, 8: 4, 9: 6, 10: 9, 12: 14, 15: 26, 20: 53} {
		if got := criticalRank(n, 0.95); got != want {
			t.Errorf("critical rank of n = %d is %d, want %d", n, got, want)
		}
	}
}

func TestSignedRankTiesAndZeros(t *testing.T) {
	near(t, "zeros are dropped", SignedRank([]float64{0, 0, 1, 2, 3}), SignedRank([]float64{1, 2, 3}), 0)
	near(t, "nothing but zeros", SignedRank([]float64{0, 0, 0}), 1, 0)
	near(t, "nothing at all", SignedRank(nil), 1, 0)
	// Two equal sizes, opposite signs: T+ = T− = 1.5 whatever the coin says.
	near(t, "a tie that balances", SignedRank([]float64{1, -1}), 1, 0)
	// |d| = 1,1,2: ranks 1.5,1.5,3; T− = 1.5, P(T ≤ 1.5) = 3/8.
	near(t, "a tie that does not", SignedRank([]float64{1, -1, 2}), 0.75, 1e-15)
}

func TestStudentMatchesTheTables(t *testing.T) {
	// t quantiles 0.975: 9 degrees of freedom 2.262, 1 12.706, 29 2.045.
	for v, want := range map[int]float64{1: 12.706, 9: 2.262, 29: 2.045} {
		near(t, "t quantile", studentQuantile(float64(v), 0.975), want, 5e-4)
	}
	d := []float64{1, 2, 3, 4, 5} // mean 3, sd 1.5811, t = 4.2426, v = 4
	near(t, "p", StudentP(d), 0.013236, 1e-5)
	iv := Student(d, 0.95)
	near(t, "lo", iv.Lo, 3-2.776445*1.581139/math.Sqrt(5), 1e-5)
	near(t, "hi", iv.Hi, 3+2.776445*1.581139/math.Sqrt(5), 1e-5)
}

func TestDegenerateDataDecideNothing(t *testing.T) {
	rule := Rule{Level: 0.95, Interest: math.Log(1.02), MinN: 6}
	same := []float64{0, 0, 0, 0, 0, 0, 0, 0}
	shifted := []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}
	for name, c := range map[string]struct {
		d    []float64
		want Outcome
	}{
		"no block":                        {nil, Undecided},
		"one block":                       {[]float64{0.7}, Undecided},
		"five blocks, however clear":      {shifted[:5], Undecided},
		"identical":                       {same, Equivalent},
		"the same difference each time":   {shifted, Higher},
		"the same difference downwards":   {[]float64{-.5, -.5, -.5, -.5, -.5, -.5, -.5, -.5}, Lower},
		"certain but of no interest":      {[]float64{.010, .011, .010, .011, .010, .011, .010, .011}, Equivalent},
		"noise":                           {[]float64{.3, -.4, .1, -.2, .5, -.3, .2, -.1}, Undecided},
		"one wild block hides nothing":    {[]float64{.10, .11, .09, .10, .12, .10, .11, .10, .09, .10, 2.5}, Undecided},
		"seven of eight up is not enough": {[]float64{.1, .1, .1, .1, .1, .1, .1, -.5}, Undecided},
	} {
		j := Judge([][]float64{c.d}, rule)[0]
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

// Holm (1979): p = .01 .04 .03 of three become .03, .06, .06.
func TestHolm(t *testing.T) {
	js := []Judgement{{P: .01}, {P: .04}, {P: .03}}
	holm(js)
	for i, want := range []float64{.03, .06, .06} {
		near(t, "adjusted p", js[i].AdjustedP, want, 1e-12)
	}
}

func TestBlocksNeeded(t *testing.T) {
	rule := Rule{Level: 0.95, Interest: 0.02, MinN: 6}
	// n must satisfy n ≥ (t·sd/interest)², and one fewer must not.
	for _, sd := range []float64{0, 0.01, 0.02, 0.03, 0.05, 0.2} {
		n := BlocksNeeded(sd, rule)
		enough := func(n int) bool {
			q := studentQuantile(float64(n-1), 0.975) * sd / rule.Interest
			return float64(n) >= q*q
		}
		if !enough(n) || n > rule.MinN && enough(n-1) {
			t.Errorf("sd %v: %d blocks", sd, n)
		}
	}
}

func TestIntervalsContainTheirCentre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 25).Draw(t, "d")
		for _, iv := range []Interval{HodgesLehmann(d, 0.95), Student(d, 0.95)} {
			if !(iv.Lo <= iv.Center+1e-12 && iv.Center <= iv.Hi+1e-12) {
				t.Fatalf("%+v", iv)
			}
		}
		wide, narrow := HodgesLehmann(d, 0.99), HodgesLehmann(d, 0.90)
		if wide.Bounded && (wide.Lo > narrow.Lo || wide.Hi < narrow.Hi) {
			t.Fatalf("99 %% %+v inside 90 %% %+v", wide, narrow)
		}
		p := SignedRank(d)
		if !(p > 0 && p <= 1) {
			t.Fatalf("p = %v", p)
		}
	})
}
