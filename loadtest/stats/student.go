package stats

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Student returns the mean of d and its t interval at the level. One value bounds
// nothing; values that are all equal bound it to a point.
func Student(d []float64, level float64) Interval {
	if len(d) == 0 {
		return Interval{}
	}
	mean := moremath.Mean(d)
	if len(d) == 1 {
		return Interval{Center: mean, Lo: mean, Hi: mean}
	}
	half := studentQuantile(float64(len(d)-1), (1+level)/2) * StdDev(d) / math.Sqrt(float64(len(d)))
	return Interval{Center: mean, Lo: mean - half, Hi: mean + half, Bounded: true}
}

// StudentP returns the two-sided p-value of the one-sample t test that the mean of
// d is 0. 1 where there is no saying: fewer than two values, or all of them 0.
func StudentP(d []float64) float64 {
	if len(d) < 2 {
		return 1
	}
	mean, sd := moremath.Mean(d), StdDev(d)
	switch {
	case mean == 0:
		return 1
	case sd == 0:
		return 0
	}
	t := math.Abs(mean) / (sd / math.Sqrt(float64(len(d))))
	return 2 * moremath.TDist{V: float64(len(d) - 1)}.CDF(-t)
}

// StdDev is the sample standard deviation (n−1), 0 below two values.
func StdDev(d []float64) float64 {
	if len(d) < 2 {
		return 0
	}
	return moremath.StdDev(d)
}

// studentQuantile is the p-quantile, p > 0.5, of Student's t with v degrees of
// freedom. Newton's steps from 0: right of 0 the distribution function is concave,
// so they rise towards the root and never pass it. The library's own inverse
// bisects, which is a hundred times slower.
func studentQuantile(v, p float64) float64 {
	t := moremath.TDist{V: v}
	x := 0.0
	for range 100 {
		step := (p - t.CDF(x)) / t.PDF(x)
		if x += step; step < 1e-12*x {
			break
		}
	}
	return x
}
