package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// How long each ceiling is measured.
const (
	ceilingWarmup   = 200 * time.Millisecond
	ceilingDuration = 800 * time.Millisecond
	ceilingTime     = ceilingWarmup + ceilingDuration + soloOverhead
)

// ceilingProfile is the profile that the loads of ceilings bear.
const ceilingProfile = "ceiling"

// ceilings measures, once an experiment and for each way of using connections that
// the plan has, how far load generator and backend are from being what limits a
// gateway. One that cannot be measured leaves its gate without a reading.
func (r *run) ceilings(ctx context.Context) error {
	for _, keepAlive := range r.plan.connectionUses() {
		c := result.Ceiling{KeepAlive: keepAlive}
		for _, m := range []struct {
			of   string
			find func(context.Context, bool) (float64, error)
			into **float64
		}{
			{"the load generator", r.generatorCeiling, &c.Generator},
			{"the backend", r.backendCeiling, &c.Backend},
		} {
			r.progress(Event{Phase: "ceiling", Arm: m.of})
			rate, err := m.find(ctx, keepAlive)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				r.warn(fmt.Sprintf("how much %s can carry is not known: %v", m.of, err))
			} else {
				*m.into = &rate
			}
			r.clock.step(ceilingTime, 0)
		}
		r.doc.Ceilings = append(r.doc.Ceilings, c)
	}
	return nil
}

// generatorCeiling is what a load generator carries, per second, against a server
// that has nothing to do and runs where gateways run: a backend's sign of life.
func (r *run) generatorCeiling(ctx context.Context, keepAlive bool) (float64, error) {
	d, err := r.direct(ctx, r.place.gateways, backendReady, keepAlive)
	return d.goodput, err
}

// backendCeiling is what the baseline's backend and a load generator carry without a
// gateway, per second, where they run during trials. Where a simulated latency kept
// them idle, it is what they would carry at that cost without it.
func (r *run) backendCeiling(ctx context.Context, keepAlive bool) (float64, error) {
	d, err := r.direct(ctx, r.place.others, target, keepAlive)
	if err != nil || d.cpu == 0 {
		return d.goodput, err
	}
	cores := float64(max(1, len(r.place.others)))
	return max(d.goodput, cores/d.cpu.Seconds()), nil
}

// straight is what was seen of a load without a gateway.
type straight struct {
	goodput float64
	cpu     time.Duration // of server and generator per request, 0 where it is not told
}

// direct saturates the baseline's backend on processors of its own.
func (r *run) direct(ctx context.Context, cpus []int, path string, keepAlive bool) (d straight, err error) {
	server, err := r.startBackend(ctx, 0, "backend alone", cpus)
	if err != nil {
		return d, err
	}
	defer r.stop(ctx, server.Process)
	watched, fail := watch(ctx, server.Process)
	defer fail(nil)
	p := saturating(ceilingProfile, r.plan.Duet.Connections, ceilingWarmup, ceilingDuration)
	p.KeepAlive = keepAlive
	before, _ := server.Scrape(watched, backendMetrics)
	g, err := r.startLoadOn("load without a gateway", "http://"+server.Addr+path, p, nil)
	if err != nil {
		return d, err
	}
	s, err := g.finish(watched)
	if err != nil {
		return d, err
	}
	if s.Goodput <= 0 {
		return d, errors.New("no request succeeded")
	}
	after, _ := server.Scrape(watched, backendMetrics)
	return straight{s.Goodput, costOf(s, before, after)}, nil
}

// costOf is the CPU time of server and generator per request, 0 where one of them does
// not tell.
func costOf(s *load.Summary, before, after sut.Metrics) time.Duration {
	served, _ := delta(before, after, backendRequests)
	used, told := delta(before, after, processCPU)
	own := s.Generator.CPUMicrosPerRequest
	if !told || served <= 0 || own == 0 {
		return 0
	}
	return time.Duration((used/served + own/1e6) * float64(time.Second))
}

// connectionUses are the ways of using connections that the plan has: kept alive, or
// one for each request.
func (p Plan) connectionUses() []bool {
	var uses []bool
	for _, keepAlive := range []bool{true, false} {
		for _, pr := range p.Profiles {
			if pr.KeepAlive == keepAlive {
				uses = append(uses, keepAlive)
				break
			}
		}
	}
	return uses
}

// ofCeilings adds how many times a trial's rate load generator and backend can carry.
func (r *run) ofCeilings(readings map[string]float64, keepAlive bool, rate float64) {
	if rate <= 0 {
		return
	}
	for _, c := range r.doc.Ceilings {
		if c.KeepAlive != keepAlive {
			continue
		}
		if c.Generator != nil {
			readings[gate.GeneratorCeiling] = *c.Generator / rate
		}
		if c.Backend != nil {
			readings[gate.BackendCeiling] = *c.Backend / rate
		}
	}
}
