// Package breaker gives a failing upstream a rest: a circuit breaker, gobreaker's,
// as a layer around a client.
//
//	  rate ≥ limit, enough calls; or so many failures in a row
//	closed ────────────────────────────▶ open ◀─────────┐
//	   ▲                                  │ open_for    │ a probe fails
//	   │ as many probes succeed           ▼ is over     │
//	   └────────────────────────────── half-open ───────┘
//
// What counts is a setting (see [Settings.FailureOn]). By default a failure is a status
// of 500 and above, or an error that upstream is to blame for (dial, tls, reset,
// protocol, the timeouts), also one that comes in the middle of a body. Everything
// else that is answered is a success, 404 included. An error that is no failure by the
// setting counts neither way, nor does what upstream has no part in: a full pool, a
// caller who hung up or sent rubbish, a message over our own limits.
//
// While the breaker is closed an outcome counts in the window at the moment it is
// known. gobreaker alone would count it at the moment the request began, and drop
// it if that is longer ago than the window: a dead upstream with timeouts longer
// than the window would never open the breaker. So a closed breaker is not asked
// for leave, it is only told; a half-open one is asked, since there the number of
// requests on their way is what matters.
//
// A probe that waits for its caller tells nothing about upstream: a request with a
// body that has been on its way for a while, and of which the next piece is still
// owed, gives its place back to the first request that finds none free. Otherwise a
// handful of slow uploads would have everybody else rejected by an upstream that is
// well. An upload that upstream is slow to take keeps its place, so that there is
// an outcome whatever requests there are.
//
// The trap: the callbacks of gobreaker run under its mutex. They only record.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"gatebench/clients"
)

// buckets is how finely the window rolls: an outcome is forgotten between 0.9 and
// 1.0 windows after it happened.
const buckets = 10

// MinimumWindow is the shortest window that outcomes can be counted in.
const MinimumWindow = 100 * time.Millisecond

// uploadGrace is how long an upload keeps its place as a probe although it waits for
// its caller: most bodies are there by then, and no faster than that do slow uploads
// follow each other through a half-open breaker.
const uploadGrace = 100 * time.Millisecond

// Settings are the policy of a breaker.
type Settings struct {
	// FailureRate in (0,1] is the share of failures among successes and
	// failures in the window from which on the breaker opens.
	FailureRate float64
	// ConsecutiveFailures is after how many failures in a row, all in the window,
	// the breaker opens whatever the rate; 0 for the rate alone.
	ConsecutiveFailures int
	// FailureOn lists what is a failure, of [FailureWords].
	FailureOn []string
	// MinimumCalls is how many outcomes the window must hold before the rate
	// means anything; at least 1.
	MinimumCalls int
	// Window is how far back outcomes count; at least [MinimumWindow].
	Window time.Duration
	// OpenFor is how long everything is rejected before upstream is probed.
	OpenFor time.Duration
	// HalfOpenCalls is how many probes are on their way at most, and how many
	// must succeed in a row to close the breaker; at least 1. A slow upload
	// that has given its place back is no probe any more.
	HalfOpenCalls int
	// ProbeLimit bounds how long one probe is waited for, so that an endless
	// one cannot hold the breaker half-open: after it, a body that still flows
	// is a success, and a probe without a response head gives its place back
	// uncounted. It must be longer than the timeouts that end an attempt, or
	// a silent upstream is never seen to fail.
	ProbeLimit time.Duration
}

// A State is where a breaker stands. An open one whose time is over becomes
// half-open with the next request, not by itself.
type State uint8

// The states, in gobreaker's order.
const (
	Closed   = State(gobreaker.StateClosed)
	HalfOpen = State(gobreaker.StateHalfOpen)
	Open     = State(gobreaker.StateOpen)

	states = 3
)

// String gives closed, half-open or open.
func (s State) String() string { return gobreaker.State(s).String() }

// States lists every state, in the order of the constants.
func States() []State { return []State{Closed, HalfOpen, Open} }

// A Transition is a change of state.
type Transition struct{ From, To State }

// Transitions lists the changes that there can be.
func Transitions() []Transition {
	return []Transition{{Closed, Open}, {Open, HalfOpen}, {HalfOpen, Closed}, {HalfOpen, Open}}
}

