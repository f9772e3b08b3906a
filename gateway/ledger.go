package gateway

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gatebench/clients"
	"gatebench/gateway/admission"
	"gatebench/gateway/breaker"
)

// A ledger is what a gateway has counted, whichever configurations it had meanwhile:
// its counters never fall, and what its old clients still hold is held by it.
type ledger struct {
	meter

	applied, refused atomic.Int64 // configurations

	mu     sync.Mutex
	living []source // the last is the one that new requests go to
	past   totals   // of those that are gone
}

// A source counts for one configuration.
type source struct {
	dialer  *clients.Dialer
	gate    *admission.Gate  // nil with pool policy library
	breaker *breaker.Breaker // nil if not enabled
}

// totals are sums over sources.
type totals struct {
	opened, open       int64
	inUse, pending     int64
	connecting, waited time.Duration
	transitions        map[breaker.Transition]int64
}

func (l *ledger) enter(s source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.living = append(l.living, s)
}

// leave keeps of a source what must not be forgotten. Its client is closed.
func (l *ledger) leave(s source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.living, s)
	if i < 0 {
		return
	}
	l.living = slices.Delete(l.living, i, i+1)
	l.past = l.past.plus(s)
	l.past.open, l.past.inUse, l.past.pending = 0, 0, 0
}

// read is the sum of all, and the source that new requests go to.
func (l *ledger) read() (sum totals, newest source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum = l.past
	for _, s := range l.living {
		sum, newest = sum.plus(s), s
	}
	return sum, newest
}

func (t totals) plus(s source) totals {
	t.opened += s.dialer.Opened()
	t.open += s.dialer.Open()
	t.connecting += s.dialer.Spent()
	if s.gate != nil {
		t.inUse += int64(s.gate.InUse())
		t.pending += s.gate.Pending()
		t.waited += s.gate.Waited()
	}
	sums := map[breaker.Transition]int64{}
	for _, change := range breaker.Transitions() {
		sums[change] = t.transitions[change]
		if s.breaker != nil {
			sums[change] += s.breaker.Count(change)
		}
	}
	t.transitions = sums
	return t
}
