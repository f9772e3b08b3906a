package experiment

import (
	"context"
	"fmt"

	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// pilot saturates every arm for a moment, and gives the plan's profiles with every
// share of saturation in its place: the same absolute rate for all arms, a share
// of what the slowest reached.
//
// There are two rounds, and the better figure of an arm stands: what disturbs a
// machine for a second can only make an arm look slow, and would lower the rate
// for all.
func (r *run) pilot(ctx context.Context) ([]Profile, error) {
	bs, err := r.startBackends(ctx)
	defer func() { r.stop(ctx, bs.processes()...) }()
	if err != nil {
		return nil, err
	}
	found := &result.Pilot{Saturation: map[string]float64{}, Rates: map[string]float64{}}
	for range pilotRounds {
		for arm, a := range r.plan.Arms {
			if a.SentinelOf != "" {
				continue // as fast as what it copies
			}
			goodput, err := r.saturation(ctx, arm, bs[arm])
			if err != nil {
				return nil, err
			}
			found.Saturation[a.Name] = max(found.Saturation[a.Name], goodput)
			r.clock.step(pilotWarmup+pilotDuration+soloOverhead, 0)
		}
	}
	r.doc.Pilot = found
	return absolute(r.plan.Profiles, r.plan.Duet.Connections, found), nil
}

// pilotProfile is the profile that the pilot's loads bear.
const pilotProfile = "pilot"

// saturation is the goodput of an arm alone under users who never wait, per
// second.
func (r *run) saturation(ctx context.Context, arm int, backend *sut.Server) (float64, error) {
	name := r.plan.Arms[arm].Name
	r.progress(Event{Phase: "pilot", Arm: name})
	var s *load.Summary
	p := saturating(pilotProfile, r.plan.Duet.Connections, pilotWarmup, pilotDuration)
	if err := r.alone(ctx, arm, backend, p, func(seen *soloist) { s = seen.summary }); err != nil {
		return 0, err
	}
	if s.Goodput <= 0 {
		return 0, fmt.Errorf("arm %q: no request succeeded, so that there is no rate to take a share of (errors by class: %v)", name, s.Errors)
	}
	return s.Goodput, nil
}

// usersPerPiloted leaves room for a stall: 64 users in the pilot make 256, which at
// 5,000/s are all busy only after a pause of 50 ms, and which the default pool
// carries without refusing one.
const usersPerPiloted = 4

// absolute replaces shares of saturation by rates, whole ones from 1 per second
// upwards, and notes them.
//
// Such a load has at most usersPerPiloted times the pilot's users, unless the
// profile caps them itself: a saturation holds for a number of connections. Without
// a cap, one stall lets the load open thousands, at which a request costs a gateway
// so much more that 45 % of its saturation with 64 connections is more than it can
// do, and it does not recover. A request that waits for a user is measured from
// when it was due all the same.
func absolute(profiles []Profile, users int, found *result.Pilot) []Profile {
	slowest := 0.0
	for _, rate := range found.Saturation {
		if slowest == 0 || rate < slowest {
			slowest = rate
		}
	}
	out := make([]Profile, len(profiles))
	for i, p := range profiles {
		if p.OfSaturation() {
			p.Profile = p.At(slowest)
			found.Rates[p.Name] = highest(p.Profile)
			if p.VUs == 0 {
				p.VUs = usersPerPiloted * users
			}
		}
		out[i] = p
	}
	return out
}

// highest is the highest rate that a profile reaches.
func highest(p load.Profile) float64 {
	top := max(p.Rate.PerSecond, p.Start.Rate.PerSecond)
	for _, s := range p.Stages {
		top = max(top, s.Target.Rate.PerSecond)
	}
	return top
}
