// Package breaker gives a failing upstream a rest: a circuit breaker, gobreaker's,
// as a layer around a client.
package breaker

import "time"

// MinimumWindow is the shortest window that outcomes can be counted in.
const MinimumWindow = 100 * time.Millisecond
