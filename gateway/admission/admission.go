// Package admission bounds how many exchanges run at once and how many requests
// wait for their turn, in the same way for every client. It is needed since the
// libraries have pools but not the same ones: net/http's queue has neither a limit
// nor a timeout, and fasthttp has no queue at all.
//
// The words are those of Reactor Netty's pool: max connections, pending acquires,
// pending timeout. As a place is held until the response has ended, a place is a
// connection under HTTP/1.1.
//
// It leaves to the client that there are as many connections as places.
package admission

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"gatebench/clients"
)

// Settings are the size of the gate.
type Settings struct {
	// MaxConns is how many exchanges run at once; at least 1.
	MaxConns int
	// MaxPending is how many requests wait for a place; one more is turned
	// away at once.
	MaxPending int
	// PendingTimeout is how long a request waits for a place; above 0 unless
	// MaxPending is 0.
	PendingTimeout time.Duration
}

// A Gate is a client that lets only so many requests through to the next one,
// first come first served.
type Gate struct {
	next clients.Client

	// places holds one token for each place taken. A channel is the queue that
	// is wanted: the runtime serves blocked senders in their order and hands
	// over a place directly, so that a newcomer cannot overtake; a sender that
	// gives up leaves the queue without taking a place.
	places  chan struct{}
	pending atomic.Int64
	waited  atomic.Int64 // ns, of all that had to wait

	maxPending     int64
	pendingTimeout time.Duration

	leave func(error) // release, bound once: a hook costs no allocation
}

var _ clients.Client = (*Gate)(nil)

// New returns a gate in front of next.
func New(s Settings, next clients.Client) *Gate {
	g := &Gate{
		next:           next,
		places:         make(chan struct{}, s.MaxConns),
		maxPending:     int64(s.MaxPending),
		pendingTimeout: s.PendingTimeout,
	}
	g.leave = func(error) { g.release() }
	return g
}

// InUse is how many places are taken.
func (g *Gate) InUse() int { return len(g.places) }

// Pending is how many requests wait for a place.
func (g *Gate) Pending() int64 { return g.pending.Load() }

// Waited is how long requests have waited for a place, all together.
func (g *Gate) Waited() time.Duration { return time.Duration(g.waited.Load()) }

// Close closes the next client.
func (g *Gate) Close() error { return g.next.Close() }

// Do passes req on once there is a place for it, and gives the place back when
// the exchange ends. Its own errors are of kind PoolExhausted, and Canceled if ctx
// ends while req waits.
func (g *Gate) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	if err := g.acquire(ctx); err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept { // an error or a panic
			g.release()
		}
	}()
	resp, err := g.next.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	kept = true
	resp.OnEnd(g.leave)
	return resp, nil
}

func (g *Gate) release() { <-g.places }

func (g *Gate) acquire(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
		return g.wait(ctx)
	}
}

// The two ways to find the pool exhausted.
var (
	errQueueFull = errors.New("no place free, and as many requests are waiting for one as may")
	errWaited    = errors.New("no place became free in time")
)

func (g *Gate) wait(ctx context.Context) error {
	if !g.enqueue() {
		return &clients.Error{Kind: clients.PoolExhausted, Err: errQueueFull}
	}
	defer g.pending.Add(-1)
	began := time.Now()
	defer func() { g.waited.Add(int64(time.Since(began))) }()
	timeout := time.NewTimer(g.pendingTimeout)
	defer timeout.Stop()
	select {
	case g.places <- struct{}{}:
		return nil
	case <-timeout.C:
		return &clients.Error{Kind: clients.PoolExhausted, Err: errWaited}
	case <-ctx.Done():
		return &clients.Error{Kind: clients.Canceled, Err: context.Cause(ctx)}
	}
}

// enqueue counts one more request as waiting, unless that is too many.
func (g *Gate) enqueue() bool {
	for {
		n := g.pending.Load()
		if n >= g.maxPending {
			return false
		}
		if g.pending.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
