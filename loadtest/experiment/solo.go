package experiment

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// solo measures one arm alone under one profile, and adds the trial to the
// document however it ends.
func (r *run) solo(ctx context.Context, block int, p Profile, arm, position int, bs backends) (err error) {
	r.progress(Event{Phase: string(result.Solo), Arm: r.plan.Arms[arm].Name, Profile: p.Name, Block: block})
	t := r.newTrial(arm, block, position, result.Solo, p.Name)
	defer func() {
		if err != nil {
			cutShort(ctx, &t, err)
		}
		r.doc.Trials = append(r.doc.Trials, t)
		r.clock.step(p.Warmup+p.Window()+soloOverhead, 1)
	}()
	r.settle(ctx)
	r.redeal(ctx, bs[arm], block)
	p.Seed = drawn(r.plan.Seed, p.Seed, block)
	return r.alone(ctx, arm, bs[arm], p, func(s *soloist) {
		r.measureSolo(&t, p, s)
		measureFaults(&t, p.Faults, s)
	})
}

// soloist is an arm alone under load, and what was seen of it.
type soloist struct {
	summary *load.Summary // nil if the generator gave none

	// underLoad was seen while the load ran, atEnd right after it, before the
	// gateway was asked to stop. A nil one could not be had.
	underLoad, atEnd *sample

	// gatewayBefore is what the gateway said before the load; nil if it did not.
	gatewayBefore sut.Metrics

	// backendBefore and backendAfter are what the backend said; nil if it did
	// not.
	backendBefore, backendAfter sut.Metrics

	// moments are the gateway's course while faults came and went; empty
	// without faults.
	moments []moment
	breaks  *breakage

	// machine has the readings of the machine while the load ran.
	machine map[string]float64
}

// sample is a gateway at one moment.
type sample struct {
	metrics sut.Metrics
	usage   *sut.Usage // nil where the system does not tell
}

