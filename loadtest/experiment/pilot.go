package experiment

import (
	"context"
	"fmt"

	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
)

// pilot saturates every arm for a moment, and gives the plan's profiles with every
// share of saturation in its place: the same absolute rate for all arms, a share
// of what the slowest reached.
func (r *run) pilot(ctx context.Context) ([]Profile, error) {
	bs, err := r.startBackends(ctx, 0)
	defer func() { r.stop(ctx, bs.processes()...) }()
	if err != nil {
		return nil, err
	}
	found := &result.Pilot{Saturation: map[string]float64{}, Rates: map[string]float64{}}
	for arm, a := range r.plan.Arms {
		if a.SentinelOf != "" {
			continue
		}
		r.progress(Event{Phase: "pilot", Arm: a.Name})
		var s *load.Summary
		err := r.alone(ctx, arm, bs[arm], saturating(r.plan.Duet.Connections, pilotWarmup, pilotDuration), func(seen *soloist) { s = seen.summary })
		if err != nil {
			return nil, err
		}
		if s.Goodput <= 0 {
			return nil, fmt.Errorf("arm %q: no request succeeded, so that there is no rate to take a share of (errors by class: %v)", a.Name, s.Errors)
		}
		found.Saturation[a.Name] = s.Goodput
		r.clock.step(pilotWarmup+pilotDuration+soloOverhead, 0)
	}
	r.doc.Pilot = found
	return absolute(r.plan.Profiles, found), nil
}

// absolute replaces shares of saturation by rates, whole ones from 1 per second
// upwards, and notes them.
func absolute(profiles []Profile, found *result.Pilot) []Profile {
	slowest := 0.0
	for _, rate := range found.Saturation {
		if slowest == 0 || rate < slowest {
			slowest = rate
		}
	}
	out := make([]Profile, len(profiles))
	for i, p := range profiles {
		if share := float64(p.Rate.OfSaturation); share > 0 {
			rate := max(1, float64(int64(share*slowest)))
			p.Rate.OfSaturation, p.Rate.PerSecond = 0, rate
			found.Rates[p.Name] = rate
		}
		out[i] = p
	}
	return out
}
