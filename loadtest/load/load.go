// Package load is the load engine: it sends requests to a URL on a schedule fixed
// beforehand, and records when each was due, sent and done. It knows no gateway:
// whatever speaks HTTP/1.1 can be its target.
//
//	due ──lag──▶ sent ─────service time─────▶ done
//	└──────────────response time─────────────────┘
//
// Under open load due comes from the schedule alone, so a server that stalls is
// charged for every request that had to wait meanwhile; whoever measures from sent
// omits those (coordinated omission). Under closed load due is the moment the user
// became free.
//
// Each request goes on the wire at most once. A connection that was found closed
// before the request was written is replaced in silence; one that breaks
// afterwards is an error, even where a browser would have tried again: a
// retry here would hide what the target did, and the counts on both sides of
// the wire would differ.
//
// It leaves to others: starting what it loads, comparing runs, drawing.
//
// The trap: the engine shares the machine with its target more often than not.
// [Summary.Valid] is false where it was the engine that set the figures.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gatebench/internal/conf"
)

// Progress is how far a run has come.
type Progress struct {
	Elapsed time.Duration // since the start, warm-up included
	Total   time.Duration // warm-up and window; 0 where iterations end the run
	Warmup  bool          // still warming up
	Done    int64         // measured requests that have ended
	Failed  int64         // those of them that failed
	P99     time.Duration // response time of the ok ones so far; 0 without any
}

// progressEvery is how often a run reports.
const progressEvery = 250 * time.Millisecond

// Run loads t with p and says what it measured. When ctx ends it stops at once:
// what is in flight is cut, and the summary says interrupted. progress, unless
// nil, is called at most four times a second from one goroutine.
//
// A target that cannot be reached is a result: its requests failed. An error
// means that nothing could be sent at all: a bad profile or target (a
// [conf.Problem] for each bad value), or a host that has no address.
func Run(ctx context.Context, t Target, p Profile, progress func(Progress)) (*Summary, error) {
	m, err := t.prepare(p)
	if err := errors.Join(err, runnable(p)); err != nil {
		return nil, err
	}
	dial, err := newDialer(ctx, m.endpoint)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	once := func(ctx context.Context, p Profile) (*Summary, error) {
		return runOnce(ctx, t.URL, newEngine(m, p, dial), since(begin, progress))
	}
	if p.Executor == MaxRateSearch {
		return searchRun(ctx, p, once)
	}
	s, err := once(ctx, p)
	if err == nil {
		s.refuse()
	}
	return s, err
}

func runOnce(ctx context.Context, url string, e *engine, progress func(Progress)) (*Summary, error) {
	if err := e.run(ctx, newWaker, progress); err != nil {
		return nil, err
	}
	s := e.summary()
	s.URL = url
	return s, nil
}

// since reports progress in time since begin, where several runs are one.
func since(begin time.Time, progress func(Progress)) func(Progress) {
	if progress == nil {
		return nil
	}
	return func(p Progress) {
		earlier := time.Since(begin) - p.Elapsed
		p.Elapsed += earlier
		if p.Total > 0 {
			p.Total += earlier
		}
		progress(p)
	}
}

// runnable is what a profile must be beyond valid.
func runnable(p Profile) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var c conf.Check
	c.That(!p.OfSaturation(), "rate", "a share of a saturation that is not known here: give requests per second, like 1000/s, or that saturation")
	return c.Err()
}

// run carries out the profile. It returns when nothing of it is left running.
func (e *engine) run(ctx context.Context, newWaker func(*engine) (waker, error), progress func(Progress)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.ctx = ctx

	pace, err := newWaker(e)
	if err != nil {
		return fmt.Errorf("make the pacer's timer: %w", err)
	}
	defer pace.close()
	look, err := newWaker(e)
	if err != nil {
		return fmt.Errorf("make the census's timer: %w", err)
	}
	defer look.close()
	drive := e.closedLoad
	if e.p.Open() {
		drive = func() { e.openLoad(pace) }
	}

	var aside sync.WaitGroup
	finished := make(chan struct{})
	stopWatch := context.AfterFunc(ctx, func() { e.interrupt(); look.wake() })
	aside.Go(func() { e.meterWindow(finished) })
	aside.Go(func() { e.census(look) })
	if progress != nil {
		aside.Go(func() { e.report(progress, finished) })
	}
	drive()
	look.wake()
	stopWatch()
	close(finished)
	aside.Wait()
	return nil
}

