package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/server"
)

// A Switch is a gateway whose configuration changes while it serves. New requests go
// to the newest gateway; those on their way, bodies and tunnels too, end with the one
// that they began with, whose client is closed after the last of them.
type Switch struct {
	now atomic.Pointer[generation]

	mu     sync.Mutex
	living map[*generation]struct{} // that are not closed
	closed sync.WaitGroup           // of all generations
}

var _ server.Handler = (*Switch)(nil)

// NewSwitch serves with g, which it owns from then on.
func NewSwitch(g *Gateway) *Switch {
	s := &Switch{living: map[*generation]struct{}{}}
	s.now.Store(s.generation(g))
	return s
}

// Serve implements [server.Handler].
func (s *Switch) Serve(ctx context.Context, in *server.Inbound) *clients.Response {
	g := s.enter()
	served := false
	defer func() {
		if !served { // a panic, or nobody left to answer
			g.leave()
		}
	}()
	resp := g.Gateway.Serve(ctx, in)
	if resp != nil {
		served = true
		resp.AfterEnd(g.end)
	}
	return resp
}

// Admin is the handler for admin.listen: the newest gateway's own paths.
func (s *Switch) Admin() server.Handler { return adminPaths{s} }

type adminPaths struct{ s *Switch }

func (a adminPaths) Serve(ctx context.Context, in *server.Inbound) *clients.Response {
	return a.s.now.Load().own.Serve(ctx, in)
}

// To sends new requests to next, which was made to succeed [Switch.Now].
func (s *Switch) To(next *Gateway) {
	old := s.now.Swap(s.generation(next))
	next.ledger.applied.Add(1)
	old.leave()
}

// Refused counts a configuration that was not taken.
func (s *Switch) Refused() { s.Now().ledger.refused.Add(1) }

// Now is the gateway that new requests go to.
func (s *Switch) Now() *Gateway { return s.now.Load().Gateway }

// Close closes every gateway, those too that requests are still on their way through: it
// is what ends a request that nothing else does.
func (s *Switch) Close() error {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.living))
	s.mu.Unlock()
	for _, g := range all {
		g.shut()
	}
	s.closed.Wait()
	return s.now.Load().err
}

// A generation is a gateway and who uses it: its requests, and the switch as long as
// it is the newest.
type generation struct {
	*Gateway
	s     *Switch
	users atomic.Int64
	once  sync.Once
	end   func(error) // leave, bound once: a hook costs no allocation
	err   error       // of closing
}

func (s *Switch) generation(g *Gateway) *generation {
	n := &generation{Gateway: g, s: s}
	n.end = func(error) { n.leave() }
	n.users.Store(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living[n] = struct{}{}
	s.closed.Add(1)
	return n
}

// enter enters the newest generation.
func (s *Switch) enter() *generation {
	for {
		if g := s.now.Load(); g.entered() {
			return g
		}
	}
}

// entered makes one more user of g, and reports whether that was in time: it is if g is
// still the newest afterwards. Before that, it may have closed.
func (g *generation) entered() bool {
	g.users.Add(1)
	if g == g.s.now.Load() {
		return true
	}
	g.leave()
	return false
}

func (g *generation) leave() {
	if g.users.Add(-1) == 0 {
		g.shut()
	}
}

// shut closes the gateway, once and aside: whoever ended the last request need not wait
// for it.
func (g *generation) shut() {
	g.once.Do(func() {
		go func() {
			defer g.s.closed.Done()
			g.err = g.Gateway.Close()
			g.s.mu.Lock()
			defer g.s.mu.Unlock()
			delete(g.s.living, g)
		}()
	})
}

// Fixed names every key of next that a gateway with c cannot take up while it serves.
func (c Config) Fixed(next Config) error {
	var check conf.Check
	same := func(equal bool, path string, now, then any) {
		check.That(equal, path, "is %v while the gateway serves, and cannot become %v: start it anew for that", now, then)
	}
	same(c.Listen == next.Listen, "listen", c.Listen, next.Listen)
	same(c.Server == next.Server, "server", c.Server, next.Server)
	same(c.Admin.Listen == next.Admin.Listen, "admin.listen", quoted(c.Admin.Listen), quoted(next.Admin.Listen))
	same(c.Limits.Header == next.Limits.Header, "limits.header", c.Limits.Header, next.Limits.Header)
	same(c.Limits.RequestBody == next.Limits.RequestBody, "limits.request_body", c.Limits.RequestBody, next.Limits.RequestBody)
	same(c.Timeouts.BodyIdle == next.Timeouts.BodyIdle, "timeouts.body_idle", c.Timeouts.BodyIdle, next.Timeouts.BodyIdle)
	return check.Err()
}

// quoted shows an empty value.
func quoted(s string) string { return `"` + s + `"` }
