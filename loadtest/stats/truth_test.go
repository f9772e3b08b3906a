package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The truth tests let the rule judge experiments whose truth is known, because it
// was put in. The numbers wanted are those of the two-test rule at ten blocks, by
// simulation and, where there is one, by calculation: the exact signed-rank test at
// n = 10 has a size of 4.88 %, t has 5 %, and claims need both.
const (
	simulated = 10_000 // experiments: ±0.4 % at a rate of 4 %, two standard errors
	few       = 3_000  // for what need not be known to half a percent
	truthN    = 10
)

// anyDifference is the rule without equivalence: nothing is too small to matter.
var anyDifference = Rule{Level: 0.95, Interest: 1e-9, MinN: 6}

// share is how many of n experiments come out true.
func share(n int, experiment func(*rand.Rand) bool) float64 {
	r := rand.New(rand.NewPCG(42, 7))
	count := 0
	for range n {
		if experiment(r) {
			count++
		}
	}
	return float64(count) / float64(n)
}

func claims(js ...Judgement) bool {
	for _, j := range js {
		if j.Outcome == Lower || j.Outcome == Higher {
			return true
		}
	}
	return false
}

func between(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %.2f %%, want %.2f to %.2f", what, 100*got, 100*least, 100*most)
	}
}

func draw(n int, one func() float64) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = one()
	}
	return d
}

// drift is a machine whose speed wanders (Ornstein–Uhlenbeck, 10 % standard
// deviation, memory of half a minute) under trials of ten seconds that start every
// fifteen; each trial's process adds 2 % of its own.
type drift struct {
	r     *rand.Rand
	speed float64
}

func drifting(r *rand.Rand) *drift { return &drift{r, 0.10 * r.NormFloat64()} }

// trial is the log of one trial's figure.
func (d *drift) trial() float64 {
	const memory, every = 30.0, 15.0
	keeps := math.Exp(-every / memory)
	d.speed = keeps*d.speed + 0.10*math.Sqrt(1-keeps*keeps)*d.r.NormFloat64()
	return d.speed + 0.02*d.r.NormFloat64()
}

// block measures two identical arms in random order.
func (d *drift) block() float64 {
	first, second := d.trial(), d.trial()
	if d.r.IntN(2) == 0 {
		return second - first
	}
	return first - second
}

func TestIdenticalArmsAreSeldomCalledDifferent(t *testing.T) {
	for _, family := range []struct {
		name        string
		blocks      func(*rand.Rand) []float64
		least, most float64
	}{
		{"normal", func(r *rand.Rand) []float64 { return draw(truthN, r.NormFloat64) }, .036, .046},
		{"one block in ten five times as noisy", func(r *rand.Rand) []float64 {
			return draw(truthN, func() float64 {
				if r.IntN(10) == 0 {
					return 5 * r.NormFloat64()
				}
				return r.NormFloat64()
			})
		}, .02, .056},
		{"heavy tails: t with two degrees of freedom", func(r *rand.Rand) []float64 {
			return draw(truthN, func() float64 { return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) })
		}, .01, .056},
		{"spikes in either arm", func(r *rand.Rand) []float64 {
			spiky := func() float64 {
				x := 0.02 * r.NormFloat64()
				if r.IntN(5) == 0 {
					x += r.ExpFloat64()
				}
				return x
			}
			return draw(truthN, func() float64 { return spiky() - spiky() })
		}, .002, .056},
		{"drifting", func(r *rand.Rand) []float64 { return draw(truthN, drifting(r).block) }, .03, .056},
	} {
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			got := share(simulated, func(r *rand.Rand) bool {
				return claims(Judge([][]float64{family.blocks(r)}, anyDifference)...)
			})
			t.Logf("%.2f %%", 100*got)
			between(t, "false claims", got, family.least, family.most)
		})
	}
}

// The drift is no straw man: one arm after the other, as published comparisons
// measure, calls identical arms different in every third experiment.
func TestDriftDeceivesWhoMeasuresOneArmAfterTheOther(t *testing.T) {
	got := share(few, func(r *rand.Rand) bool {
		d := drifting(r)
		return claims(JudgeShifts([]Shift{{draw(truthN, d.trial), draw(truthN, d.trial)}}, anyDifference)...)
	})
	t.Logf("%.2f %%", 100*got)
	between(t, "false claims", got, .20, 1)
}

