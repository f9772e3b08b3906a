// Package report says what an experiment shows. It goes in three steps, each a
// value: [Conclude] turns trials into comparisons and a validity, [Summarize] turns
// the document into what a reader wants to know in the order of asking, and the
// renderers ([Text]) only lay that out. The order: is it valid, which client, by
// how much and how sure, why, what failed.
//
// It measures nothing and knows no client by name. The trap: figures of trials are
// shown as medians over blocks, but every claim rests on the paired ratios.
package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// The rule of every claim.
const (
	level    = 0.95
	minClaim = 6 // blocks: below, the exact signed-rank test cannot reach 5 %

	// sentinelLevel is how certain the sentinel must be that it differs from
	// its twin before nothing else is believed.
	sentinelLevel = 0.99

	// errorShare is the share of failed requests from which on times say
	// little: the fast failures are among them.
	errorShare = 0.001
)

// Conclude fills in doc's comparisons, validity and the warnings that belong to
// them, from its trials alone.
//
// Every judged metric (see [result.Metrics]) of every profile is one family: each
// arm against the first one, block by block; blocks in which one of the two is void
// are left out. The sentinel is compared too, outside the family: where it differs
// from its twin, the experiment sees differences that are not there, and that
// metric is not valid.
func Conclude(doc *result.Document) {
	doc.Comparisons = []result.Comparison{}
	doc.InvalidReasons = nil
	doc.AboveFloor = aboveFloor(doc)
	for _, s := range series(doc) {
		doc.Comparisons = append(doc.Comparisons, s.distrustFailures(doc, s.compare(doc))...)
	}
	doc.InvalidReasons = invalid(doc)
	doc.Valid = len(doc.InvalidReasons) == 0
	doc.Warnings = append(doc.Warnings, doubts(doc)...)
}

// measured is one metric in one profile: by arm and block, the figure of the trial.
type measured struct {
	metric  result.Metric
	profile string
	figures map[string]map[int]float64
	// level is the confidence of intervals and claims, 0 for the usual one.
	level float64
}

// measure takes what a document has of a metric in a profile.
func measure(doc *result.Document, m result.Metric, profile string) measured {
	return measured{metric: m, profile: profile, figures: figures(doc, m, profile), level: levelOf(doc)}
}

// levelOf is that of a whole document, 0 for the usual one.
func levelOf(doc *result.Document) float64 {
	if doc.Precision == nil {
		return 0
	}
	return doc.Precision.Level
}

// series lists what is judged and was measured at least once, primary metrics
// first, profiles in the order of the trials. Where one phase gave figures, another
// of which every trial is void stays in the list: a reader must see that its metrics
// are missing.
func series(doc *result.Document) []measured {
	some := slices.ContainsFunc(doc.Trials, func(t result.Trial) bool { return t.Valid })
	var all []measured
	for _, m := range result.Metrics {
		if m.Interest == 0 {
			continue
		}
		for _, profile := range profiles(doc, m.Phase) {
			if isBroken(doc, profile) {
				continue // see [Outage]
			}
			s := measure(doc, m, profile)
			if len(s.figures) > 0 || some && !usable(doc, m.Phase, profile) {
				all = append(all, s)
			}
		}
	}
	return all
}

func profiles(doc *result.Document, phase result.Phase) []string {
	var names []string
	for _, t := range doc.Trials {
		if t.Phase == phase && !slices.Contains(names, t.Profile) {
			names = append(names, t.Profile)
		}
	}
	return names
}

// usable reports whether a phase of a profile has a valid trial.
func usable(doc *result.Document, phase result.Phase, profile string) bool {
	return slices.ContainsFunc(doc.Trials, func(t result.Trial) bool {
		return t.Valid && t.Phase == phase && t.Profile == profile
	})
}

// figures are the values of m in valid trials. A lower bound is no value: see
// [measured.censored].
func figures(doc *result.Document, m result.Metric, profile string) map[string]map[int]float64 {
	return valuesOf(doc, m, profile, func(t result.Trial) bool { return !slices.Contains(t.AtLeast, m.Name) })
}

