package stats

import (
	"math/rand/v2"
	"testing"
)

func TestSecondStage(t *testing.T) {
	for _, tc := range []struct {
		sd, half float64
		n, want  int
	}{
		{2, 1, 10, 21}, // (2.262 × 2)² = 20.5
		{1, 1, 10, 10}, // the pilot is enough
		{3, 1, 10, 47},
		{0, 1, 10, 10},
		{1, 0, 10, maxBlocksNeeded},
		{0, 0, 10, maxBlocksNeeded},
	} {
		if got := SecondStage(tc.sd, tc.half, tc.n); got != tc.want {
			t.Errorf("sd %v, half %v after %d: %d, want %d", tc.sd, tc.half, tc.n, got, tc.want)
		}
	}
}

// A two-stage experiment whose length was chosen by the pilot's width: its interval at
// [TwoStageLevel] misses the truth about as often as one of 95 % should, at a nominal
// 95 % it misses too often, and its claims are no likelier than planned ones.
func TestTwoStagesMissAsOftenAsTheySay(t *testing.T) {
	t.Parallel()
	const sd = 0.03
	for _, half := range []float64{0.01, 0.015, 0.02} { // 46, 20 and 11 values on average
		experiment := func(r *rand.Rand) []float64 {
			d := draw(truthN, func() float64 { return sd * r.NormFloat64() })
			more := SecondStage(StdDev(d), half, truthN) - truthN
			return append(d, draw(more, func() float64 { return sd * r.NormFloat64() })...)
		}
		missed := func(level float64) float64 {
			return share(simulated, func(r *rand.Rand) bool { return Student(experiment(r), level).Excludes(0) })
		}
		at96, at95 := missed(TwoStageLevel), missed(0.95)
		t.Logf("±%.1f %%: misses %.2f %% at 96, %.2f %% at 95", 100*half, 100*at96, 100*at95)
		between(t, "misses at 96 %", at96, .042, .058)
		if half < 0.02 {
			between(t, "misses at a nominal 95 %", at95, .053, .07)
		}
		rule := anyDifference
		rule.Level = TwoStageLevel
		claimed := share(few, func(r *rand.Rand) bool { return claims(Judge([][]float64{experiment(r)}, rule)...) })
		between(t, "claims", claimed, .02, .055)
	}
}

// What looking at centres would do: stop as soon as the interval excludes 0, from 6
// values to 40.
func TestStoppingAtAClaimMakesClaims(t *testing.T) {
	t.Parallel()
	got := share(few, func(r *rand.Rand) bool {
		d := draw(5, r.NormFloat64)
		for len(d) < 40 {
			d = append(d, r.NormFloat64())
			if Student(d, 0.95).Excludes(0) {
				return true
			}
		}
		return false
	})
	t.Logf("%.1f %%", 100*got)
	between(t, "false claims", got, .20, .30)
}
