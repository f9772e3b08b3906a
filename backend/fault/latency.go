package fault

import (
	"time"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// longest bounds what a fault may hold a request up for.
const longest = 10 * time.Minute

// A service that has become slow. The worker is held meanwhile.
type latency time.Duration

var latencyKind = kind{
	key:   "latency",
	asked: func(f Fault) bool { return f.Latency != 0 },
	check: func(f Fault, c *conf.Check) {
		c.That(f.Latency > 0 && f.Latency <= longest, "latency", "%v is not a time to wait: write more than 0s, up to %v", f.Latency, longest)
	},
	words:   func(f Fault) string { return "latency " + f.Latency.String() },
	perform: func(f Fault) effect { return latency(f.Latency) },
}

func (l latency) answer(x Exchange) *clients.Response {
	if x.Wait(x.Ctx, time.Duration(l)) != nil {
		return nil
	}
	return x.Next()
}
