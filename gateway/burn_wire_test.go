package gateway_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"gatebench/gateway"
	"gatebench/internal/process"
)

// Every request that is passed on burns, the gateway's own paths do not, and what it
// burns stands at /-/about. The bounds leave room for a busy machine: how exact it is
// shows in `make truth`.
func TestBurnIsSpentOnEveryRequest(t *testing.T) {
	if _, ok := process.ThreadCPU(); !ok {
		t.Skip("this system does not tell the CPU time of a thread")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const requests, each = 20, 2 * time.Millisecond
	h := open(t, func(c *gateway.Config) { c.Burn = each })
	used := func(target string) time.Duration {
		from, _ := process.ThreadCPU()
		for range requests {
			h.serve(inbound("GET", target))
		}
		to, _ := process.ThreadCPU()
		return to - from
	}
	if got := used("/product"); got < requests*each/4 {
		t.Errorf("%d requests used %v", requests, got)
	}
	if got := used("/-/healthz"); got > requests*each/4 {
		t.Errorf("%d looks at healthz used %v", requests, got)
	}
	if _, about := h.serve(inbound("GET", "/-/about")); !strings.Contains(about, `"burn": "2ms"`) {
		t.Error(about)
	}
}
