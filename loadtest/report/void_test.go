package report

import (
	"testing"

	"gatebench/loadtest/result"
)

// TestVoidTrialsSpoilTheirOwnPhase: response times that were disturbed take nothing
// from CPU per request, one arm's take nothing from another's, and the primary
// metric's phase decides over the whole.
func TestVoidTrialsSpoilTheirOwnPhase(t *testing.T) {
	voided := func(phase result.Phase, arm string, blocks int) *result.Document {
		d := made(10, 0.02, map[string]float64{"fasthttp": 0.6})
		for i := range d.Trials {
			if tr := &d.Trials[i]; tr.Phase == phase && tr.Arm == arm && tr.Block < blocks {
				tr.Valid, tr.VoidReason = false, "the machine was busy"
			}
		}
		Conclude(d)
		return d
	}
	verdict := func(d *result.Document, arm, metric string) result.Verdict {
		for _, c := range d.Comparisons {
			if c.Arm == arm && c.Metric == metric {
				return c.Verdict
			}
		}
		return ""
	}
	const cpu, p99 = "cpu_us_per_request", "response_time_p99"
	for _, c := range []struct {
		name            string
		doc             *result.Document
		valid           bool
		arm, metric     string
		want            result.Verdict
		others, another result.Verdict // of fasthttp, in metric and in the other one
	}{
		{"a fifth is allowed", voided(result.Solo, "resty", 2), true, "resty", p99, result.NoDifference, result.Better, result.Better},
		{"solo trials of one arm", voided(result.Solo, "resty", 3), true, "resty", p99, result.NotValid, result.Better, result.Better},
		{"solo trials of the baseline", voided(result.Solo, "net/http", 3), true, "resty", p99, result.NotValid, result.NotValid, result.Better},
		{"duets of one arm", voided(result.Duet, "resty", 3), false, "resty", cpu, result.NotValid, result.Better, result.Better},
		{"every duet of the baseline", voided(result.Duet, "net/http", 10), false, "resty", cpu, result.NotValid, result.NotValid, result.Better},
	} {
		other := map[string]string{cpu: p99, p99: cpu}[c.metric]
		if c.doc.Valid != c.valid {
			t.Errorf("%s: valid %v, reasons %q", c.name, c.doc.Valid, c.doc.InvalidReasons)
		}
		if got := verdict(c.doc, c.arm, c.metric); got != c.want {
			t.Errorf("%s: %s is %q in %s", c.name, c.arm, got, c.metric)
		}
		if got := verdict(c.doc, "fasthttp", c.metric); got != c.others {
			t.Errorf("%s: fasthttp is %q in %s", c.name, got, c.metric)
		}
		if got := verdict(c.doc, "fasthttp", other); got != c.another {
			t.Errorf("%s: fasthttp is %q in %s", c.name, got, other)
		}
	}
}
