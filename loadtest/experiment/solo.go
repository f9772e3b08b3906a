package experiment

import (
	"context"
	"fmt"
	"strings"
	"time"

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
		r.clock.step(p.Warmup+p.Duration+soloOverhead, 1)
	}()
	return r.alone(ctx, arm, bs[arm], p.Profile, func(s *soloist) { r.measureSolo(&t, s) })
}

// soloist is an arm alone under load, and what was seen of it.
type soloist struct {
	summary *load.Summary // nil if the generator gave none

	// underLoad was seen while the load ran, atEnd right after it, before the
	// gateway was asked to stop. A nil one could not be had.
	underLoad, atEnd *sample

	// accepted is how many connections the backend took from the gateway; nil
	// if that could not be had.
	accepted *float64
}

// sample is a gateway at one moment.
type sample struct {
	metrics sut.Metrics
	usage   *sut.Usage // nil where the system does not tell
}

// alone starts an arm's gateway, loads it, calls see with what was seen, also when
// it ends early, and stops the gateway.
func (r *run) alone(ctx context.Context, arm int, backend *sut.Server, p load.Profile, see func(*soloist)) error {
	gateway, err := r.startGateway(ctx, arm, backend)
	if err != nil {
		return err
	}
	defer r.stop(ctx, gateway.Process)
	watched, fail := watch(ctx, gateway.Process, backend.Process)
	defer fail(nil)

	before, _ := backend.Scrape(watched, backendMetrics)
	started := time.Now()
	g, err := r.startLoad(arm, gateway, p)
	if err != nil {
		return err
	}
	s := &soloist{underLoad: sampleUnderLoad(watched, gateway, g, edges(started, p))}
	s.summary, err = g.finish(watched)
	s.atEnd = sampleOf(watched, gateway)
	if after, failed := backend.Scrape(watched, backendMetrics); failed == nil {
		s.accepted = accepted(before, after)
	}
	see(s)
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

// accepted is how many connections a backend took between two scrapes from others
// than us: the second scrape came by one of its own.
func accepted(before, after sut.Metrics) *float64 {
	n, ok := delta(before, after, backendConnections)
	if before == nil || !ok {
		return nil
	}
	n--
	return &n
}

// edges ticks when a gateway under load is to be looked at: once, shortly before
// the end, or every second where nobody knows the end, and then the last look
// counts.
func edges(started time.Time, p load.Profile) <-chan time.Time {
	if p.Executor == load.SharedIterations || p.Duration == 0 {
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
func (r *run) measureSolo(t *result.Trial, s *soloist) {
	count(t, s.summary)
	if s.summary != nil {
		fromLoad(t, s.summary)
		if !s.summary.Valid {
			void(t, "the load generator set the figures: "+strings.Join(s.summary.Warnings, "; "))
		}
		if n := s.summary.Requests.Dropped; n > 0 {
			r.warn(fmt.Sprintf("arm %q, profile %s: some requests were due and never started", t.Arm, t.Profile))
		}
	}
	if s.underLoad != nil {
		if n, ok := s.underLoad.metrics.Sum(processGoroutines); ok {
			t.Metrics["goroutines"] = n
		}
		if u := s.underLoad.usage; u != nil {
			t.Metrics["descriptors"] = float64(u.Descriptors)
		}
	}
	if s.atEnd == nil {
		void(t, "the gateway gave no metrics after the load")
		return
	}
	if u := s.atEnd.usage; u != nil {
		t.Metrics["memory_peak_bytes"] = float64(u.PeakResident)
	} else {
		r.warn("memory and descriptors are absent: this system does not tell them of another process")
	}
	opened, ok := s.atEnd.metrics.Sum(gatewayConnections)
	if ok {
		t.Metrics["connections_opened"] = opened
	}
	if s.accepted == nil {
		return
	}
	t.Metrics["backend_connections_accepted"] = *s.accepted
	if ok && opened != *s.accepted {
		r.warn(fmt.Sprintf("arm %q, profile %s: the gateway counted other connections than the backend, %.0f against %.0f in block %d", t.Arm, t.Profile, opened, *s.accepted, t.Block+1))
	}
}
