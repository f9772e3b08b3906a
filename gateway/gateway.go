// Package gateway is the hop between downstream and upstream, written once for
// every server and every client: what is stripped, what is added, which reason
// gives which status.
//
// It leaves to others: reading and writing messages (package server), calling
// upstream (the client it is given), opening listeners. Which client that is it
// does not know; it has the name for /-/about only.
//
// The trap: order. A request passes the layers
//
//	hop → breaker → admission → client (with its retry inside)
//
// so that a breaker counts logical requests and an open one takes no place in the
// pool; and what came in is stripped before anything is added, or a caller could
// have the gateway's own fields dropped by naming them in Connection.
package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatebench/clients"
	"gatebench/gateway/admission"
	"gatebench/gateway/breaker"
	"gatebench/server"
)

// Parts are what a gateway is put together from.
type Parts struct {
	// Client calls upstream; it was built from [Config.Settings] with Dialer.
	Client clients.Client
	// Dialer has the connections' count.
	Dialer *clients.Dialer
	// Version is gatebench's own, and About* are the two libraries', for
	// /-/about.
	Version                  string
	AboutClient, AboutServer Library
	// Succeeds is the gateway that this one takes over from, whose counters it goes
	// on with; nil for the first.
	Succeeds *Gateway
}

// A Gateway passes requests on to one upstream with one client. It is the
// [server.Handler] of its main port.
type Gateway struct {
	config Config
	hop    *hop
	layer  clients.Client // the outermost
	own    *ownPaths
	ledger *ledger
	source source
}

var _ server.Handler = (*Gateway)(nil)

// New puts a gateway together. The gateway owns the client from then on.
func New(cfg Config, p Parts) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var (
		layer = p.Client
		gate  *admission.Gate
		brk   *breaker.Breaker
	)
	if cfg.Pool.Policy == clients.PoolEqual {
		gate = admission.New(cfg.admission(), layer)
		layer = gate
	}
	if cfg.CircuitBreaker.Enabled {
		brk = breaker.New(cfg.breaker(), layer)
		layer = brk
	}
	l, pseudonym := new(ledger), newPseudonym()
	if before := p.Succeeds; before != nil {
		l, pseudonym = before.ledger, before.hop.pseudonym
	}
	h, err := newHop(cfg, layer, &l.meter, pseudonym)
	if err != nil {
		return nil, err
	}
	if cfg.Mode == ModeTyped {
		var ok bool
		if h.decoder, ok = p.Client.(clients.Decoder); !ok {
			return nil, fmt.Errorf("gateway.mode: the client %s decodes nothing: write mode: proxy", cfg.Client)
		}
	}
	text, err := about(cfg, p.Version, p.AboutClient, p.AboutServer)
	if err != nil {
		return nil, err
	}
	s := source{p.Dialer, gate, brk}
	l.enter(s)
	return &Gateway{
		config: cfg,
		hop:    h,
		layer:  layer,
		own:    &ownPaths{about: text, metrics: newRegistry(newCollector(l))},
		ledger: l,
		source: s,
	}, nil
}

// Serve implements [server.Handler].
func (g *Gateway) Serve(ctx context.Context, in *server.Inbound) *clients.Response {
	if g.config.Admin.Listen == "" && strings.HasPrefix(in.Target, ownPrefix) {
		return g.own.Serve(ctx, in)
	}
	return g.hop.Serve(ctx, in)
}

// Admin is the handler for admin.listen: the own paths and nothing else.
func (g *Gateway) Admin() server.Handler { return g.own }

// Reject words an answer that the server gives without asking the handler, and
// counts it (see [server.Config]).
func (g *Gateway) Reject(status int, kind clients.Kind, detail string) *clients.Response {
	r := reason(kind)
	if r == noReason {
		r = fault
	}
	g.hop.meter.answered.add(status, r)
	return problem(status, problemBody(status, r.String(), detail))
}

// ServerConfig returns what the main port's server is built from, without a log:
// what it refuses by itself is worded and counted here.
func (g *Gateway) ServerConfig() server.Config {
	c := g.config.ServerConfig()
	c.Reject = g.Reject
	return c
}

// Close closes the client: idle connections end, new requests are refused.
func (g *Gateway) Close() error {
	err := g.layer.Close()
	g.ledger.leave(g.source)
	return err
}

func (c Config) admission() admission.Settings {
	return admission.Settings{
		MaxConns: c.Pool.MaxConns, MaxPending: c.Pool.MaxPending, PendingTimeout: c.Pool.PendingTimeout,
	}
}

func (c Config) breaker() breaker.Settings {
	b := c.CircuitBreaker
	return breaker.Settings{
		FailureRate: float64(b.FailureRate), ConsecutiveFailures: b.ConsecutiveFailures, FailureOn: b.FailureOn,
		MinimumCalls: b.MinimumCalls, Window: b.Window,
		OpenFor: b.OpenFor, HalfOpenCalls: b.HalfOpenCalls, ProbeLimit: c.probeLimit(),
	}
}

// probeLimit is longer than any request without a body can take up to its head: by
// then the timeouts have spoken, and what is still there is a long body. Without
// timeouts it is a minute at least.
func (c Config) probeLimit() time.Duration {
	longest := c.Timeouts.Request
	if longest == 0 {
		attempt := c.Timeouts.Connect + c.Timeouts.ResponseHeader
		longest = max(time.Minute, time.Duration(c.Retry.MaxAttempts)*(attempt+c.Retry.Backoff.Max))
	}
	return longest + c.Pool.PendingTimeout + time.Second
}
