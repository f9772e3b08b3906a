package experiment

import (
	"context"
	"slices"
	"time"

	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// everyMoment is how often a gateway is looked at while faults come and go: four
// scrapes a second, which no profile without faults pays for.
const everyMoment = 250 * time.Millisecond

// A moment is what a gateway has counted by then.
type moment struct {
	at       time.Duration // from the start of the measured window; before it in the warm-up
	breaker  string        // "" where there is none
	attempts float64
	answered float64
	good     float64 // those with a status below 400
	inFlight float64
	rejected map[string]float64 // by reason
}

// arrived is how many requests the gateway has been given.
func (m moment) arrived() float64 { return m.answered + m.inFlight }

// lastLook is how long the look at the end may take.
const lastLook = time.Second

// record looks at a gateway until ctx is done: at every tick, at each turn of the
// faults, so that what is counted within a window is known, and at the end. A look
// that fails is left out.
func record(ctx context.Context, gateway *sut.Server, begin time.Time, faults []Fault) []moment {
	var ms []moment
	look := func(ctx context.Context) {
		at := time.Since(begin)
		if m, err := gateway.Scrape(ctx, gatewayMetrics); err == nil {
			ms = append(ms, momentOf(at, m))
		}
	}
	edges := turns(faults)
	for next := time.Duration(0); ; {
		due, isEdge := next, false
		if len(edges) > 0 && edges[0].at <= next {
			due, isEdge = edges[0].at, true
		}
		if !sleepUntil(ctx, begin.Add(due)) {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			look(end)
			return ms
		}
		look(ctx)
		switch {
		case isEdge:
			edges = edges[1:]
			if due == next {
				next += everyMoment
			}
		default:
			next = max(next+everyMoment, time.Since(begin).Truncate(everyMoment))
		}
	}
}

func momentOf(at time.Duration, m sut.Metrics) moment {
	now := moment{at: at, rejected: m.By(gatewayRequests, "reason")}
	delete(now.rejected, "")
	now.attempts, _ = m.Sum(gatewayAttempts)
	now.answered, _ = m.Sum(gatewayRequests)
	now.inFlight, _ = m.Sum(gatewayInFlight)
	for code, n := range m.By(gatewayRequests, "code") {
		if len(code) == 3 && code[0] < '4' {
			now.good += n
		}
	}
	for state, is := range m.By(gatewayBreaker, "state") {
		if is == 1 {
			now.breaker = state
		}
	}
	return now
}

// timeline is what happened between each two moments, as the result has it.
func timeline(ms []moment) []result.Moment {
	var out []result.Moment
	for i := 1; i < len(ms); i++ {
		from, to := ms[i-1], ms[i]
		m := result.Moment{
			AtMS:     millis(to.at),
			Breaker:  to.breaker,
			Answered: int64(to.answered - from.answered),
			OK:       int64(to.good - from.good),
			Attempts: int64(to.attempts - from.attempts),
			InFlight: int64(to.inFlight),
		}
		for reason, n := range to.rejected {
			if grown := int64(n - from.rejected[reason]); grown > 0 {
				if m.Rejected == nil {
					m.Rejected = map[string]int64{}
				}
				m.Rejected[reason] = grown
			}
		}
		out = append(out, m)
	}
	return out
}

// stretch is a time in which something is wrong.
type stretch struct{ from, to time.Duration }

// stretches joins windows that touch or overlap.
func stretches(faults []Fault) []stretch {
	sorted := slices.Clone(faults)
	slices.SortFunc(sorted, func(a, b Fault) int { return int(a.At - b.At) })
	var out []stretch
	for _, f := range sorted {
		if n := len(out); n > 0 && f.At <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, f.end())
			continue
		}
		out = append(out, stretch{f.At, f.end()})
	}
	return out
}

// counted interpolates a counter at a moment; the first and the last look hold beyond
// themselves.
func counted(ms []moment, at time.Duration, of func(moment) float64) float64 {
	i := slices.IndexFunc(ms, func(m moment) bool { return m.at >= at })
	switch {
	case i < 0:
		return of(ms[len(ms)-1])
	case i == 0:
		return of(ms[0])
	}
	a, b := ms[i-1], ms[i]
	share := float64(at-a.at) / float64(b.at-a.at)
	return of(a) + share*(of(b)-of(a))
}
