package main

import (
	"context"
	"fmt"
	"math"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// doses are the arms of plans/dose.yaml beside the first, and what each burns, µs. The
// sentinel burns nothing.
//
// Each arm is alone, at a rate so low that every request finds gateway and load asleep:
// then a dose is all that differs. In a duet it is not: where one gateway takes longer,
// whom it answers sleeps more often, and waking costs the gateway that does it. Ten
// microseconds more work are fourteen more of CPU time there, which is true, and
// no measure of the measurement.
var doses = []struct {
	arm  string
	dose float64
}{{"0 µs (sentinel)", 0}, {"5 µs", 5}, {"10 µs", 10}, {"20 µs", 20}, {"50 µs", 50}}

const (
	cpuMetric  = "cpu_us_per_request"
	doseMetric = "solo_cpu_us_per_request"
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
	cpu := cpuByBlock(doc)
	for _, d := range doses {
		var apart []float64
		for block, base := range cpu[doc.Arms[0].Name] {
			if x, ok := cpu[d.arm][block]; ok {
				apart = append(apart, x-base)
			}
		}
		f := stats.HodgesLehmann(apart, level)
		if !f.Bounded {
			t.missing(d.arm, fmt.Errorf("%d blocks give no interval", len(apart)))
			continue
		}
		measured := fmt.Sprintf("%.2f µs [%.2f, %.2f], %d blocks", f.Center, f.Lo, f.Hi, len(apart))
		if d.dose == 0 {
			t.row(d.arm, measured, "0 inside", !f.Excludes(0))
			continue
		}
		t.row(d.arm, measured, fmt.Sprintf("%g ± %.3g µs", d.dose, tolerance*d.dose), math.Abs(f.Center-d.dose) <= tolerance*d.dose)
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

// cpuByBlock is the CPU time per request of every valid trial.
func cpuByBlock(doc *result.Document) map[string]map[int]float64 {
	cpu := map[string]map[int]float64{}
	for _, t := range doc.Trials {
		if x, ok := t.Metrics[doseMetric]; ok && t.Valid {
			if cpu[t.Arm] == nil {
				cpu[t.Arm] = map[int]float64{}
			}
			cpu[t.Arm][t.Block] = x
		}
	}
	return cpu
}

// lines fits, block by block, response = intercept + slope × dose by least squares. The
// response is the distance from the first arm.
func lines(doc *result.Document) (slopes, intercepts []float64) {
	cpu := cpuByBlock(doc)
	for block, floor := range cpu[doc.Arms[0].Name] {
		var xs, ys []float64
		for _, d := range doses {
			if y, ok := cpu[d.arm][block]; ok {
				xs, ys = append(xs, d.dose), append(ys, y-floor)
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