// Two runs whose ratios do not differ.
func TestIdenticalRunsAreSeldomCalledDifferent(t *testing.T) {
	for _, c := range []struct {
		name        string
		n, m        int
		spread      float64 // of the second run against the first
		least, most float64
	}{
		{"alike", 10, 10, 1, .028, .046},
		{"of 8 and 20 blocks", 8, 20, 1, .028, .056},
		{"the second three times as noisy", 10, 10, 3, .028, .056},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := share(few, func(r *rand.Rand) bool {
				s := Shift{draw(c.n, r.NormFloat64), draw(c.m, func() float64 { return c.spread * r.NormFloat64() })}
				return claims(JudgeShifts([]Shift{s}, anyDifference)...)
			})
			t.Logf("%.2f %%", 100*got)
			between(t, "false claims", got, c.least, c.most)
		})
	}
}

func TestARealDifferenceIsFound(t *testing.T) {
	got := share(simulated, func(r *rand.Rand) bool {
		return claims(Judge([][]float64{draw(truthN, func() float64 { return 1 + r.NormFloat64() })}, anyDifference)...)
	})
	t.Logf("%.2f %%", 100*got)
	between(t, "power at one standard deviation", got, .755, .785)
}

// A true +3 % under noise of 3 % stands in the intervals as often as they say.
func TestIntervalsHoldTheTruth(t *testing.T) {
	truth := math.Log(1.03)
	for name, interval := range map[string]func([]float64) Interval{
		"Hodges–Lehmann": func(d []float64) Interval { return HodgesLehmann(d, 0.95) },
		"Student":        func(d []float64) Interval { return Student(d, 0.95) },
		"Hodges–Lehmann, unpaired": func(d []float64) Interval {
			return HodgesLehmannShift(d[:truthN], d[truthN:], 0.95)
		},
		"Welch": func(d []float64) Interval { return Welch(d[:truthN], d[truthN:], 0.95) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			missed := share(simulated, func(r *rand.Rand) bool {
				d := draw(truthN, func() float64 { return truth + 0.03*r.NormFloat64() })
				if name == "Welch" || name == "Hodges–Lehmann, unpaired" {
					d = append(draw(truthN, func() float64 { return 0.03 * r.NormFloat64() }), d...)
				}
				return interval(d).Excludes(truth)
			})
			t.Logf("misses %.2f %%", 100*missed)
			// The exact tests' sizes at ten: 4.88 % paired, 4.33 % unpaired.
			between(t, "misses", missed, .038, .056)
		})
	}
}

// Four arms that are their baseline's copies, judged together: some claim is as
// rare as a single one; judged one by one it is not.
func TestHolmKeepsAFamilyHonest(t *testing.T) {
	family := func(r *rand.Rand) [][]float64 {
		baseline := draw(truthN, r.NormFloat64)
		arms := make([][]float64, 4)
		for i := range arms {
			arms[i] = draw(truthN, r.NormFloat64)
			for block := range arms[i] {
				arms[i][block] -= baseline[block]
			}
		}
		return arms
	}
	together := share(simulated, func(r *rand.Rand) bool { return claims(Judge(family(r), anyDifference)...) })
	alone := share(few, func(r *rand.Rand) bool {
		for _, d := range family(r) {
			if claims(Judge([][]float64{d}, anyDifference)...) {
				return true
			}
		}
		return false
	})
	t.Logf("together %.2f %%, one by one %.2f %%", 100*together, 100*alone)
	between(t, "any claim, together", together, .01, .056)
	between(t, "any claim, one by one", alone, .08, 1)
}

// With a spread of 3 % and an interest of 2 %, "no meaningful difference" is said
// of equal arms and hardly ever of arms 4 % apart, and no difference is ever seen
// the wrong way round.
func TestEquivalenceIsNotIgnorance(t *testing.T) {
	rule := Rule{Level: 0.95, Interest: math.Log(1.02), MinN: 6}
	outcomes := func(truth float64, n int) (equivalent, wrong float64) {
		wrongSign := 0
		equivalent = share(few, func(r *rand.Rand) bool {
			j := Judge([][]float64{draw(n, func() float64 { return truth + 0.03*r.NormFloat64() })}, rule)[0]
			if truth > 0 && j.Outcome == Lower {
				wrongSign++
			}
			return j.Outcome == Equivalent
		})
		return equivalent, float64(wrongSign) / few
	}
	equal, _ := outcomes(0, 20)
	apart, wrong := outcomes(0.04, 20)
	t.Logf("equivalent: equal arms %.1f %%, 4 %% apart %.2f %%; wrong sign %.3f %%", 100*equal, 100*apart, 100*wrong)
	between(t, "equal arms called equivalent at 20 blocks", equal, .70, .82)
	between(t, "arms 4 % apart called equivalent", apart, 0, .005)
	between(t, "wrong sign", wrong, 0, .0015)
}
