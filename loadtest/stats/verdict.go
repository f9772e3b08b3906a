package stats

import (
	"cmp"
	"math"
	"slices"
)

// Outcome is what the data say about one difference.
type Outcome int

const (
	// Undecided: neither a difference nor its absence is shown.
	Undecided Outcome = iota
	// Lower and Higher: the centre lies below or above 0, and by more than
	// what is of no interest.
	Lower
	Higher
	// Equivalent: the difference, if any, is smaller than what is of
	// interest.
	Equivalent
)

// Judgement is the answer to one question of a family.
type Judgement struct {
	// Estimate is Hodges–Lehmann's with its interval at the rule's level, on
	// the log scale.
	Estimate Interval
	// Student is the second opinion at the same level.
	Student Interval
	// P is the larger of the two tests' p-values, AdjustedP the same after
	// Holm's correction over the family.
	P, AdjustedP float64
	Outcome      Outcome
	// Split is set where one of the two methods sees a difference and the
	// other does not: a few blocks decide.
	Split bool
	// N is the number of values; Needed is, for Undecided, about how many
	// would settle it, never fewer than N+1.
	N, Needed int
}

// Rule is when to claim what.
type Rule struct {
	// Level of intervals and claims, 0.95: 5 % false claims over the family.
	Level float64
	// Interest is the smallest difference of interest, on the log scale.
	Interest float64
	// MinN is the fewest values that may carry a claim, at least 6.
	MinN int
}

// Judge answers a family of questions (each client against the baseline, in one
// metric) together, so that asking several does not make a false claim likelier
// (Holm 1979). families[i] are the log-ratios of question i.
//
// The order of the rule: too few values decide nothing; an interval at twice the
// error (90 % for 95 %: two one-sided tests) inside ±Interest is equivalence, even
// where a difference is certain, because it is of no interest; a difference is
// claimed if both tests, Holm-corrected, see it; all else is undecided.
func Judge(families [][]float64, r Rule) []Judgement {
	questions := make([]question, len(families))
	for i, d := range families {
		questions[i] = question{
			n:       len(d),
			sd:      StdDev(d),
			p:       max(SignedRank(d), StudentP(d)),
			rank:    func(level float64) Interval { return HodgesLehmann(d, level) },
			student: func(level float64) Interval { return Student(d, level) },
		}
	}
	return judge(questions, r)
}

// Shift is one question about two samples that are not paired: how far To lies
// above From.
type Shift struct{ From, To []float64 }

// JudgeShifts is [Judge] for questions whose two sides were measured apart, in two
// runs: the same rule, with the Mann–Whitney test in the place of the signed-rank
// test and Welch's t in the place of Student's. N is the smaller of the two sizes,
// Needed a size for both.
func JudgeShifts(family []Shift, r Rule) []Judgement {
	questions := make([]question, len(family))
	for i, s := range family {
		questions[i] = question{
			n: min(len(s.From), len(s.To)),
			// With n on either side, the variance of the difference is
			// (s² + t²)/n.
			sd:      math.Hypot(StdDev(s.From), StdDev(s.To)),
			p:       max(MannWhitney(s.From, s.To), WelchP(s.From, s.To)),
			rank:    func(level float64) Interval { return HodgesLehmannShift(s.From, s.To, level) },
			student: func(level float64) Interval { return Welch(s.From, s.To, level) },
		}
	}
	return judge(questions, r)
}

// question is what the rule needs to know of the data.
type question struct {
	n  int
	sd float64 // of the values whose mean is the difference, n of them
	p  float64 // the larger of the two tests'
	// rank and student are the two methods' intervals at a level.
	rank, student func(level float64) Interval
}

func judge(family []question, r Rule) []Judgement {
	js := make([]Judgement, len(family))
	for i, q := range family {
		js[i] = Judgement{N: q.n, Estimate: q.rank(r.Level), Student: q.student(r.Level), P: q.p}
	}
	holm(js)
	for i, q := range family {
		js[i].decide(q, r)
	}
	return js
}

// holm sets AdjustedP by Holm's step-down method.
func holm(js []Judgement) {
	order := make([]int, len(js))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(js[i].P, js[j].P) })
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, js[i].P*float64(len(js)-rank)))
		js[i].AdjustedP = worst
	}
}

func (j *Judgement) decide(q question, r Rule) {
	twoOneSided := 2*r.Level - 1
	j.Split = j.Estimate.Excludes(0) != j.Student.Excludes(0)
	switch {
	case j.N < r.MinN:
	case q.student(twoOneSided).Within(r.Interest) && q.rank(twoOneSided).Within(r.Interest):
		j.Outcome = Equivalent
		return
	case j.AdjustedP <= 1-r.Level && j.Estimate.Excludes(0) && j.Student.Excludes(0):
		j.Outcome = Lower
		if j.Estimate.Center > 0 {
			j.Outcome = Higher
		}
		return
	}
	j.Needed = max(BlocksNeeded(q.sd, r), j.N+1, r.MinN)
}

// maxBlocksNeeded stands for "more than anyone would run".
const maxBlocksNeeded = 100_000

// BlocksNeeded is the number of values of that standard deviation whose t
// interval is as narrow as ±Interest, so that either a difference of interest or
// its absence shows.
func BlocksNeeded(sd float64, r Rule) int {
	wanted := func(n int) float64 {
		return math.Pow(studentQuantile(float64(n-1), (1+r.Level)/2)*sd/r.Interest, 2)
	}
	// t quantiles fall with n, so wanted at n = ∞ is a lower bound to start at.
	least := wanted(maxBlocksNeeded)
	if !(least < maxBlocksNeeded) {
		return maxBlocksNeeded
	}
	n := max(r.MinN, int(least))
	for float64(n) < wanted(n) {
		n++
	}
	return n
}