// valuesOf are those of the valid trials that take part.
func valuesOf(doc *result.Document, m result.Metric, profile string, takesPart func(result.Trial) bool) map[string]map[int]float64 {
	byArm := map[string]map[int]float64{}
	for _, t := range doc.Trials {
		v, ok := t.Metrics[m.Name]
		if !ok || !takesPart(t) || !t.Valid || t.Phase != m.Phase || t.Profile != profile {
			continue
		}
		if byArm[t.Arm] == nil {
			byArm[t.Arm] = map[int]float64{}
		}
		byArm[t.Arm][t.Block] = v
	}
	return byArm
}

// logRatios pairs arm with baseline by block.
func (s measured) logRatios(arm, baseline string) []float64 {
	var a, b []float64
	for _, block := range slices.Sorted(maps.Keys(s.figures[arm])) {
		if base, ok := s.figures[baseline][block]; ok {
			a, b = append(a, base), append(b, s.figures[arm][block])
		}
	}
	return stats.LogRatios(a, b)
}

// contenders are the arms that are held against the baseline: all but its copy and
// the floor.
func contenders(doc *result.Document) []result.Arm {
	var arms []result.Arm
	for i, a := range doc.Arms {
		if i > 0 && a.SentinelOf == "" && !a.Floor {
			arms = append(arms, a)
		}
	}
	return arms
}

// compare judges every arm but the baseline and the floor.
func (s measured) compare(doc *result.Document) []result.Comparison {
	if len(doc.Arms) == 0 {
		return nil
	}
	baseline := doc.Arms[0].Name
	rule := s.rule()
	var family [][]float64
	for _, a := range contenders(doc) {
		family = append(family, s.logRatios(a.Name, baseline))
	}
	judged := stats.Judge(family, rule)
	noise := s.sentinel(doc)

	var cs []result.Comparison
	for _, a := range doc.Arms[1:] {
		if a.Floor {
			continue
		}
		c := result.Comparison{Arm: a.Name, Baseline: baseline, Profile: s.profile, Metric: s.metric.Name, Level: rule.Level}
		if a.SentinelOf != "" {
			j := stats.Judge([][]float64{s.logRatios(a.Name, baseline)}, rule)[0]
			fill(&c, j, s.metric)
		} else {
			fill(&c, judged[0], s.metric)
			judged = judged[1:]
		}
		if pairs := s.pairs(doc, a.Name); pairs.Spoiled() {
			c.Verdict, c.BlocksNeeded, c.Why = result.NotValid, 0, tooManyVoid(s.metric, pairs)
		} else if noise.differs {
			c.Verdict, c.BlocksNeeded, c.Why = result.NotValid, 0, noise.sentence(s.metric)
		} else if why := s.unsteady(doc); why != "" {
			c.Verdict, c.BlocksNeeded, c.Why = result.NotValid, 0, why
		} else if claimed(c.Verdict) && a.SentinelOf == "" && math.Abs(math.Log(*c.Ratio)) < noise.half {
			c.Why = fmt.Sprintf("smaller than what the sentinel resolves, ±%s", percent(math.Expm1(noise.half)))
		}
		cs = append(cs, c)
	}
	return cs
}

func claimed(v result.Verdict) bool { return v == result.Better || v == result.Worse }

// noise is what the sentinel says of one metric.
type noise struct {
	sentinel string
	// differs is set where it is as good as certain that two copies of the
	// same arm differ.
	differs bool
	// half is the half-width of the sentinel's interval, on the log scale: the
	// resolution of the experiment; 0 if unknown.
	half float64
}

func (s measured) sentinel(doc *result.Document) noise {
	for _, a := range doc.Arms {
		if a.SentinelOf == "" {
			continue
		}
		d := s.logRatios(a.Name, a.SentinelOf)
		n := noise{sentinel: a.Name}
		// Below 8 blocks the exact test bounds nothing at this level, and Student's
		// decides alone: a claim never goes unwatched.
		exact := stats.HodgesLehmann(d, sentinelLevel)
		n.differs = (exact.Excludes(0) || !exact.Bounded) && stats.Student(d, sentinelLevel).Excludes(0)
		if iv := stats.HodgesLehmann(d, s.rule().Level); iv.Bounded {
			n.half = (iv.Hi - iv.Lo) / 2
		}
		return n
	}
	return noise{}
}

