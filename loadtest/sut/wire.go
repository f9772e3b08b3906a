package sut

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"gatebench/internal/conf"
)

// WireFault is one thing that goes wrong between a gateway and its backend, on what
// the backend sends: exactly one key, and jitter beside latency.
type WireFault struct {
	// Latency delays every piece of an answer.
	Latency time.Duration `yaml:"latency"`
	// Jitter varies the latency by up to that much either way. Default 0s.
	Jitter time.Duration `yaml:"jitter"`
	// Bandwidth bounds what one connection carries in a second, like 100KB.
	Bandwidth conf.Size `yaml:"bandwidth"`
	// Reset breaks a connection by a TCP reset when an answer comes.
	Reset bool `yaml:"reset"`
	// Slice cuts answers into pieces of that size, a millisecond apart.
	Slice conf.Size `yaml:"slice"`
	// SlowClose keeps a connection that the backend has closed open for longer.
	SlowClose time.Duration `yaml:"slow_close"`
	// Silence swallows what comes; connections stay open.
	Silence bool `yaml:"silence"`
}

// IsZero reports whether there is no fault.
func (f WireFault) IsZero() bool { return f == WireFault{} }

// longestWire bounds a delay, so that no answer outlasts its experiment by much.
const longestWire = 10 * time.Minute

// kilobyte is the unit in which toxiproxy counts bandwidth.
const kilobyte conf.Size = 1000

// toxic is a fault in the terms of the proxy that carries it out.
type toxic struct {
	Type       string         `json:"type"`
	Attributes map[string]any `json:"attributes"`

	words string
}

// toxics are what f asks for: one, if it is valid.
func (f WireFault) toxics() []toxic {
	var ts []toxic
	add := func(asked bool, kind, words string, attributes map[string]any) {
		if asked {
			ts = append(ts, toxic{kind, attributes, words})
		}
	}
	words := fmt.Sprintf("latency %v", f.Latency)
	if f.Jitter != 0 {
		words += fmt.Sprintf(" ± %v", f.Jitter)
	}
	add(f.Latency != 0, "latency", words, map[string]any{"latency": f.Latency.Milliseconds(), "jitter": f.Jitter.Milliseconds()})
	add(f.Bandwidth != 0, "bandwidth", fmt.Sprintf("bandwidth %v/s", f.Bandwidth), map[string]any{"rate": int64(f.Bandwidth / kilobyte)})
	add(f.Reset, "reset_peer", "reset", map[string]any{"timeout": 0})
	add(f.Slice != 0, "slicer", fmt.Sprintf("slices of %v", f.Slice), map[string]any{"average_size": int64(f.Slice), "size_variation": 0, "delay": 1000})
	add(f.SlowClose != 0, "slow_close", fmt.Sprintf("slow close %v", f.SlowClose), map[string]any{"delay": f.SlowClose.Milliseconds()})
	add(f.Silence, "timeout", "silence", map[string]any{"timeout": 0})
	return ts
}

// Validate names every bad value at once.
func (f WireFault) Validate() error {
	var c conf.Check
	const one = "latency, bandwidth, reset, slice, slow_close, silence"
	n := len(f.toxics())
	c.That(n > 0, "latency", "no fault is named: write exactly one of %s", one)
	c.That(n <= 1, "latency", "%d faults stand in one window: write exactly one of %s, and the others in windows of their own", n, one)
	for path, d := range map[string]time.Duration{"latency": f.Latency, "jitter": f.Jitter, "slow_close": f.SlowClose} {
		c.That(d >= 0 && d <= longestWire && d%time.Millisecond == 0, path, "%v is not whole milliseconds from 1ms to %v", d, longestWire)
	}
	c.That(f.Jitter <= f.Latency, "jitter", "%v is more than the latency of %v that it varies", f.Jitter, f.Latency)
	c.That(f.Bandwidth >= 0 && f.Bandwidth%kilobyte == 0, "bandwidth", "%v is not whole kilobytes of 1000 bytes: write 1KB or more", f.Bandwidth)
	c.That(f.Slice >= 0 && f.Slice <= conf.MiB, "slice", "%v is no size for a piece: write 1B to 1MiB", f.Slice)
	return c.Err()
}

func (f WireFault) String() string {
	for _, t := range f.toxics() {
		return t.words
	}
	return "no fault"
}

// Wire is a proxy before a backend on which faults can be switched. It costs CPU time
// of this process and a hop of response time, so there is one only where a plan asks
// for wire faults, and then for every arm.
//
// The trap: a connection that was open when a reset was switched on ends in order and
// not by a reset, as toxiproxy prepares its sockets when they are opened.
type Wire struct{ proxy *toxiproxy.Proxy }

// NewWire starts a proxy on a free port of 127.0.0.1 before the address upstream.
func NewWire(upstream string) (*Wire, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // a toxic logs past the logger that it is given
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "backend", "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start the wire before %s: %w", upstream, err)
	}
	return &Wire{p}, nil
}

// Addr is where gateways reach the backend through the wire.
func (w *Wire) Addr() string { return w.proxy.Listen }

// Set replaces all faults by valid ones. It returns before it is done if ctx ends: a
// toxic in the middle of a piece is awaited.
func (w *Wire) Set(ctx context.Context, faults []WireFault) error {
	done := make(chan error, 1)
	go func() { done <- w.set(ctx, faults) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Wire) set(ctx context.Context, faults []WireFault) error {
	w.proxy.Toxics.ResetToxics(ctx)
	for i, f := range faults {
		for _, t := range f.toxics() {
			order, err := json.Marshal(struct {
				Name string `json:"name"`
				toxic
			}{fmt.Sprintf("%s %d", t.Type, i), t})
			if err != nil {
				return err
			}
			if _, err := w.proxy.Toxics.AddToxicJson(bytes.NewReader(order)); err != nil {
				return fmt.Errorf("switch the wire fault %q on: %w", t.words, err)
			}
		}
	}
	return nil
}

// Close ends the proxy and its connections.
func (w *Wire) Close() { w.proxy.Stop() }
