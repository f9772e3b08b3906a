package gateway

import (
	"context"
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
	now    atomic.Pointer[generation]
	closed sync.WaitGroup // of all gateways
}

var _ server.Handler = (*Switch)(nil)

// NewSwitch serves with g, which it owns from then on.
func NewSwitch(g *Gateway) *Switch {
	s := &Switch{}
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

// Close closes the newest gateway, and waits for those before it. Requests have ended.
func (s *Switch) Close() error {
	g := s.now.Load()
	g.leave()
	s.closed.Wait()
	return g.err
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
	s.closed.Add(1)
	return n
}

// enter finds the newest generation that is still that after it has been entered:
// before, it may have closed.
func (s *Switch) enter() *generation {
	for {
		g := s.now.Load()
		g.users.Add(1)
		if g == s.now.Load() {
			return g
		}
		g.leave()
	}
}

func (g *generation) leave() {
	if g.users.Add(-1) == 0 {
		// Aside: whoever ended the last request need not wait for it.
		g.once.Do(func() { go g.close() })
	}
}

func (g *generation) close() {
	defer g.s.closed.Done()
	g.err = g.Gateway.Close()
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
