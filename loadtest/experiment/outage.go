package experiment

import (
	"slices"
	"time"

	"gatebench/loadtest/load"
)

// recovered is how much of the share of good answers before the fault must be back.
const recovered = 0.95

// faultFigures are what a trial with faults is about. What cannot be said is absent.
//
//	storm_factor   attempts that arrived at the backend ÷ requests that arrived at
//	               the gateway, while faults lasted: without retries and breaker
//	               every arrival is one attempt
//	goodput_lost   requests due that got no good answer, at any time, ÷ requests
//	               that arrived while faults lasted: 1 is what the outage itself
//	               takes from who does not retry, more is the gateway's part
//	recovery_ms    from the end of a fault to the end of the last interval in which
//	               the share of good answers was below 95 % of what it was before;
//	               the longest of all faults. 0: the first interval was good. One
//	               of less than a twentieth of a second says nothing
func faultFigures(faults []Fault, ms []moment, marks []mark, r load.Requests) map[string]float64 {
	figures := map[string]float64{}
	wrong := stretches(faults)
	if len(ms) < 2 || len(wrong) == 0 {
		return figures
	}
	var arrived float64
	for _, s := range wrong {
		arrived += counted(ms, s.to, moment.arrived) - counted(ms, s.from, moment.arrived)
	}
	if arrived > 0 {
		figures["goodput_lost"] = max(0, float64(r.Planned-r.OK)/arrived)
	}
	if factor, ok := storm(wrong, ms, marks); ok {
		figures["storm_factor"] = factor
	}
	if d, ok := recovery(wrong, ms); ok {
		figures["recovery_ms"] = millis(d)
	}
	return figures
}

// storm is the storm factor over all stretches; ok is false where a look at one of
// their ends is missing.
func storm(wrong []stretch, ms []moment, marks []mark) (factor float64, ok bool) {
	var attempts, arrived float64
	for _, s := range wrong {
		from, began := markAt(marks, s.from)
		to, ended := markAt(marks, s.to)
		if !began || !ended {
			return 0, false
		}
		attempts += to.attempts - from.attempts
		// At the instants of the marks, which may be late.
		arrived += counted(ms, to.at, moment.arrived) - counted(ms, from.at, moment.arrived)
	}
	return attempts / arrived, arrived > 0
}

// markAt is the first mark from a moment on, within an interval.
func markAt(marks []mark, at time.Duration) (mark, bool) {
	i := slices.IndexFunc(marks, func(m mark) bool { return m.at >= at })
	if i < 0 || marks[i].at > at+everyMoment {
		return mark{}, false
	}
	return marks[i], true
}

// recovery is the longest time that it took after a stretch; ok is false where one is
// followed by no good interval.
func recovery(wrong []stretch, ms []moment) (longest time.Duration, ok bool) {
	before := healthy(ms, wrong[0].from)
	for i, s := range wrong {
		until := ms[len(ms)-1].at
		if i+1 < len(wrong) {
			until = wrong[i+1].from
		}
		last, good := s.to, false
		for j := 1; j < len(ms); j++ {
			from, to := ms[j-1], ms[j]
			if from.at < s.to-everyMoment/5 || to.at > until+everyMoment/5 || to.at-from.at < everyMoment/5 {
				continue
			}
			if good = isGood(from, to, before); !good {
				last = to.at
			}
		}
		if !good {
			return 0, false
		}
		longest = max(longest, last-s.to)
	}
	return longest, true
}

// healthy is the share of good answers before the first fault, 1 where none came.
func healthy(ms []moment, until time.Duration) float64 {
	i := slices.IndexFunc(ms, func(m moment) bool { return m.at > until+everyMoment/5 })
	if i < 0 {
		i = len(ms)
	}
	if i < 2 || ms[i-1].answered == ms[0].answered {
		return 1
	}
	return (ms[i-1].good - ms[0].good) / (ms[i-1].answered - ms[0].answered)
}

// isGood judges one interval; one without answers is good if nobody waits for one.
func isGood(from, to moment, before float64) bool {
	answered := to.answered - from.answered
	if answered == 0 {
		return to.inFlight == 0
	}
	return (to.good-from.good)/answered >= recovered*before
}
