package main

import (
	"context"
	"fmt"
	"math"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// doses are the arms of plans/dose.yaml beside the first, and what each burns more than
// it, µs. The sentinel burns as much.
//
// All arms are measured at once, since the speed of the processor drifts by more than a
// dose from one trial to the next. And all burn a hundred microseconds besides, so that
// whoever waits for an answer is asleep in every arm: without that a slower gateway also
// pays for waking those who would not have slept.
var doses = []struct {
	arm  string
	dose float64
}{{"0 µs (sentinel)", 0}, {"5 µs", 5}, {"10 µs", 10}, {"20 µs", 20}, {"50 µs", 50}}

const (
	cpuMetric = "cpu_us_per_request"
	// burnedMetric is what a gateway burnt, by its own clock: a fixed number of rounds
	// takes longer while the other thread of its core works.
	burnedMetric = "burned_us_per_request"
)

// dose burns known CPU times and looks for them: each by itself, block by block against
// the arm without one, and all of them as a line.
func (v *verdictTest) dose(ctx context.Context, t *table) error {
	t.section("Dose and response: 5 to 50 µs of CPU time burnt on every request")
	doc, err := v.run(ctx, "dose", v.seed)
	if err != nil {
		return err
	}
	judgeDoses(t, doc)
	return nil
}

const tolerance = 0.05 // of a dose, and of the slope

func judgeDoses(t *table, doc *result.Document) {
	if !doc.Valid {
		t.row("validity", fmt.Sprint(doc.InvalidReasons), "valid", false)
	}
	for i, d := range doses {
		var shares, apart []float64
		for _, by := range responses(doc) {
			switch p := by[i]; {
			case !p.ok:
			case d.dose == 0: // which burns a little more or less all the same
				apart = append(apart, p.response-p.dose)
			default:
				apart, shares = append(apart, p.response), append(shares, p.response/p.dose)
			}
		}
		more := stats.HodgesLehmann(apart, level)
		if !more.Bounded {
			t.missing(d.arm, fmt.Errorf("%d blocks give no interval", len(apart)))
			continue
		}
		measured := fmt.Sprintf("%.2f µs [%.2f, %.2f], %d blocks", more.Center, more.Lo, more.Hi, len(apart))
		switch f := stats.HodgesLehmann(shares, level); {
		case d.dose == 0:
			t.row(d.arm, measured, "0 inside", !more.Excludes(0))
		case i == len(doses)-1:
			t.row(d.arm, fmt.Sprintf("%s; %.3f [%.3f, %.3f] of what was burnt", measured, f.Center, f.Lo, f.Hi),
				fmt.Sprintf("1 ± %.2f of it", tolerance), math.Abs(f.Center-1) <= tolerance)
		default: // of these the line below judges: a twentieth of 5 µs is less than the noise
			t.told(d.arm, fmt.Sprintf("%s; %.3f [%.3f, %.3f] of what was burnt", measured, f.Center, f.Lo, f.Hi), "", "")
		}
	}
	slopes, intercepts := lines(doc)
	slope, intercept := stats.HodgesLehmann(slopes, level), stats.HodgesLehmann(intercepts, level)
	t.row("slope of response over dose", fmt.Sprintf("%.3f [%.3f, %.3f]", slope.Center, slope.Lo, slope.Hi),
		fmt.Sprintf("1.00 ± %.2f", tolerance), slope.Bounded && math.Abs(slope.Center-1) <= tolerance)
	t.row("intercept", fmt.Sprintf("%.2f µs [%.2f, %.2f]", intercept.Center, intercept.Lo, intercept.Hi),
		"0 inside", intercept.Bounded && !intercept.Excludes(0))
}

// level is the confidence of intervals, as in the program's reports.
const level = 0.95

// taken is a dose as it was burnt and the CPU time that it was answered by, each as the
// distance from the first arm, µs.
type taken struct {
	dose, response float64
	ok             bool
}

// responses are those of every block, in the order of doses.
func responses(doc *result.Document) map[int][]taken {
	figures := map[int]map[string]taken{}
	for _, t := range doc.Trials {
		cpu, ok := t.Metrics[cpuMetric]
		burned, timed := t.Metrics[burnedMetric]
		if !ok || !timed || !t.Valid {
			continue
		}
		if figures[t.Block] == nil {
			figures[t.Block] = map[string]taken{}
		}
		figures[t.Block][t.Arm] = taken{burned, cpu, true}
	}
	by := map[int][]taken{}
	for block, arms := range figures {
		first := arms[doc.Arms[0].Name]
		if !first.ok {
			continue
		}
		for _, d := range doses {
			x := arms[d.arm]
			by[block] = append(by[block], taken{x.dose - first.dose, x.response - first.response, x.ok})
		}
	}
	return by
}

// lines fits, block by block, response = intercept + slope × dose by least squares.
func lines(doc *result.Document) (slopes, intercepts []float64) {
	for _, by := range responses(doc) {
		var xs, ys []float64
		for _, p := range by {
			if p.ok {
				xs, ys = append(xs, p.dose), append(ys, p.response)
			}
		}
		if len(xs) == len(doses) {
			a, b := leastSquares(xs, ys)
			intercepts, slopes = append(intercepts, a), append(slopes, b)
		}
	}
	return slopes, intercepts
}

// leastSquares is the line a + b·x through points of which two differ in x.
func leastSquares(xs, ys []float64) (a, b float64) {
	n := float64(len(xs))
	var sx, sy float64
	for i := range xs {
		sx, sy = sx+xs[i], sy+ys[i]
	}
	var sxx, sxy float64
	for i := range xs {
		sxx += (xs[i] - sx/n) * (xs[i] - sx/n)
		sxy += (xs[i] - sx/n) * (ys[i] - sy/n)
	}
	b = sxy / sxx
	return sy/n - b*sx/n, b
}
