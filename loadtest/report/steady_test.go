package report

import (
	"strings"
	"testing"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/result"
)

func TestALoadThatIsNotSteadyIsNotCompared(t *testing.T) {
	for _, c := range []struct {
		change       float64
		warned, void bool
	}{{0.004, false, false}, {-0.03, true, false}, {0.08, true, true}} {
		d := made(8, 0.01, map[string]float64{"fasthttp": 0.5})
		for i := range d.Trials {
			wobble := 0.002 * float64(i%5-2)
			d.Trials[i].Gates = map[string]float64{gate.Steady: c.change + wobble}
		}
		Conclude(d)
		if warned := strings.Contains(strings.Join(d.Warnings, "\n"), "not steady"); warned != c.warned {
			t.Errorf("%+v: warnings %q", c, d.Warnings)
		}
		for _, got := range d.Comparisons {
			m, _ := result.MetricNamed(got.Metric)
			if void := got.Verdict == result.NotValid; void != (c.void && m.Phase == result.Solo) {
				t.Errorf("%+v: %s of %s is %s", c, got.Metric, got.Arm, got.Verdict)
			}
		}
	}
}

func TestARampIsNotAskedToBeSteady(t *testing.T) {
	d := made(8, 0.01, nil)
	for i := range d.Trials {
		d.Trials[i].Gates = map[string]float64{gate.Steady: 0.5 + 0.001*float64(i%3)}
		if d.Trials[i].Phase == result.Solo {
			d.Trials[i].Steps = []result.Step{{}, {}}
		}
	}
	Conclude(d)
	for _, c := range d.Comparisons {
		if c.Verdict == result.NotValid {
			t.Errorf("%s of %s: %s", c.Metric, c.Arm, c.Why)
		}
	}
}
