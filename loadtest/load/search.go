package load

import (
	"context"
	"math"
	"time"

	"gatebench/internal/conf"
)

// The search for the highest rate, after MLRsearch (draft-ietf-bmwg-mlrsearch): the
// answer is an interval, and both its ends are tried more often than the way there.
const (
	// interval is how near to each other its ends are in the end.
	searchInterval = 1.05
	// bestOf probes decide about a rate on the way; the majority counts.
	bestOf = 3
	// confirmations are the probes of either end, of which one may dissent.
	confirmations = 5
	// maxMoves is how often an end that is not confirmed is moved.
	maxMoves = 6

	// searchUsers saturate the target to find out where to look, unless the
	// profile says how many users there are.
	searchUsers = 64
	// searchFloor is the lowest rate that is tried, per second.
	searchFloor = 1.0
)

// bracket is what a search knows: it met the objective at lo, and missed it at hi. 0
// is an end that was not found.
type bracket struct {
	lo, hi    float64
	confirmed bool
}

// hunt looks for the highest rate at which try succeeds, around a guess. It tries
// nothing above top, unless that is 0. It ends early, with what it knows, when try
// gives an error.
func hunt(guess, top float64, try func(rate float64) (bool, error)) (b bracket, err error) {
	seen := map[float64]*votes{}
	ask := func(rate float64, enough func(*votes) bool) error {
		if seen[rate] == nil {
			seen[rate] = &votes{}
		}
		v := seen[rate]
		for !enough(v) {
			met, err := try(rate)
			if err != nil {
				return err
			}
			v.add(met)
		}
		return nil
	}
	majority := func(rate float64) (bool, error) {
		err := ask(rate, func(v *votes) bool { return v.met > bestOf/2 || v.missed > bestOf/2 })
		return seen[rate].met > seen[rate].missed, err
	}
	capped := func(rate float64) float64 {
		if top > 0 {
			rate = min(rate, top)
		}
		return rate
	}

	// Both ends.
	rate, factor := capped(guess), 2.0
	for b.lo == 0 || b.hi == 0 {
		met, err := majority(rate)
		if err != nil {
			return b, err
		}
		if met {
			b.lo = rate
			if rate == top {
				break
			}
			rate = capped(rate * factor)
		} else {
			b.hi = rate
			if rate <= searchFloor {
				break
			}
			rate = max(searchFloor, rate/factor)
		}
	}
	for b.lo > 0 && b.hi > b.lo*searchInterval {
		rate := math.Sqrt(b.lo * b.hi)
		met, err := majority(rate)
		if err != nil {
			return b, err
		}
		if met {
			b.lo = rate
		} else {
			b.hi = rate
		}
	}

	// Confirm them, or move the interval.
	decided := func(v *votes) bool {
		return v.met >= confirmations-1 || v.missed >= confirmations-1 || v.met > 1 && v.missed > 1
	}
	for range maxMoves {
		if b.lo > 0 {
			if err := ask(b.lo, decided); err != nil {
				return b, err
			}
			if seen[b.lo].missed > 1 {
				b.lo, b.hi = b.lo/searchInterval, b.lo
				if b.lo < searchFloor {
					b.lo = 0
				}
				continue
			}
		}
		if b.hi > 0 {
			if err := ask(b.hi, decided); err != nil {
				return b, err
			}
			if seen[b.hi].met > 1 {
				b.lo, b.hi = b.hi, capped(b.hi*searchInterval)
				if b.lo == b.hi {
					b.hi = 0
				}
				continue
			}
		}
		b.confirmed = true
		return b, nil
	}
	return b, nil
}

// votes are the probes of one rate.
type votes struct{ met, missed int }

func (v *votes) add(met bool) {
	if met {
		v.met++
	} else {
		v.missed++
	}
}

// searchRun carries out max-rate-search: a moment of saturation to find out where to
// look, and probes at constant rates.
func searchRun(ctx context.Context, p Profile, run func(context.Context, Profile) (*Summary, error)) (*Summary, error) {
	found := &Search{Objective: p.Objective, Probes: []Probe{}}
	guess := p.Rate.PerSecond / 2
	if guess == 0 {
		s, err := run(ctx, p.saturating())
		if err != nil {
			return nil, err
		}
		found.Saturation = new(s.Goodput)
		if guess = s.Goodput / 2; guess < searchFloor || s.Interrupted {
			s.Executor, s.Search, s.Valid = p.Executor, found, false
			s.Warnings = append(s.Warnings, "the search did not begin: the target could not be saturated")
			return s, nil
		}
	}
	met := map[float64]*Summary{} // by rate
	var last *Summary
	limited := map[float64]bool{} // rates that the generator did not carry
	b, err := hunt(guess, p.Rate.PerSecond, func(rate float64) (bool, error) {
		s, err := run(ctx, p.atRate(rate))
		if err != nil {
			return false, err
		}
		missed := p.Objective.Missed(s)
		if s.Saturated {
			missed = append(missed, "requests in flight kept growing: the target cannot keep this rate up")
		}
		if !s.Valid {
			limited[rate] = true
			missed = append(missed, "the generator, not the target, set the figures")
		}
		last = s
		if s.Interrupted {
			return false, context.Canceled
		}
		if len(missed) == 0 {
			met[rate] = s
		}
		found.Probes = append(found.Probes, Probe{Rate: rate, Met: len(missed) == 0, Missed: missed, Requests: s.Requests, ResponseTime: s.ResponseTime})
		return len(missed) == 0, nil
	})
	if err != nil && last == nil {
		return nil, err
	}
	return p.conclude(found, b, met[b.lo], last, limited[b.hi]), nil
}

// saturating is a load that shows about what the target can do.
func (p Profile) saturating() Profile {
	p.Executor, p.Objective, p.Arrivals = ConstantVUs, nil, Constant
	if p.VUs == 0 {
		p.VUs = searchUsers
	}
	p.Warmup, p.Duration = min(p.Warmup, time.Second), min(p.Duration, 2*time.Second)
	return p
}

func (p Profile) atRate(rate float64) Profile {
	p.Executor, p.Objective, p.Rate = ConstantArrivalRate, nil, conf.Rate{PerSecond: rate}
	return p
}

// conclude makes the summary of a search: the figures are those of the probe at the
// highest rate that met the objective, or else of the last one.
func (p Profile) conclude(found *Search, b bracket, best, last *Summary, generatorLimit bool) *Summary {
	s := best
	if s == nil {
		s = last
	}
	s.Executor, s.Search, s.Interrupted = p.Executor, found, last.Interrupted
	found.Confirmed = b.confirmed
	if b.lo > 0 {
		found.Lo = new(b.lo)
	}
	if b.hi > 0 {
		found.Hi = new(b.hi)
	}
	warn := func(text string) { s.Warnings = append(s.Warnings, text) }
	switch {
	case s.Interrupted:
		warn("the search was interrupted: its interval is as far as it had come")
	case generatorLimit:
		s.Valid = false
		warn("the search ended where the generator was the limit: the target may carry more")
	case b.lo == 0:
		warn("the objective was met at no rate that was tried")
	case b.hi == 0:
		warn("the objective was met at every rate that was tried: the highest is a lower bound")
	case !b.confirmed:
		warn("the ends of the interval did not hold in repeated probes: the target's speed changes too much for one")
	}
	return s
}
