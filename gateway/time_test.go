package gateway_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/clients"
	"gatebench/gateway"
)

// Each phase has the time that was spent in it, and no other.
func TestTimeIsCountedByPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, func(c *gateway.Config) { c.Pool.MaxConns, c.Pool.MaxPending = 1, 1 })
		h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
			time.Sleep(30 * time.Millisecond)
			return responds(200)(ctx, r)
		}
		var both sync.WaitGroup
		for range 2 { // the second waits for the first: 30 ms until the head, 20 to its end
			both.Go(func() {
				resp := h.Serve(t.Context(), inbound("GET", "/"))
				time.Sleep(20 * time.Millisecond)
				resp.End(nil)
			})
		}
		both.Wait()
		for phase, seconds := range map[string]string{"pool_wait": "0.05", "connect": "0", "upstream": "0.06", "relay": "0.04"} {
			wantMetrics(t, h, `gatebench_gateway_time_seconds_total{phase="`+phase+`"}`, " "+seconds)
		}
	})
}

// A request that never left has no phases.
func TestARefusedRequestSpendsNoTime(t *testing.T) {
	h := open(t)
	h.serve(inbound("GET", "no path"))
	for _, phase := range []string{"pool_wait", "upstream", "relay"} {
		wantMetrics(t, h, `gatebench_gateway_time_seconds_total{phase="`+phase+`"}`, " 0")
	}
}
