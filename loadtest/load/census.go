package load

import (
	"math"
	"math/rand/v2"
	"time"
)

// Little's law says that the mean number of requests in flight is their rate times
// their mean service time. The engine has the right-hand side from the two ends of
// every request, and looks at the left-hand side itself, at random moments: an
// engine that lost requests, recorded some twice or read its clock wrongly would
// not find them equal.
const (
	censusLooks = 400 // in a run
	censusGap   = 50 * time.Millisecond
	censusFloor = 5 * time.Millisecond

	// censusBatches give the error of a mean of looks that resemble their
	// neighbours.
	censusBatches = 20
	// littleWarn and littleVoid are shares of the requests in flight; a
	// difference of fewer standard errors than littleSure is chance.
	littleWarn, littleVoid = 0.02, 0.05
	littleSure             = 5
	// littleFloor is the fewest requests in flight that are worth a verdict:
	// with less than one, whether the machine shows the request or the look at
	// it first decides.
	littleFloor = 2.0

	// riseBatches make a straight line of looks; the t of ten of them is beyond
	// riseSure in one line of two thousand that does not rise.
	riseBatches = 10
	riseSure    = 5.0
	// riseShare of what was due in a time is the least that must stay behind in
	// flight in it for a target to be called saturated, and riseFew requests.
	// Poisson arrivals have a chance of their own, by how many they differ from
	// one moment to another: riseChance standard deviations of that are none.
	riseShare  = 0.01
	riseFew    = 3.0
	riseChance = 3.0
)

// census looks how many users have a request in flight while requests are due. Its
// moments are those of a Poisson process: whatever beats in the load, they do not
// beat with it.
func (e *engine) census(w waker) {
	gap := censusGap
	if e.until != forever {
		gap = max(censusFloor, (e.until-e.from)/censusLooks)
	}
	r := rand.New(rand.NewPCG(e.p.Seed, 0xce2505))
	for at := e.from; ; {
		at += time.Duration(r.ExpFloat64() * float64(gap))
		w.wait(min(at, e.until))
		select {
		case <-e.spent:
			return
		default:
		}
		if e.over(e.now()) || e.ctx.Err() != nil {
			return
		}
		e.looks = append(e.looks, e.conns.busy())
	}
}

// looked is how long the census could look, from the window's start: both sides of
// Little's law are of this time. The tail in which the last answers are awaited has
// no rate, and the window of the other rates may reach into it.
func (e *engine) looked() time.Duration {
	end := e.dueUntil()
	if stopped := time.Duration(e.stopped.Load()); stopped != 0 {
		end = min(end, stopped)
	}
	return max(0, end-e.from)
}

// busy counts the users with a request in flight.
func (c *connections) busy() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0.0
	for _, u := range c.users {
		if u.busy.Load() {
			n++
		}
	}
	return n
}

// littleError is by how much of inFlight the mean of looks differs from it, and how
// many standard errors that is. ok is false where there is too little to go by.
func littleError(inFlight float64, looks []float64) (share, errors float64, ok bool) {
	size := len(looks) / censusBatches
	if size == 0 || inFlight < littleFloor {
		return 0, 0, false
	}
	var sum, squares float64
	for b := range censusBatches {
		m := mean(looks[b*size : (b+1)*size])
		sum += m
		squares += m * m
	}
	const n = censusBatches
	variance := max(0, (squares-sum*sum/n)/(n-1))
	diff := math.Abs(mean(looks) - inFlight)
	return diff / inFlight, diff / math.Sqrt(variance/n), true
}

// rise is by how much xs rose from its first to its last along a straight line, and
// how many standard errors of that line it is. A jump at an end, as a machine that
// stands still for a moment makes it, is no line: its error is as large as it is. ok
// is false where there is too little to go by.
func rise(xs []float64) (by, errors float64, ok bool) {
	const n = riseBatches
	size := len(xs) / n
	if size == 0 {
		return 0, 0, false
	}
	const middle, spread = (n - 1) / 2.0, n * (n*n - 1) / 12.0 // of 0, 1, … n−1: mean, sum of squares
	var means [n]float64
	var slope float64
	for b := range means {
		means[b] = mean(xs[b*size : (b+1)*size])
		slope += (float64(b) - middle) * means[b] / spread
	}
	level := mean(means[:])
	var left float64
	for b, m := range means {
		d := m - level - slope*(float64(b)-middle)
		left += d * d
	}
	return slope * n, slope / math.Sqrt(left/(n-2)/spread), true
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
