package experiment

import (
	"context"
	"maps"
	"sync"
	"time"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// duetProfile is the profile that duet trials bear.
const duetProfile = "duet"

// duetist is one arm's part in a duet.
type duetist struct {
	arm, position int
	gateway       *sut.Server
	summary       *load.Summary // nil if the load gave none
	before, after scrape
	trial         result.Trial
}

// scrape is what a gateway said, and when.
type scrape struct {
	at      time.Time
	metrics sut.Metrics
	err     error
}

// duet loads the gateways of all arms at once:
//
//	starts of the loads    ╎ ╎ ╎
//	warm-up                ├───────┤
//	                         ├───────┤
//	                           ├───────┤
//	scrapes                            ▼               ▼
//	window                     common  ├───────────────┤
//
// The window is common to all: it opens when the last load is warm and closes
// before the first one ends. Since a gateway gives its CPU time and its requests
// in one answer, it does not matter that the scrapes are not at one instant.
func (r *run) duet(ctx context.Context, block int, bs backends, order []int) (err error) {
	r.progress(Event{Phase: string(result.Duet), Block: block})
	ds := make([]*duetist, len(order))
	for position, arm := range order {
		ds[position] = &duetist{arm: arm, position: position, trial: r.newTrial(arm, block, position, result.Duet, duetProfile)}
	}
	defer func() {
		for _, d := range ds {
			if err != nil {
				cutShort(ctx, &d.trial, err)
			}
			r.doc.Trials = append(r.doc.Trials, d.trial)
		}
		r.clock.step(r.plan.Duet.Warmup+r.plan.Duet.Duration+duetOverhead, len(ds))
	}()

	r.settle(ctx)
	defer func() { r.stop(ctx, gateways(ds)...) }()
	for _, d := range ds {
		if d.gateway, err = r.startGateway(ctx, d.arm, bs[d.arm].Addr); err != nil {
			return err
		}
	}
	watched, fail := watch(ctx, append(gateways(ds), bs.processes()...)...)
	defer fail(nil)
	from := r.look()
	r.play(watched, fail, ds)
	machine := r.readings(from)
	if share, ok := r.busy(ds); ok {
		machine[gate.Busy] = share
	}
	for _, d := range ds {
		d.trial.Gates = maps.Clone(machine)
		d.measure()
		judge(&d.trial)
	}
	return context.Cause(watched)
}

func gateways(ds []*duetist) []*sut.Process {
	var ps []*sut.Process
	for _, d := range ds {
		if d.gateway != nil {
			ps = append(ps, d.gateway.Process)
		}
	}
	return ps
}

// play starts the loads, scrapes the gateways at both edges of the window and
// returns when every load has ended. What goes wrong ends it for all, by fail.
func (r *run) play(ctx context.Context, fail context.CancelCauseFunc, ds []*duetist) {
	var loads sync.WaitGroup
	defer loads.Wait()
	p := saturating(duetProfile, r.plan.Duet.Connections, r.plan.Duet.Warmup, r.plan.Duet.Duration)
	first := time.Now()
	for _, d := range ds {
		g, err := r.startLoad(d.arm, d.gateway, p)
		if err != nil {
			fail(err)
			return
		}
		loads.Go(func() {
			var err error
			if d.summary, err = g.finish(ctx); err != nil {
				fail(err)
			}
		})
	}
	last := time.Now()
	if sleepUntil(ctx, last.Add(p.Warmup)) {
		scrapeAll(ctx, ds, func(d *duetist) *scrape { return &d.before })
	}
	if sleepUntil(ctx, beforeEnd(first, p.Profile)) {
		scrapeAll(ctx, ds, func(d *duetist) *scrape { return &d.after })
	}
}

// saturating is a load of users who never wait.
func saturating(name string, users int, warmup, duration time.Duration) Profile {
	p := load.DefaultProfile()
	p.Executor, p.VUs, p.Warmup, p.Duration = load.ConstantVUs, users, warmup, duration
	return Profile{Name: name, Profile: p}
}

func scrapeAll(ctx context.Context, ds []*duetist, into func(*duetist) *scrape) {
	var all sync.WaitGroup
	for _, d := range ds {
		all.Go(func() {
			s := into(d)
			s.metrics, s.err = d.gateway.Scrape(ctx, gatewayMetrics)
			s.at = time.Now()
		})
	}
	all.Wait()
}

// measure fills in the trial.
func (d *duetist) measure() {
	count(&d.trial, d.summary)
	if d.summary != nil {
		d.trial.Gates[gate.OwnLimits] = ownLimits(d.summary)
	}
	for _, s := range []scrape{d.before, d.after} {
		if s.err != nil {
			void(&d.trial, s.err.Error())
			return
		}
	}
	metrics, ok := perRequest(d.before.metrics, d.after.metrics)
	if !ok {
		void(&d.trial, "the gateway served no request in the window")
		return
	}
	d.trial.Metrics = metrics
	d.trial.Reasons = reasons(d.after.metrics)
	if cycles, ok := delta(d.before.metrics, d.after.metrics, processGC); ok {
		d.trial.Gates[gate.GCCycles] = cycles
	}
}

// busy is how much of their processor the gateways used together: where it is not
// all, a gateway waits between requests, and waking costs CPU time that saturation
// does not. ok is false where they have no processor of their own, or do not tell.
func (r *run) busy(ds []*duetist) (share float64, ok bool) {
	if r.place.gateways == nil {
		return 0, false
	}
	for _, d := range ds {
		cpu, told := delta(d.before.metrics, d.after.metrics, processCPU)
		window := d.after.at.Sub(d.before.at).Seconds()
		if !told || window <= 0 {
			return 0, false // its trial says why
		}
		share += cpu / window / float64(len(r.place.gateways))
	}
	return share, true
}

// margin is how long before the end of the load a gateway is looked at last.
const margin = 100 * time.Millisecond

// beforeEnd is shortly before a load that started then ends.
func beforeEnd(started time.Time, p load.Profile) time.Time {
	return started.Add(p.Warmup + p.Window() - min(margin, p.Window()/10))
}

// sleepUntil waits for t; false if ctx was done first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-time.After(time.Until(t)):
		return true
	case <-ctx.Done():
		return false
	}
}