// engine is one run. Moments are offsets from begin on the monotonic clock.
type engine struct {
	ctx  context.Context
	mix  *mix
	p    Profile
	dial dialFunc

	begin time.Time
	from  time.Duration // start of the measured window: the warm-up's end
	until time.Duration // its planned end, forever if iterations alone end it

	schedule schedule  // of open load
	stages   []stretch // of a ramping executor, the warm-up not included

	// stopped is when the run was interrupted, 0 if it was not.
	stopped atomic.Int64

	shards []*shard
	conns  connections

	// tickets are the iterations handed out; spent closes with the last, which
	// was handed out at spentAt: forever until then.
	tickets atomic.Int64
	spent   chan struct{}
	spentAt atomic.Int64

	// Set when the run has ended: planned and never started, and under open load
	// how many waited for a user.
	dropped, waited int64
	losses
	cap   int // of users
	cores int

	usageFrom, usageUntil usage
	looks                 []float64 // of the census
}

// forever is later than any run ends.
const forever = time.Duration(math.MaxInt64)

func newEngine(m *mix, p Profile, dial dialFunc) *engine {
	e := &engine{
		mix: m, p: p, dial: dial, spent: make(chan struct{}),
		begin: time.Now(), from: p.Warmup, until: p.Warmup + p.Window(), cores: runtime.GOMAXPROCS(0)}
	if e.until == e.from {
		e.until = forever
	}
	e.spentAt.Store(int64(forever))
	if p.Open() {
		e.schedule = p.schedule()
	}
	if p.ramping() {
		e.stages = p.stretches()
		if p.Warmup > 0 {
			e.stages = e.stages[1:]
		}
	}
	// One recorder per core: a histogram weighs a quarter of a megabyte, so one
	// per user would cost more memory than the users do.
	for range e.cores {
		e.shards = append(e.shards, newShard(len(e.stages), len(m.kinds), intervalOf(p.Window())))
	}
	return e
}

func (e *engine) now() time.Duration { return time.Since(e.begin) }

// over reports whether no new request may start.
func (e *engine) over(now time.Duration) bool { return now >= e.until || e.stopped.Load() != 0 }

// dueUntil is until when requests are due: what is in flight later is only awaited.
func (e *engine) dueUntil() time.Duration { return min(e.until, time.Duration(e.spentAt.Load())) }

// interrupt ends the run at once. Whoever sees first that the context has ended
// calls it, so that nobody acts on one and not yet on the other.
func (e *engine) interrupt() {
	if e.stopped.CompareAndSwap(0, int64(max(e.now(), 1))) {
		e.conns.wakeAll()
	}
}

// measured reports whether a request that was due at due counts.
func (e *engine) measured(due time.Duration) bool { return due >= e.from }

// sleepUntil waits for a moment, or less if the run ends before. Its precision is
// that of Go's timers, a millisecond when the process is idle.
func (e *engine) sleepUntil(t time.Duration) {
	d := t - e.now()
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.spent:
	case <-e.ctx.Done():
		e.interrupt()
	}
}

// meterWindow reads the process's usage at the window's edges.
func (e *engine) meterWindow(finished <-chan struct{}) {
	wait := func(until time.Duration) {
		if until == forever {
			<-finished
			return
		}
		timer := time.NewTimer(max(0, until-e.now()))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-finished:
		}
	}
	wait(e.from)
	e.usageFrom = readUsage(e.now())
	wait(e.until)
	e.usageUntil = readUsage(e.now())
}

func (e *engine) report(progress func(Progress), finished <-chan struct{}) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		p := Progress{Elapsed: e.now()}
		p.Warmup = p.Elapsed < e.from
		if e.until != forever {
			p.Total = e.until
		}
		var ok distribution
		for _, s := range e.shards {
			done, failed := s.progress(&ok)
			p.Done += done
			p.Failed += failed
		}
		p.P99 = ok.quantile(.99)
		progress(p)
	}
}
