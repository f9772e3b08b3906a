package report

import (
	"fmt"
	"math"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// How much the typical response time may change from the first half of a window to the
// second, over all trials of a profile together: more is worth a word, and still more is
// no steady state, of which a quantile says nothing.
const (
	steadyWarn = 0.02
	steadyVoid = 0.05
)

// halfChange is that change, of all arms alike; ok is false where it is small, or not
// sure, or the load changes on purpose.
func halfChange(doc *result.Document, profile string) (share float64, ok bool) {
	var logs []float64
	for _, t := range doc.Trials {
		if t.Phase != result.Solo || t.Profile != profile || !t.Valid {
			continue
		}
		if len(t.Steps) > 0 || isBroken(doc, profile) {
			return 0, false
		}
		if change, read := t.Gates[gate.Steady]; read && change > -1 {
			logs = append(logs, math.Log1p(change))
		}
	}
	iv := stats.HodgesLehmann(logs, sentinelLevel)
	share = math.Expm1(iv.Center)
	return share, math.Abs(share) > steadyWarn && iv.Excludes(0) && stats.Student(logs, sentinelLevel).Excludes(0)
}

// unsteady is why a profile's response times are not to be compared, "" if they are.
func (s measured) unsteady(doc *result.Document) string {
	if s.metric.Phase != result.Solo {
		return ""
	}
	if share, ok := halfChange(doc, s.profile); ok && math.Abs(share) > steadyVoid {
		return unsteadySentence(s.profile, share)
	}
	return ""
}

func unsteadySentence(profile string, share float64) string {
	return fmt.Sprintf("profile %s is not steady: response times change by %s %% from the first half of the window to the second; a longer warm-up may help", profile, signed(share))
}
