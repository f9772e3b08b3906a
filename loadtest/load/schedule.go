package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// schedule says when requests are due. It is a pure function of the index: nothing
// that happens during a run can move it.
type schedule interface {
	// due is when the i-th request is due, i = 0, 1, 2, … It never steps
	// back. What never is due is due at forever.
	due(i int64) time.Duration
	// before counts the requests that are due before t.
	before(t time.Duration) int64
}

// curve is a schedule between whose arrivals, too, every place has its time: x
// arrivals have come in at(x).
type curve interface {
	schedule
	at(x float64) time.Duration
}

// arrivals is a constant arrival schedule, in requests per second.
//
//	due(i) = i / rate
//
// Each due time is computed from zero, so rounding does not add up: after ten
// hours at 3/s the schedule is as exact as at the start.
type arrivals float64

// due never steps back, since division and multiplication round monotonically.
func (a arrivals) due(i int64) time.Duration { return a.at(float64(i)) }

func (a arrivals) at(x float64) time.Duration { return seconds(x / float64(a)) }

func (a arrivals) before(t time.Duration) int64 {
	return countBefore(a, t, t.Seconds()*float64(a))
}

// countBefore is the number of requests that s has due before t, given the
// estimate of a formula: that one is off by one at most, where it rounds.
func countBefore(s schedule, t time.Duration, estimate float64) int64 {
	if t <= 0 {
		return 0
	}
	n := int64(math.Ceil(estimate))
	for n > 0 && s.due(n-1) >= t {
		n--
	}
	for s.due(n) < t {
		n++
	}
	return n
}

// seconds is a time in seconds as a duration, forever if it is not finite.
func seconds(s float64) time.Duration {
	if !(s < forever.Seconds()) {
		return forever
	}
	return time.Duration(s * float64(time.Second))
}

// ramp is a schedule whose rate is a straight line between corners:
//
//	rate │      ___________
//	     │     ╱           ╲          N(t) = ∫ rate, and due(i) is where N(t) = i
//	     │____╱             ╲____
//	     └───────────────────────▶ t
//
// Where the rate is zero N stands still; due is then the end of the standstill.
type ramp struct{ legs []leg }

// leg is a ramp between two corners. Within it, s seconds from its start,
//
//	N = before + rate·s + slope·s²/2
type leg struct {
	stretch
	before float64 // arrivals up to its start
	slope  float64 // change of the rate, per second
}

func newRamp(ss []stretch) *ramp {
	r := &ramp{}
	n := 0.0
	for _, l := range ss {
		length := (l.to - l.from).Seconds()
		r.legs = append(r.legs, leg{stretch: l, before: n, slope: (l.end - l.start) / length})
		n += (l.start + l.end) / 2 * length
	}
	return r
}

func (r *ramp) due(i int64) time.Duration { return r.at(float64(i)) }

func (r *ramp) at(x float64) time.Duration {
	// The last leg that begins with no more than x arrivals behind it.
	k := sort.Search(len(r.legs), func(k int) bool { return r.legs[k].before > x }) - 1
	l := r.legs[k]
	n := x - l.before
	// The quadratic solved for s, in the form that loses no digits where the
	// slope is small and is right where it is zero.
	s := 0.0
	if n > 0 || l.start == 0 && l.end == 0 {
		s = 2 * n / (l.start + math.Sqrt(l.start*l.start+2*l.slope*n))
	}
	t := seconds(s)
	last := k == len(r.legs)-1
	if t == forever || l.from+t > l.to {
		// Rounding alone leads past the end of a leg, unless nothing follows.
		if last {
			return forever
		}
		return l.to
	}
	return l.from + t
}

func (r *ramp) before(t time.Duration) int64 {
	n := 0.0
	for _, l := range r.legs {
		if t <= l.from {
			break
		}
		s := (min(t, l.to) - l.from).Seconds()
		n = l.before + l.start*s + l.slope*s*s/2
	}
	return countBefore(r, t, n)
}

// drawn is a schedule that was drawn at random beforehand.
type drawn []time.Duration

// poisson draws a Poisson process with the mean of c, up to the last of the given
// moments. Up to each of them there are as many arrivals as c has, exactly: given
// their number, the arrivals of a Poisson process are uniform draws, put in order,
// and those are the partial sums of exponential gaps divided by the whole sum.
// The same seed gives the same arrivals.
func poisson(c curve, seed uint64, edges ...time.Duration) drawn {
	r := rand.New(rand.NewPCG(seed, 0x9015501))
	var d drawn
	from := int64(0)
	for _, edge := range edges {
		to := c.before(edge)
		n := int(to - from)
		sums := make([]float64, n+1)
		sum := 0.0
		for i := range sums {
			sum += r.ExpFloat64()
			sums[i] = sum
		}
		d = slices.Grow(d, n)
		for _, s := range sums[:n] {
			d = append(d, min(c.at(float64(from)+s/sum*float64(n)), edge-1))
		}
		from = to
	}
	return d
}

func (d drawn) due(i int64) time.Duration {
	if i >= int64(len(d)) {
		return forever
	}
	return d[i]
}

func (d drawn) before(t time.Duration) int64 {
	n, _ := slices.BinarySearch(d, t)
	return int64(n)
}
