package cli

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/backend"
	"gatebench/gateway"
)

// stuck is a service that takes a while to drain.
type stuck struct {
	drains time.Duration
	closed chan struct{}
}

func (s *stuck) Serve(net.Listener) error { <-s.closed; return nil }
func (s *stuck) Close() error             { close(s.closed); return nil }
func (s *stuck) Shutdown(ctx context.Context) error {
	select {
	case <-time.After(s.drains):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{} }

// A caller who has got stuck is given up after the silence that is borne, at worst
// after a second one: stopping waits for that.
func TestStoppingOutlastsAStuckCaller(t *testing.T) {
	for name, silence := range map[string]time.Duration{
		"the gateway's default": gateway.DefaultConfig().Timeouts.BodyIdle,
		"the backend's":         backend.BodyIdle,
		"a long one":            5 * time.Minute,
		"hardly any":            time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				stop()
				s := &stuck{drains: 2*silence + time.Second, closed: make(chan struct{})}
				if err := serve(ctx, io.Discard, nowhere{}, s, silence); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStoppingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		start := time.Now()
		s := &stuck{drains: time.Hour, closed: make(chan struct{})}
		if err := serve(ctx, io.Discard, nowhere{}, s, 0); err == nil {
			t.Error("an hour was waited for")
		}
		if took := time.Since(start); took != leastDrain {
			t.Errorf("took %v, want %v", took, leastDrain)
		}
	})
}
