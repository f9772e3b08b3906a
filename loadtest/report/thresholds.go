package report

import (
	"cmp"
	"fmt"
	"math"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
	"gatebench/loadtest/threshold"
)

// Check holds every arm of a concluded document against the thresholds and keeps
// the answers in doc. The sentinel is no arm of its own here: it is the baseline
// once more.
//
// An absolute bound is held against the median over blocks, the share of failed
// requests against the failures of all valid trials of a profile. A bound on the
// ratio to the baseline is missed only where the ratio's whole interval lies beyond
// it: noise alone must not stop a build. Where requests failed, a ratio says
// nothing, and a bound on errors belongs beside it.
func Check(doc *result.Document, thresholds []threshold.Threshold) {
	doc.Thresholds = nil
	for _, t := range thresholds {
		m, _ := result.MetricNamed(t.Metric)
		for _, profile := range profiles(doc, phaseOf(doc, t, m)) {
			s := measure(doc, m, profile)
			for i, a := range doc.Arms {
				if a.SentinelOf != "" || a.Floor || t.Baseline && i == 0 {
					continue
				}
				c := result.Threshold{Arm: a.Name, Threshold: t.String(), Metric: t.Metric, Profile: profile}
				if t.Baseline {
					c.Baseline = doc.Arms[0].Name
				}
				switch {
				case t.Metric == threshold.Errors:
					holdErrors(&c, t, doc)
				case t.Baseline:
					s.holdRatio(&c, t, doc)
				default:
					s.hold(&c, t, doc)
				}
				doc.Thresholds = append(doc.Thresholds, c)
			}
		}
	}
}

// phaseOf is where a bounded figure is measured: errors under the loads that the
// plan's profiles ask for, and under the duet's only if there is no other.
func phaseOf(doc *result.Document, t threshold.Threshold, m result.Metric) result.Phase {
	switch {
	case t.Metric != threshold.Errors:
		return m.Phase
	case len(profiles(doc, result.Solo)) > 0:
		return result.Solo
	default:
		return result.Duet
	}
}

// settle says whether a figure keeps the bound.
func settle(c *result.Threshold, t threshold.Threshold, x float64) {
	c.Value, c.Outcome = &x, result.Missed
	if t.Holds(x) {
		c.Outcome = result.Met
	}
}

func unmeasured(c *result.Threshold) {
	c.Outcome, c.Why = result.Unmeasured, "no valid trial measured it"
}

// hold asks the median over blocks. Of lower bounds among them it takes their value:
// a median that is too long even so is too long.
func (s measured) hold(c *result.Threshold, t threshold.Threshold, doc *result.Document) {
	values := valuesOf(doc, s.metric, s.profile, func(result.Trial) bool { return true })
	x := median(values[c.Arm])
	if x == nil {
		unmeasured(c)
		return
	}
	settle(c, t, *x)
	if why := s.censored(doc, c.Arm); why != "" && c.Outcome == result.Met {
		c.Outcome, c.Why = result.Open, why
	}
}

func holdErrors(c *result.Threshold, t threshold.Threshold, doc *result.Document) {
	var requests, errors int64
	for _, trial := range doc.Trials {
		if trial.Arm == c.Arm && trial.Profile == c.Profile && trial.Valid {
			requests, errors = requests+trial.Requests, errors+trial.Errors
		}
	}
	if requests == 0 {
		unmeasured(c)
		return
	}
	settle(c, t, float64(errors)/float64(requests))
}

// holdRatio asks both ends of the interval: where they disagree the data do not
// say. Where two copies of one arm differ, no ratio of this metric says anything.
func (s measured) holdRatio(c *result.Threshold, t threshold.Threshold, doc *result.Document) {
	d := s.logRatios(c.Arm, c.Baseline)
	if len(d) == 0 {
		unmeasured(c)
		return
	}
	iv := stats.HodgesLehmann(d, s.rule().Level)
	settle(c, t, math.Exp(iv.Center))
	lo, hi := t.Holds(math.Exp(iv.Lo)), t.Holds(math.Exp(iv.Hi))
	noise := s.sentinel(doc)
	failing := cmp.Or(s.distrust(doc, c.Baseline), s.distrust(doc, c.Arm))
	switch {
	case failing != "":
		c.Outcome, c.Why = result.Open, failing
	case noise.differs:
		c.Outcome, c.Why = result.Open, noise.sentence(s.metric)
	case !iv.Bounded:
		c.Outcome, c.Why = result.Open, fmt.Sprintf("%s cannot bound the ratio, %d are the least", plural(len(d), "block"), minClaim)
	case lo != hi:
		c.Outcome, c.Why = result.Open, fmt.Sprintf("the interval [%s, %s] reaches to both sides", signed(math.Expm1(iv.Lo)), signed(math.Expm1(iv.Hi)))
	}
}

// MissedThresholds lists what was not kept: missed for sure, or not measured at
// all.
func MissedThresholds(doc *result.Document) []result.Threshold {
	var missed []result.Threshold
	for _, c := range doc.Thresholds {
		if c.Outcome == result.Missed || c.Outcome == result.Unmeasured {
			missed = append(missed, c)
		}
	}
	return missed
}

// held is a threshold's value as people read it.
func held(c result.Threshold) string {
	if c.Value == nil {
		return "no data"
	}
	m, known := result.MetricNamed(c.Metric)
	switch {
	case !known:
		return fmt.Sprintf("%s %%", figure(*c.Value*100))
	case c.Baseline != "":
		return signed(*c.Value-1) + " %"
	case m.Unit == "B":
		return figure(*c.Value/(1<<20)) + " MiB"
	case m.Unit == "":
		return figure(*c.Value)
	}
	return figure(*c.Value) + " " + m.Unit
}
