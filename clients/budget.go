package clients

import (
	"sync"
	"time"
)

const (
	budgetWindow = 10 * time.Second
	budgetStep   = time.Second

	// budgetFloor is how many retries a window always holds, so that a
	// gateway with little traffic can retry at all: one request in ten
	// seconds earns a share of nothing.
	budgetFloor = 10
)

// budget bounds retries to a share of the requests of the last ten seconds, so
// that retries cannot multiply an outage:
//
//	retries ≤ max(budgetFloor, share · requests)
//
// A share of 0 allows none. The window slides in steps of one second.
type budget struct {
	share float64 // in [0,1]

	mu       sync.Mutex
	start    time.Time // when the current step began
	current  int       // its index
	steps    [budgetWindow / budgetStep]budgetCount
	requests int // sums over steps
	retries  int
}

type budgetCount struct{ requests, retries int }

// request counts one logical request.
func (b *budget) request() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	b.steps[b.current].requests++
	b.requests++
}

// retry takes one retry from the budget if there is one.
func (b *budget) retry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	if b.share <= 0 || float64(b.retries+1) > max(budgetFloor, b.share*float64(b.requests)) {
		return false
	}
	b.steps[b.current].retries++
	b.retries++
	return true
}

// advance moves the window up to now and forgets what fell out of it.
func (b *budget) advance(now time.Time) {
	if now.Sub(b.start) >= budgetWindow {
		b.steps, b.requests, b.retries = [len(b.steps)]budgetCount{}, 0, 0
		b.start = now
		return
	}
	for next := b.start.Add(budgetStep); !next.After(now); next = next.Add(budgetStep) {
		b.start = next
		b.current = (b.current + 1) % len(b.steps)
		old := &b.steps[b.current]
		b.requests -= old.requests
		b.retries -= old.retries
		*old = budgetCount{}
	}
}