// A Rejection is why a request was not sent. It stands in an [*clients.Error] of
// kind BreakerOpen.
type Rejection struct {
	// RetryAfter is how long until the breaker lets probes through; 0 if it
	// does already and enough of them are on their way.
	RetryAfter time.Duration
}

func (r *Rejection) Error() string {
	if r.RetryAfter == 0 {
		return "upstream is being probed"
	}
	return fmt.Sprintf("upstream rests for %v more", r.RetryAfter)
}

// A Breaker is a client that stops asking the next one while that keeps failing.
type Breaker struct {
	next       clients.Client
	failures   failures
	gate       *gobreaker.TwoStepCircuitBreaker[struct{}]
	openFor    time.Duration
	probeLimit time.Duration

	period      atomic.Uint64 // of type period
	openUntil   atomic.Pointer[time.Time]
	transitions [states][states]atomic.Int64
	calls       sync.Pool // of *call

	mu      sync.Mutex
	uploads map[*probe]struct{} // probes with a body that have not reported
}

var _ clients.Client = (*Breaker)(nil)

// A period is the time between two changes of state: its number and, in the
// lowest two bits, its state. An outcome counts only in the period that its
// request began in.
type period uint64

func (p period) state() State { return State(p & 3) }

func (p period) next(s State) period { return (p>>2+1)<<2 | period(s) }

// An outcome is what an exchange says about upstream.
type outcome uint8

const (
	success outcome = iota
	failure
	neutral // upstream had no part in it
)

// gobreaker learns of outcomes as errors. The real ones stay out of it, so that
// what counts is decided by [failures] alone.
var (
	errFailure = errors.New("failure")
	errNeutral = errors.New("neither success nor failure")
)

func (o outcome) err() error { return [...]error{nil, errFailure, errNeutral}[o] }

// New returns a closed breaker around next.
func New(s Settings, next clients.Client) *Breaker {
	b := &Breaker{next: next, failures: newFailures(s.FailureOn), openFor: s.OpenFor, probeLimit: s.ProbeLimit, uploads: make(map[*probe]struct{})}
	b.calls.New = func() any {
		c := &call{b: b}
		c.end = c.finish
		return c
	}
	b.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  uint32(s.HalfOpenCalls),
		Interval:     s.Window,
		BucketPeriod: s.Window / buckets,
		Timeout:      s.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			// Not Counts.Requests: it holds what was excluded.
			n := c.TotalSuccesses + c.TotalFailures
			if row := s.ConsecutiveFailures; row > 0 && int(c.ConsecutiveFailures) >= row {
				return true
			}
			return int(n) >= s.MinimumCalls && float64(c.TotalFailures) >= s.FailureRate*float64(n)
		},
		OnStateChange: b.changed,
		IsExcluded:    func(err error) bool { return errors.Is(err, errNeutral) },
	})
	return b
}

// changed runs under gobreaker's mutex, one change at a time.
func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	if to == gobreaker.StateOpen {
		until := time.Now().Add(b.openFor)
		b.openUntil.Store(&until)
	}
	b.transitions[from][to].Add(1)
	b.period.Store(uint64(period(b.period.Load()).next(State(to))))
}

// State returns where the breaker stands.
func (b *Breaker) State() State { return period(b.period.Load()).state() }

// Count returns how many times the breaker has changed its state in that way.
func (b *Breaker) Count(t Transition) int64 { return b.transitions[t.From][t.To].Load() }

// Close closes the next client.
func (b *Breaker) Close() error { return b.next.Close() }

// Do passes req on, or returns an error of kind BreakerOpen that holds a
// [*Rejection]. The outcome is taken when the exchange ends, so that it covers
// the body; a bad status counts at once, and so does a change of protocol.
func (b *Breaker) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	if p := period(b.period.Load()); p.state() == Closed {
		return b.call(ctx, req, p)
	}
	report, err := b.gate.Allow()
	for errors.Is(err, gobreaker.ErrTooManyRequests) && b.displace() {
		report, err = b.gate.Allow()
	}
	if err != nil {
		return nil, &clients.Error{Kind: clients.BreakerOpen, Err: b.rejection()}
	}
	return b.probe(ctx, req, report)
}

// rejection is for a breaker that has been open at least once.
func (b *Breaker) rejection() *Rejection {
	return &Rejection{RetryAfter: max(0, time.Until(*b.openUntil.Load()))}
}

