package server

import (
	"context"
	"sync"
	"time"
)

// A lifetime is the context of one exchange over a library that gives none. It
// becomes a real one only when somebody asks for Done, which a client that
// cannot be canceled never does: then it costs one small allocation. It is not
// reused, for contexts are kept.
type lifetime struct {
	mu     sync.Mutex
	real   context.Context
	cancel context.CancelFunc
	ended  bool
}

var _ context.Context = (*lifetime)(nil)

func (l *lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

func (l *lifetime) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.real == nil {
		l.real, l.cancel = context.WithCancel(context.Background())
		if l.ended {
			l.cancel()
		}
	}
	return l.real.Done()
}

func (l *lifetime) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return context.Canceled
	}
	return nil
}

// Value passes on the question by which package context finds the real one, so
// that a child attaches to it directly; otherwise each child of a foreign context
// costs a goroutine. It is asked after Done.
func (l *lifetime) Value(key any) any {
	l.mu.Lock()
	ctx := l.real
	l.mu.Unlock()
	if ctx == nil {
		return nil
	}
	return ctx.Value(key)
}

// isAwaited reports whether anybody would notice its end.
func (l *lifetime) isAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.real != nil
}

// end is the end of the exchange, or of the peer.
func (l *lifetime) end() {
	l.mu.Lock()
	l.ended = true
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
