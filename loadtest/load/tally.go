package load

import (
	"math"
	"time"
)

// tally is what became of requests, as far as their response time is concerned.
//
//	ok        answered, and every check passed: a time
//	censored  given up while they waited (timed out, cut, dropped): longer than that
//	errors    refused, reset, 500, …: no answer ever, a time without end
//	rejected  turned away without being tried: counted, and no part of the times
//
// A quantile over all of them cannot be flattered by quick errors nor by giving up
// early. Where its rank lies among those that have no time, all that is known is
// that it is at least the largest time seen.
type tally struct {
	ok, censored     distribution
	errors, rejected int64
}

func (t *tally) record(c class, d time.Duration) {
	switch c {
	case fine:
		t.ok.record(d)
	case timeout, cut:
		t.censored.record(d)
	case rejected:
		t.rejected++
	default:
		t.errors++
	}
}

func (t *tally) merge(o *tally) {
	t.ok.merge(&o.ok)
	t.censored.merge(&o.censored)
	t.errors += o.errors
	t.rejected += o.rejected
}

// count is of those that the times are over.
func (t *tally) count() int64 { return t.ok.count() + t.censored.count() + t.errors }

// closeEnough is when a value and a bound below it are the same figure: the
// precision that quantiles are promised with.
const closeEnough = 1.01

// times are the figures over all requests, nil if none of them has a time.
func (t *tally) times() *Times {
	var known distribution
	known.merge(&t.ok)
	known.merge(&t.censored)
	if known.count() == 0 {
		return nil
	}
	n := t.count()
	x := &Times{Mean: known.mean(), Min: millis(known.min), Max: millis(known.max)}
	if t.censored.count() > 0 {
		x.AtLeast = append(x.AtLeast, "mean")
		if t.censored.max >= t.ok.max {
			x.AtLeast = append(x.AtLeast, "max")
		}
	}
	for _, q := range x.quantiles(n) {
		rank := rankOf(q.q, n)
		low := known.ranked(min(rank, known.count()))
		*q.to = new(millis(low))
		if rank > t.ok.count() || float64(t.ok.ranked(rank)) > closeEnough*float64(low) {
			x.AtLeast = append(x.AtLeast, q.name)
		}
	}
	return x
}

// quantile is one that a summary shows.
type quantile struct {
	name string
	q    float64
	to   **float64
}

// fewForP999 is the fewest samples of which one lies beyond the p99.9.
const fewForP999 = 1000

// quantiles are those that n samples have.
func (x *Times) quantiles(n int64) []quantile {
	qs := []quantile{
		{"p50", .5, &x.P50}, {"p90", .9, &x.P90}, {"p95", .95, &x.P95}, {"p99", .99, &x.P99}, {"p99.9", .999, &x.P999},
	}
	if n < fewForP999 {
		return qs[:4]
	}
	return qs
}

// rankOf is the nearest rank of a quantile among n: the smallest that has a share
// of at least q at or below it.
func rankOf(q float64, n int64) int64 {
	return max(1, int64(math.Ceil(q*float64(n)-1e-9)))
}