// send is the next client's Do with what its head says about upstream so far.
// upload is req's body under watch.
func (b *Breaker) send(ctx context.Context, req *clients.Request, upload *upload) (*clients.Response, outcome, error) {
	resp, err := b.next.Do(ctx, req)
	upload.unwatch(req)
	switch {
	case err != nil && upload.toBlame(err):
		return nil, neutral, err
	case err != nil:
		return nil, b.failures.verdict(err), err
	case b.failures.status(resp.Status):
		return resp, failure, nil
	}
	return resp, success, nil
}

// switched reports whether the exchange has left HTTP with resp: upstream has done
// its part then, however long the tunnel lasts and however it ends.
func switched(resp *clients.Response) bool { return resp.Upgraded != nil }

// call sends req through a closed breaker.
func (b *Breaker) call(ctx context.Context, req *clients.Request, p period) (*clients.Response, error) {
	resp, o, err := b.send(ctx, req, watch(req))
	if o != success {
		b.record(p, o)
		return resp, err
	}
	if switched(resp) {
		b.record(p, success)
		return resp, nil
	}
	c := b.calls.Get().(*call)
	c.began = p
	resp.OnEnd(c.end)
	return resp, nil
}

// record counts an outcome, if the period that the request began in still lasts.
func (b *Breaker) record(began period, o outcome) {
	if o == neutral || period(b.period.Load()) != began {
		return
	}
	if report, err := b.gate.Allow(); err == nil {
		report(o.err())
	}
}

// A call is a request that a closed breaker let through, from the response head
// to the end of its body.
type call struct {
	b     *Breaker
	began period
	end   func(error) // finish, bound once: a hook costs no allocation
}

func (c *call) finish(err error) {
	b, began := c.b, c.began
	b.calls.Put(c)
	b.record(began, b.failures.verdict(err))
}

// probe sends req as one of the few that a half-open breaker lets through, and
// reports on it exactly once, whatever happens.
func (b *Breaker) probe(ctx context.Context, req *clients.Request, report func(error)) (*clients.Response, error) {
	p := b.enter(report, watch(req))
	limit := time.AfterFunc(b.probeLimit, p.expire)
	settle := func(o outcome) {
		limit.Stop()
		p.settle(o)
	}
	returned := false
	defer func() {
		if !returned { // a panic, or the goroutine's end: not upstream's doing
			settle(neutral)
		}
	}()
	resp, o, err := b.send(ctx, req, p.upload)
	returned = true
	if o != success {
		settle(o)
		return resp, err
	}
	if switched(resp) {
		settle(success)
		return resp, nil
	}
	p.answered.Store(true)
	resp.OnEnd(func(err error) { settle(b.failures.verdict(err)) })
	return resp, nil
}

// A probe reports once: at its end, at its limit, or when a request that finds no
// place displaces it, whichever comes first.
type probe struct {
	b        *Breaker
	report   func(error)
	began    time.Time
	upload   *upload     // nil without a body
	answered atomic.Bool // with a head that promises success
	settled  atomic.Bool
}

// enter begins a probe, and lists it if it is one that may be displaced.
func (b *Breaker) enter(report func(error), u *upload) *probe {
	p := &probe{b: b, report: report, began: time.Now(), upload: u}
	if u != nil {
		b.mu.Lock()
		b.uploads[p] = struct{}{}
		b.mu.Unlock()
	}
	return p
}

// displace ends one probe that waits for its caller, and reports whether there was
// one.
func (b *Breaker) displace() bool {
	b.mu.Lock()
	var late *probe
	for p := range b.uploads {
		if p.upload.isWaiting() && time.Since(p.began) >= uploadGrace {
			late = p
			break
		}
	}
	b.mu.Unlock()
	if late == nil {
		return false
	}
	late.expire()
	return true
}

func (p *probe) settle(o outcome) {
	if !p.settled.CompareAndSwap(false, true) {
		return
	}
	if p.upload != nil {
		p.b.mu.Lock()
		delete(p.b.uploads, p)
		p.b.mu.Unlock()
	}
	p.report(o.err())
}

// expire ends the probe before its exchange.
func (p *probe) expire() {
	if p.answered.Load() {
		p.settle(success)
	} else {
		p.settle(neutral)
	}
}
