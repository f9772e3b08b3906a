package report

import (
	"fmt"
	"slices"

	"gatebench/loadtest/result"
)

// failedShare is the share of failed requests from which on an arm's figures are
// those of failing, which may be cheap and quick, and no longer those of its work.
const failedShare = 0.01

// distrust is why figures of an arm must not be compared: too many of the requests
// behind them failed, or some are no figures but lower bounds. "" if they may.
func (s measured) distrust(doc *result.Document, arm string) string {
	var requests, errors int64
	for _, t := range doc.Trials {
		if t.Arm == arm && t.Phase == s.metric.Phase && t.Profile == s.profile && t.Valid {
			requests, errors = requests+t.Requests, errors+t.Errors
		}
	}
	if float64(errors) <= failedShare*float64(requests) {
		return s.censored(doc, arm)
	}
	return fmt.Sprintf("%s: %d of %s failed, so that this is the cost of failing", arm, errors, plural(int(requests), "request"))
}

// censored is why an arm's figures are not all figures: in some trials so many
// requests were given up or never sent that of this one only a lower bound is known.
// What is left without those trials would flatter the arm. "" where all are known.
func (s measured) censored(doc *result.Document, arm string) string {
	bounds, of := 0, 0
	for _, t := range doc.Trials {
		if t.Arm != arm || !t.Valid || t.Phase != s.metric.Phase || t.Profile != s.profile {
			continue
		}
		of++
		if slices.Contains(t.AtLeast, s.metric.Name) {
			bounds++
		}
	}
	if bounds == 0 {
		return ""
	}
	return fmt.Sprintf("%s: in %d of %s so many requests had no answer that the %s is only known to be longer than they waited; compare the errors",
		arm, bounds, plural(of, "trial"), s.metric.Title)
}

// distrustFailures takes the verdict from every comparison of which one side mostly
// failed, or is not known: who answers nothing is not better at it.
func (s measured) distrustFailures(doc *result.Document, cs []result.Comparison) []result.Comparison {
	for i := range cs {
		c := &cs[i]
		for _, arm := range []string{c.Baseline, c.Arm} {
			if why := s.distrust(doc, arm); why != "" && c.Verdict != result.NotValid {
				c.Verdict, c.BlocksNeeded, c.Why = result.NotValid, 0, why
			}
		}
	}
	return cs
}
