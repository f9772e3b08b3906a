package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// Fault is a window in a profile in which something is wrong, the same for every arm.
type Fault struct {
	// At is the window's start, from that of the measured window, and For its
	// length.
	At, For time.Duration

	// Backend is what the backend is told to do, as its path for faults reads
	// it; nil if nothing.
	Backend json.RawMessage

	// Wire is what is wrong between gateway and backend; zero if nothing.
	Wire sut.WireFault

	// What says it for people: "backend status 503".
	What string
}

func (f Fault) end() time.Duration { return f.At + f.For }

// backendFaults is where a backend is told which faults are in force.
const backendFaults = "/-/faults"

// orders is the body that the path takes.
func orders(faults []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"faults":[%s]}`, bytes.Join(asBytes(faults), []byte(",")))
}

func asBytes(raw []json.RawMessage) [][]byte {
	out := make([][]byte, len(raw))
	for i, r := range raw {
		out[i] = r
	}
	return out
}

// A turn is a moment at which faults change, with all that are in force from then
// on.
type turn struct {
	at      time.Duration
	backend []json.RawMessage
	wire    []sut.WireFault
}

// turns are the moments at which something begins or ends.
func turns(faults []Fault) []turn {
	var moments []time.Duration
	for _, f := range faults {
		moments = append(moments, f.At, f.end())
	}
	slices.Sort(moments)
	var ts []turn
	for _, at := range slices.Compact(moments) {
		t := turn{at: at}
		for _, f := range faults {
			switch inForce := f.At <= at && at < f.end(); {
			case !inForce:
			case f.Backend != nil:
				t.backend = append(t.backend, f.Backend)
			default:
				t.wire = append(t.wire, f.Wire)
			}
		}
		ts = append(ts, t)
	}
	return ts
}

// onWire reports whether a profile needs a wire that can be broken.
func (p Profile) onWire() bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return !f.Wire.IsZero() })
}

// breakage switches the faults of one trial.
type breakage struct {
	backend *sut.Server
	wire    *sut.Wire // nil where the profile has no fault for it

	marks       []mark
	connections int // of ours to the backend
}

// A mark is how many requests had arrived at the backend when faults changed:
// attempts, as the wire saw them, those included that nobody waits for any more.
type mark struct {
	at       time.Duration
	attempts float64
}

// mark looks at the backend; one that does not tell leaves no mark.
func (b *breakage) mark(ctx context.Context, begin time.Time) {
	at := time.Since(begin)
	b.connections++
	m, err := b.backend.Scrape(ctx, backendMetrics)
	if err != nil {
		return
	}
	answered, _ := m.Sum(backendRequests)
	inFlight, _ := m.Sum(backendInFlight)
	b.marks = append(b.marks, mark{at, answered + inFlight})
}

// newBreakage gives what can break a trial, and the address at which the gateway finds
// its backend then.
func newBreakage(backend *sut.Server, p Profile) (b *breakage, upstream string, err error) {
	b = &breakage{backend: backend}
	if !p.onWire() {
		return b, backend.Addr, nil
	}
	if b.wire, err = sut.NewWire(backend.Addr); err != nil {
		return b, "", err
	}
	return b, b.wire.Addr(), nil
}

func (b *breakage) close() {
	if b.wire != nil {
		b.wire.Close()
	}
}

// disturb switches faults and records what the gateway does, beside a load whose
// measured window begins at begin. The function that it returns ends both, and gives
// the record; without faults there is none.
func (r *run) disturb(ctx context.Context, fail context.CancelCauseFunc, b *breakage, gateway *sut.Server, begin time.Time, faults []Fault) func() []moment {
	if len(faults) == 0 {
		return func() []moment { return nil }
	}
	ctx, end := context.WithCancel(ctx)
	var both sync.WaitGroup
	var ms []moment
	both.Go(func() {
		if err := b.play(ctx, begin, faults); err != nil {
			fail(err)
		}
	})
	both.Go(func() { ms = record(ctx, gateway, begin, faults) })
	return func() []moment {
		end()
		both.Wait()
		b.mend(ctx)
		return ms
	}
}

// measureFaults fills in what a trial with faults is about.
func measureFaults(t *result.Trial, faults []Fault, s *soloist) {
	if len(faults) == 0 || s.summary == nil {
		return
	}
	t.Timeline = timeline(s.moments)
	maps.Copy(t.Metrics, faultFigures(faults, s.moments, s.breaks.marks, s.summary.Requests))
}

// play switches faults as their windows begin and end, counted from begin, and
// returns when all are over or ctx is done.
func (b *breakage) play(ctx context.Context, begin time.Time, faults []Fault) error {
	for _, t := range turns(faults) {
		if !sleepUntil(ctx, begin.Add(t.at)) {
			return nil
		}
		b.mark(ctx, begin)
		if err := b.put(ctx, t); err != nil && ctx.Err() == nil {
			return fmt.Errorf("switch faults at %v: %w", t.at, err)
		}
	}
	return nil
}

func (b *breakage) put(ctx context.Context, t turn) error {
	b.connections++
	if err := b.backend.Put(ctx, backendFaults, orders(t.backend)); err != nil {
		return err
	}
	if b.wire == nil {
		return nil
	}
	return b.wire.Set(ctx, t.wire)
}

// mend ends what an early end of the trial has left: the next arm has the same
// backend.
func (b *breakage) mend(ctx context.Context) {
	select {
	case <-b.backend.Done():
	default:
		b.connections++
		_ = b.backend.Put(context.WithoutCancel(ctx), backendFaults, orders(nil)) // it may be dying
	}
}

// windows are the faults of a plan as the result has them.
func windows(profiles []Profile) []result.FaultWindow {
	var ws []result.FaultWindow
	for _, p := range profiles {
		for _, f := range p.Faults {
			ws = append(ws, result.FaultWindow{Profile: p.Name, AtMS: millis(f.At), ForMS: millis(f.For), What: f.What})
		}
	}
	return ws
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
