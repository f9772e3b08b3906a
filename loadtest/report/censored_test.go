package report

import (
	"strings"
	"testing"

	"gatebench/loadtest/result"
	"gatebench/loadtest/threshold"
)

// censor makes the p99 of an arm's solo trials from a block on a lower bound.
func censor(d *result.Document, arm string, from int) {
	for i := range d.Trials {
		if t := &d.Trials[i]; t.Arm == arm && t.Phase == result.Solo && t.Block >= from {
			t.Metrics["response_time_p99"], t.AtLeast = 100, []string{"response_time_p99"}
		}
	}
}

// Of an arm that leaves requests without an answer, the blocks in which it did not
// are the better ones: no ratio is made of what is left.
func TestALowerBoundIsNotCompared(t *testing.T) {
	d := made(8, 0.02, map[string]float64{"fasthttp": 0.5})
	censor(d, "fasthttp", 7)
	Conclude(d)
	for _, c := range d.Comparisons {
		if c.Arm != "fasthttp" {
			if c.Verdict == result.NotValid {
				t.Errorf("%s of %s is not valid: %s", c.Metric, c.Arm, c.Why)
			}
			continue
		}
		if censored := c.Metric == "response_time_p99"; (c.Verdict == result.NotValid) != censored {
			t.Errorf("%s: %s %s", c.Metric, c.Verdict, c.Why)
		} else if censored && (!strings.Contains(c.Why, "in 1 of 8 trials") || c.Blocks != 7) {
			t.Errorf("over %d blocks: %s", c.Blocks, c.Why)
		}
	}
}

func TestALowerBoundCanMissAThreshold(t *testing.T) {
	for _, c := range []struct {
		from int
		want result.Attainment
	}{{8, result.Met}, {7, result.Open}, {2, result.Missed}} {
		d := made(8, 0.02, nil)
		censor(d, "fasthttp", c.from)
		Conclude(d)
		bound, err := threshold.Parse("p99", "< 50ms")
		if err != nil {
			t.Fatal(err)
		}
		Check(d, []threshold.Threshold{bound})
		for _, got := range d.Thresholds {
			want := result.Met
			if got.Arm == "fasthttp" {
				want = c.want
			}
			if got.Outcome != want {
				t.Errorf("lower bounds from block %d on, %s: %s, want %s", c.from, got.Arm, got.Outcome, want)
			}
		}
	}
}