// alone starts an arm's gateway, loads it, calls see with what was seen, also when
// it ends early, and stops the gateway. args are more of the gateway's command line.
func (r *run) alone(ctx context.Context, arm int, backend *sut.Server, p Profile, see func(*soloist), args ...string) error {
	breaks, upstream, err := newBreakage(backend, p)
	if err != nil {
		return err
	}
	defer breaks.close()
	gateway, err := r.startGateway(ctx, arm, upstream, args...)
	if err != nil {
		return err
	}
	defer r.stop(ctx, gateway.Process)
	watched, fail := watch(ctx, gateway.Process, backend.Process)
	defer fail(nil)

	s := &soloist{breaks: breaks}
	s.backendBefore, _ = backend.Scrape(watched, backendMetrics)
	s.gatewayBefore, _ = gateway.Scrape(watched, gatewayMetrics)
	from, started := r.look(), time.Now()
	g, err := r.startLoad(arm, gateway, p)
	if err != nil {
		return err
	}
	ended := r.disturb(watched, fail, breaks, gateway, started.Add(p.Warmup), p.Faults)
	s.underLoad = sampleUnderLoad(watched, gateway, g, edges(started, p.Profile))
	s.summary, err = g.finish(watched)
	s.moments = ended()
	s.machine = r.readings(from)
	s.atEnd = sampleOf(watched, gateway)
	s.backendAfter, _ = backend.Scrape(watched, backendMetrics)
	see(s)
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

// accepted is how many connections the backend took from others than us: the second
// scrape came by one of its own, and every change of faults. ok is false where it does not tell.
func (s *soloist) accepted() (n float64, ok bool) {
	n, ok = delta(s.backendBefore, s.backendAfter, backendConnections)
	return n - 1 - float64(s.breaks.connections), ok && s.backendBefore != nil
}

// work is how many requests do not add up: those that the backend saw beside those
// that the gateway says it sent, and answers that the load got beside requests that
// the gateway had. Attempts that failed may or may not have arrived, and are allowed
// for. ok is false where one of the two does not tell.
func (s *soloist) work() (unexplained float64, ok bool) {
	seen, told := delta(s.backendBefore, s.backendAfter, backendRequests)
	attempts, tells := s.atEnd.metrics.Sum(gatewayAttempts)
	succeeded := s.atEnd.metrics.By(gatewayRequests, "reason")[""]
	failed := max(0, attempts-succeeded)
	unexplained = max(0, math.Abs(seen-attempts)-failed)
	if s.summary != nil {
		had, _ := s.atEnd.metrics.Sum(gatewayRequests) // of the warm-up too
		unexplained += max(0, float64(s.summary.Requests.Completed)-had)
	}
	return unexplained, told && tells && s.backendBefore != nil
}

// edges ticks when a gateway under load is to be looked at: once, shortly before
// the end, or every second where nobody knows the end, and then the last look
// counts.
func edges(started time.Time, p load.Profile) <-chan time.Time {
	if p.Executor == load.SharedIterations || p.Window() == 0 {
		return time.Tick(time.Second)
	}
	return time.After(time.Until(beforeEnd(started, p)))
}

// sampleUnderLoad returns the last sample taken at an edge when there will be no
// other.
func sampleUnderLoad(ctx context.Context, gateway *sut.Server, g *generator, edges <-chan time.Time) *sample {
	var last *sample
	hung := time.After(g.bound)
	for {
		select {
		case <-edges:
			if s := sampleOf(ctx, gateway); s != nil {
				last = s
			}
		case <-g.Done():
			return last
		case <-hung: // finish sees to it
			return last
		case <-ctx.Done():
			return last
		}
	}
}

// sampleOf looks at a gateway now; nil if it does not answer.
func sampleOf(ctx context.Context, gateway *sut.Server) *sample {
	metrics, err := gateway.Scrape(ctx, gatewayMetrics)
	if err != nil {
		return nil
	}
	s := &sample{metrics: metrics}
	if usage, err := gateway.Usage(); err == nil {
		s.usage = &usage
	}
	return s
}

// measureSolo fills in the trial. Connections are counted over the gateway's whole
// life, warm-up included, since most are opened there; the rest belongs to the
// window.
func (r *run) measureSolo(t *result.Trial, p Profile, s *soloist) {
	t.Gates = s.machine
	count(t, s.summary)
	if s.summary != nil {
		r.measureLoad(t, p, s.summary)
	}
	if s.underLoad != nil {
		if n, ok := s.underLoad.metrics.Sum(processGoroutines); ok {
			t.Metrics["goroutines"] = n
		}
		if u := s.underLoad.usage; u != nil {
			t.Metrics["descriptors"] = float64(u.Descriptors)
		}
	}
	if s.atEnd != nil {
		r.measureEnd(t, s)
	} else {
		void(t, "the gateway gave no metrics after the load")
	}
	judge(t)
}

// measureLoad takes over what the load generator measured, and whether it was fit
// to. What it says of a load in which requests waited for a user is not asked: see
// [ofGenerator].
func (r *run) measureLoad(t *result.Trial, p Profile, s *load.Summary) {
	fromLoad(t, s)
	ofGenerator(t.Gates, s)
	r.ofCeilings(t.Gates, p.KeepAlive, s.Throughput)
	judge(t) // first, since it gives the plainer reason
	switch {
	case s.Valid:
	case s.Saturated && len(p.Faults) > 0: // a fault holds requests back, and is to
	case s.Saturated:
		void(t, "saturated: requests in flight kept growing, since the arm cannot carry this rate")
	case s.Generator.Waited == 0:
		void(t, "the load generator set the figures: "+strings.Join(s.Warnings, "; "))
	}
}

// measureEnd takes over what gateway and backend counted.
func (r *run) measureEnd(t *result.Trial, s *soloist) {
	if u := s.atEnd.usage; u != nil {
		t.Metrics["memory_peak_bytes"] = float64(u.PeakResident)
	} else {
		r.warn("memory and descriptors are absent: this system does not tell them of another process")
	}
	fromGateway(t, s.atEnd.metrics)
	if used, ok := perRequest(s.gatewayBefore, s.atEnd.metrics); ok && s.gatewayBefore != nil {
		if cpu, told := used["cpu_us_per_request"]; told {
			t.Metrics["solo_cpu_us_per_request"] = cpu
		}
		timeSpent(t, s.gatewayBefore, s.atEnd.metrics)
	}
	if unexplained, ok := s.work(); ok {
		t.Gates[gate.Work] = unexplained
	}
	accepted, ok := s.accepted()
	if !ok {
		return
	}
	t.Metrics["backend_connections_accepted"] = accepted
	if opened, ok := t.Metrics["connections_opened"]; ok && opened != accepted {
		r.warn(fmt.Sprintf("arm %q, profile %s: the gateway counted other connections than the backend, %.0f against %.0f in block %d", t.Arm, t.Profile, opened, accepted, t.Block+1))
	}
}
