package load

import (
	"math"
	"time"
)

// arrivals is a constant arrival schedule, in requests per second. It is a pure
// function of the index: nothing that happens during a run can move it.
//
//	due(i) = i / rate,  i = 0, 1, 2, …
//
// Each due time is computed from zero, so rounding does not add up: after ten
// hours at 3/s the schedule is as exact as at the start.
type arrivals float64

// due is when the i-th request is due. Division and multiplication round
// monotonically, so due never steps back.
func (a arrivals) due(i int64) time.Duration {
	return time.Duration(float64(i) / float64(a) * float64(time.Second))
}

// before counts the requests that are due before t.
func (a arrivals) before(t time.Duration) int64 {
	if t <= 0 {
		return 0
	}
	// The estimate is off by one at most where the product rounds.
	n := int64(math.Ceil(t.Seconds() * float64(a)))
	for n > 0 && a.due(n-1) >= t {
		n--
	}
	for a.due(n) < t {
		n++
	}
	return n
}
