// Package fault is what can be wrong with an upstream, on purpose: one small file
// for each way. A fault answers in the backend's place or bends its answer, over
// either inbound server.
//
// It leaves to others: when a fault is in force and who may say so (the backend's
// own path), and what goes wrong between two healthy ends (the wire faults of a
// plan).
//
// The trap: a share is dealt from a deck and not drawn at random, so that 5 % of
// 1,000 requests are 50 and not about 50. Retries are requests too.
package fault

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/server"
)

// Fault is one thing that goes wrong, as in YAML: exactly one of its keys, and a
// share.
type Fault struct {
	// Status is answered in place of the service, at once: 400 to 599.
	Status int `yaml:"status"`
	// Latency comes on top of every answer's own.
	Latency time.Duration `yaml:"latency"`
	// Hang answers nothing, until the caller gives up.
	Hang bool `yaml:"hang"`
	// Reset breaks the connection by a TCP reset: before-head or after-head.
	Reset string `yaml:"reset"`
	// SlowBody is how long a body takes after its head, in ten pieces.
	SlowBody time.Duration `yaml:"slow_body"`
	// Truncate ends the connection in order after half of the announced body.
	Truncate bool `yaml:"truncate"`
	// Length is a wrong Content-Length: long announces twice what comes, and
	// then says nothing; short announces half, so that the rest follows where
	// the next answer is due.
	Length string `yaml:"length"`
	// Share of the requests that meet the fault. Default 100%.
	Share conf.Ratio `yaml:"share"`
}

// An effect carries out one fault on one exchange.
type effect interface {
	answer(Exchange) *clients.Response
}

// Exchange is one request that meets a fault.
type Exchange struct {
	Ctx context.Context
	In  *server.Inbound
	// Wait is a sleep that ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
	// Next gives the service's own answer, nil where nobody is there to read
	// one. To be called once at most.
	Next func() *clients.Response
}

// A kind is one way for things to go wrong: its key, whether f asks for it, what of
// its value is bad, how it reads, and what it does.
type kind struct {
	key     string
	asked   func(f Fault) bool
	check   func(f Fault, c *conf.Check)
	words   func(f Fault) string
	perform func(f Fault) effect
}

// kinds lists every way, in the order of Fault's fields.
func kinds() []kind {
	return []kind{statusKind, latencyKind, hangKind, resetKind, slowBodyKind, truncateKind, lengthKind}
}

// Validate names every bad value at once, and refuses a fault of no kind or of two.
func (f Fault) Validate() error {
	var c conf.Check
	var asked, all []string
	for _, k := range kinds() {
		all = append(all, k.key)
		if !k.asked(f) {
			continue
		}
		asked = append(asked, k.key)
		k.check(f, &c)
	}
	const one = "write exactly one of %s"
	switch {
	case len(asked) == 0:
		c.That(false, "status", "no fault is named: "+one, strings.Join(all, ", "))
	case len(asked) > 1:
		c.That(false, asked[1], "stands beside %s: a fault is one thing, so "+one+", and several faults in windows of their own", asked[0], strings.Join(all, ", "))
	}
	if _, _, ok := deckOf(float64(f.Share)); f.Share > 0 && f.Share <= 1 {
		c.That(ok, "share", "%v cannot be dealt exactly: write a percentage with at most two decimals", f.Share)
	} else {
		c.That(false, "share", "%v of the requests is no fault: write more than 0%%, up to 100%%", f.Share)
	}
	return c.Err()
}

// String says what is wrong, "status 503" or "hang for 5% of requests".
func (f Fault) String() string {
	for _, k := range kinds() {
		if !k.asked(f) {
			continue
		}
		if f.Share < 1 {
			return fmt.Sprintf("%s for %v of requests", k.words(f), f.Share)
		}
		return k.words(f)
	}
	return "no fault"
}

// Absent are the keys of what f is not: they say nothing where it is written.
func (f Fault) Absent() []string {
	var keys []string
	for _, k := range kinds() {
		if !k.asked(f) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// effect is what a valid fault does.
func (f Fault) effect() effect {
	for _, k := range kinds() {
		if k.asked(f) {
			return k.perform(f)
		}
	}
	panic("fault: none")
}

// whole reads an answer to its end and finishes it; ok is false where there is
// none.
func whole(resp *clients.Response) (body []byte, ok bool) {
	if resp == nil {
		return nil, false
	}
	body, err := io.ReadAll(resp.Body)
	resp.End(err)
	return body, err == nil
}

// bodiless reports an answer to which no body belongs, so that nothing can be wrong
// with it.
func bodiless(in *server.Inbound, resp *clients.Response) bool {
	return resp == nil || in.Method == http.MethodHead || resp.ContentLength == 0
}
