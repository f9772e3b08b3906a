package report

import (
	"fmt"

	"gatebench/loadtest/result"
)

// failedShare is the share of failed requests from which on an arm's figures are
// those of failing, which may be cheap and quick, and no longer those of its work.
const failedShare = 0.01

// distrust is why figures of an arm must not be compared: too many of the requests
// behind them failed. "" if they may.
func (s measured) distrust(doc *result.Document, arm string) string {
	var requests, errors int64
	for _, t := range doc.Trials {
		if t.Arm == arm && t.Phase == s.metric.Phase && t.Profile == s.profile && t.Valid {
			requests, errors = requests+t.Requests, errors+t.Errors
		}
	}
	if float64(errors) <= failedShare*float64(requests) {
		return ""
	}
	return fmt.Sprintf("%s: %d of %s failed, so that this is the cost of failing", arm, errors, plural(int(requests), "request"))
}

// distrustFailures takes the verdict from every comparison of which one side mostly
// failed: who answers nothing is not better at it.
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