func (n noise) sentence(m result.Metric) string {
	return fmt.Sprintf("%s: the sentinel %q differs from its twin, so this machine shows differences that are not there", m.Title, n.sentinel)
}

// fill takes over a judgement, from the log scale.
func fill(c *result.Comparison, j stats.Judgement, m result.Metric) {
	c.Blocks = j.N
	if j.N > 0 {
		c.Ratio = new(math.Exp(j.Estimate.Center))
	}
	if j.Estimate.Bounded {
		c.Lo, c.Hi = new(math.Exp(j.Estimate.Lo)), new(math.Exp(j.Estimate.Hi))
	}
	lower := result.Worse
	higher := result.Better
	if m.LowerIsBetter {
		lower, higher = higher, lower
	}
	switch j.Outcome {
	case stats.Lower:
		c.Verdict = lower
	case stats.Higher:
		c.Verdict = higher
	case stats.Equivalent:
		c.Verdict = result.NoDifference
	case stats.Undecided:
		c.Verdict, c.BlocksNeeded = result.CannotTell, j.Needed
		switch {
		case j.N == 0:
			c.Why = "no data: no block has both arms"
		case j.N < minClaim:
			c.Why = fmt.Sprintf("%d blocks cannot carry a claim, %d are the least", j.N, minClaim)
		case j.Split:
			c.Why = "a few blocks decide: only one of the two tests sees a difference"
		}
	}
}

// invalid lists what forbids any conclusion.
func invalid(doc *result.Document) []string {
	var reasons []string
	usable := 0
	for _, t := range doc.Trials {
		if t.Valid {
			usable++
		}
	}
	if usable == 0 {
		return []string{"no data: not a single trial is valid"}
	}
	// The first judged metric is the experiment's primary one.
	if s := series(doc); len(s) > 0 {
		if blocks := gate.Phase(doc, s[0].metric.Phase, s[0].profile); blocks.Spoiled() {
			reasons = append(reasons, tooManyVoid(s[0].metric, blocks))
		}
		if n := s[0].sentinel(doc); n.differs {
			reasons = append(reasons, n.sentence(s[0].metric))
		}
	}
	return reasons
}

// pairs counts the blocks that arm and baseline could be compared in.
func (s measured) pairs(doc *result.Document, arm string) gate.Blocks {
	return gate.Pairs(doc, s.metric.Phase, s.profile, arm, doc.Arms[0].Name)
}

func tooManyVoid(m result.Metric, b gate.Blocks) string {
	return fmt.Sprintf("%s: %d of %d blocks are void, and more than a fifth spoil the comparison", m.Title, b.Void, b.Of)
}

// doubts are what a reader should know although it forbids nothing.
func doubts(doc *result.Document) []string {
	var ds []string
	if doc.Interrupted {
		ds = append(ds, "the run was interrupted: what follows rests on the blocks that were done")
	}
	for i, s := range series(doc) {
		if i == 0 {
			continue // it forbids
		}
		if blocks := gate.Phase(doc, s.metric.Phase, s.profile); blocks.Spoiled() {
			ds = append(ds, tooManyVoid(s.metric, blocks))
		}
		if n := s.sentinel(doc); n.differs {
			ds = append(ds, n.sentence(s.metric))
		}
	}
	ds = append(ds, diagnostics(doc)...)
	for _, a := range doc.Arms {
		requests, errors := counts(doc, a.Name, func(t result.Trial) bool { return !isBroken(doc, t.Profile) })
		if requests > 0 && float64(errors) > errorShare*float64(requests) {
			ds = append(ds, fmt.Sprintf("%s: %d of %d requests failed, so its response times say little", a.Name, errors, requests))
		}
	}
	return ds
}

// counts adds an arm's requests over those of its trials.
func counts(doc *result.Document, arm string, of func(result.Trial) bool) (requests, errors int64) {
	for _, t := range doc.Trials {
		if t.Arm == arm && of(t) {
			requests, errors = requests+t.Requests, errors+t.Errors
		}
	}
	return requests, errors
}
