package load

import (
	"fmt"
	"math"
	"time"
)

// The engine's own limits. The shares are those of the project's method (warn
// above the first, void above the second); the floors are there because on a
// machine that is shared with the target, a millisecond of lag beside a response
// time of two says something about the machine and nothing about the load.
const (
	lagWarn, lagVoid           = 0.10, 0.25 // of the response time, at the p99
	lagWarnFloor, lagVoidFloor = 1.0, 10.0  // ms

	droppedVoid = 0.02 // of planned
	cpuVoid     = 0.90 // of the cores the engine may use

	// minCPUSpan is the shortest window of which the CPU share is worth a verdict.
	minCPUSpan = time.Second

	// fewForP99 leaves twenty samples beyond the p99.
	fewForP99 = 2000
)

// saturated reports whether the target could not keep an even rate up: whether the
// requests in flight rose in a straight line through the second half of the window.
//
//	in flight        ╱ end
//	              ╱        end − middle = (rate − capacity) × half
//	     middle╱
//	        ╱
//
// That they double, say, is no measure of it: what a warm-up left in flight stands in
// both.
func (e *engine) saturated(s *Summary) bool {
	if e.p.Executor != ConstantArrivalRate || s.Interrupted {
		return false
	}
	by, errors, ok := rise(e.looks[len(e.looks)/2:])
	least := max(riseFew, riseShare*s.Offered*e.looked().Seconds()/2)
	if e.p.Arrivals == Poisson {
		least = max(least, riseChance*math.Sqrt(2*s.Generator.InFlight))
	}
	return ok && by > least && errors > riseSure
}

// refuse makes the summary of a load that its target could not carry one that is not
// valid. A search is not refused: it is about just that.
func (s *Summary) refuse() {
	if s.Saturated {
		s.Valid = false
		s.Warnings = append([]string{"saturated: requests in flight kept growing, since the target cannot carry this rate; the times grow with the length of the run, and say nothing else"}, s.Warnings...)
	}
}

// judge says what the figures are not good for.
func (e *engine) judge(s *Summary) {
	warn := func(format string, args ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...)) }
	void := func(format string, args ...any) { s.Valid = false; warn(format, args...) }

	r, g := s.Requests, s.Generator
	if s.Interrupted {
		warn("the run was interrupted: the figures are of the %.1f s until then", s.Seconds)
	}
	if r.Sent == 0 {
		void("no request was sent in the window")
		return
	}

	if share := float64(r.Dropped) / float64(r.Planned); share > droppedVoid {
		void("%d of %d requests were dropped: %d users could not carry the load that was asked for", r.Dropped, r.Planned, e.cap)
	} else if r.Dropped > 0 {
		warn("%d of %d requests were dropped: %d users could not carry the load that was asked for", r.Dropped, r.Planned, e.cap)
	}

	cause := "the generator was late"
	if g.Waited > 0 {
		cause = fmt.Sprintf("%d requests waited for one of %d users, and were then sent as fast as the users became free", g.Waited, e.cap)
	}
	lag, p99 := g.LagP99, 0.0
	if s.ResponseTime != nil {
		p99 = *s.ResponseTime.P99
	}
	switch {
	case lag > lagVoidFloor && lag > lagVoid*p99:
		void("%s: the lag's p99 of %.3g ms is more than a quarter of the response time's %.3g ms", cause, lag, p99)
	case lag > lagWarnFloor && lag > lagWarn*p99:
		warn("%s: the lag's p99 of %.3g ms is more than a tenth of the response time's %.3g ms", cause, lag, p99)
	case g.Waited > 0:
		warn("%s", cause)
	}

	if span := e.usageUntil.at - e.usageFrom.at; g.CPUShare > cpuVoid && span >= minCPUSpan {
		void("the generator used %.0f %% of its %d cores: it was the limit, not the target", g.CPUShare*100, e.cores)
	}
	if share, errors, ok := littleError(g.InFlight, e.looks); ok && errors > littleSure && !s.Interrupted {
		const text = "Little's law does not hold: %.4g requests in flight follow from their times, and %.4g were counted"
		switch seen := mean(e.looks); {
		case share > littleVoid:
			void(text, g.InFlight, seen)
		case share > littleWarn:
			warn(text, g.InFlight, seen)
		}
	}
	if n := s.Errors[string(descriptors)] + s.Errors[string(ports)]; n > 0 {
		void("%d requests failed because this machine ran out of descriptors or ports", n)
	}

	if s.Censored > 0 {
		warn("%d of %d requests were given up: they stand in the times with the age that they had, and their true times are longer", s.Censored, r.Planned)
	}
	if s.OverRange > 0 {
		warn("over range: %d response times of more than %v count as %v in the quantiles", s.OverRange, topTime, topTime)
	}
	if r.Sent < fewForP99 {
		warn("the p99 stands on %d of %d requests: take %d for a p99 to build on", r.Sent-r.Sent*99/100, r.Sent, fewForP99)
	}
}
