package clients

import (
	"fmt"
	"slices"
	"strings"

	"gatebench/internal/conf"
)

// Validate reports every bad value of the section.
func (p Pool) Validate() error {
	var c conf.Check
	switch p.Policy {
	case PoolEqual:
		c.That(p.MaxConns >= 1, "max_conns", "must be at least 1")
		c.That(p.MaxPending >= 0, "max_pending", "must not be negative")
		c.That(p.PendingTimeout >= 0, "pending_timeout", "must not be negative")
		c.That(p.IdleTimeout >= 0, "idle_timeout", "must not be negative")
	case PoolLibrary:
		d := DefaultSettings().Pool
		const refused = "cannot be set with policy: library, which leaves the pool as the library ships it"
		c.That(p.MaxConns == d.MaxConns, "max_conns", refused)
		c.That(p.MaxPending == d.MaxPending, "max_pending", refused)
		c.That(p.PendingTimeout == d.PendingTimeout, "pending_timeout", refused)
		c.That(p.IdleTimeout == d.IdleTimeout, "idle_timeout", refused)
		c.That(p.KeepAlive == d.KeepAlive, "keep_alive", refused)
	default:
		c.That(false, "policy", "%q is unknown: write equal or library", string(p.Policy))
	}
	return c.Err()
}

// Validate reports every bad value of the section.
func (t Timeouts) Validate() error {
	var c conf.Check
	c.That(t.Connect >= 0, "connect", "must not be negative")
	c.That(t.ResponseHeader >= 0, "response_header", "must not be negative")
	c.That(t.Request >= 0, "request", "must not be negative")
	c.That(t.BodyIdle >= 0, "body_idle", "must not be negative")
	return c.Err()
}

// Validate reports every bad value of the section.
func (r Retry) Validate() error {
	var c conf.Check
	c.That(r.MaxAttempts >= 1, "max_attempts", "must be at least 1, which is no retry")
	for i, w := range r.RetryOn {
		c.That(slices.Contains(RetryConditions(), w), fmt.Sprintf("retry_on[%d]", i),
			"%q is unknown: write any of %s", w, strings.Join(RetryConditions(), ", "))
	}
	c.That(r.Backoff.Base >= 0, "backoff.base", "must not be negative")
	c.That(r.Backoff.Max >= r.Backoff.Base, "backoff.max", "must not be less than backoff.base, %v", r.Backoff.Base)
	c.That(r.PerTryTimeout >= 0, "per_try_timeout", "must not be negative")
	c.That(r.Budget >= 0 && r.Budget <= 1, "budget", "must be from 0%% to 100%%")
	return c.Err()
}

// Validate reports every bad value of the section.
func (l Limits) Validate() error {
	var c conf.Check
	c.That(l.Header > 0, "header", "must be above 0B: an unbounded message head is an open door")
	c.That(l.RequestBody >= 0, "request_body", "must not be negative")
	c.That(l.ResponseBody >= 0, "response_body", "must not be negative")
	return c.Err()
}
