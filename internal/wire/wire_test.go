// Package wire is the gateway's black-box suite: one body of cases over every pair
// of server and client, with raw sockets upstream and downstream, so that a case
// sees bytes on the wire and not what a library makes of them. The gateway between
// them is the real one, the command with a YAML file.
//
// A case bears the rule that it checks and where the rule comes from: a trap of
// docs/traps.md (N1 … X12), a test of Go's net/http/httputil ReverseProxy, a report
// of somebody whose proxy broke (PX02 …), an RFC. What a library cannot do by
// itself is declared in its package (clients.Deviation); for a pair with such a
// library the case is turned round and has to fail, so that an upgrade which cures
// it turns the suite red. There are no skips.
//
// The package leaves to others what one side alone can show: package clienttest
// has the clients' contract, package server's tests the servers'. It has no code
// of its own.
//
// The trap: time. A case waits until something is seen, with a deadline; what must
// not happen is asked about after what must.
package wire

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatebench/clients/registry"
	"gatebench/server"
)

// A testCase is one rule and the exchange on the wire that shows whether a pair
// keeps it.
type testCase struct {
	name   string // short and stable: it names the subtest and stands in docs/traps.md
	rule   string // what must hold
	source string // where that comes from

	// unless names the declared deviations of client or server under which the
	// case has to fail.
	unless []string

	run func(*check)
}

func cases() []testCase {
	return slices.Concat(
		fieldCases(), responseFieldCases(), targetCases(), bodyCases(), framingCases(),
		faultCases(), poolCases(), retryCases(), breakerCases(), callerCases(), upgradeCases(), typedCases(),
	)
}

// A pair is what runs on either side of the hop.
type pair struct{ server, client string }

func (p pair) String() string { return p.server + "+" + p.client }

func pairs() (ps []pair) {
	for _, s := range server.Kinds() {
		for _, c := range registry.Names() {
			ps = append(ps, pair{s, c})
		}
	}
	return ps
}

// deviation returns the pair's own reason why the case cannot hold, "" if it must.
func (p pair) deviation(tc testCase) string {
	entry, _ := registry.Lookup(p.client)
	for _, d := range slices.Concat(entry.Deviations(), server.Deviations(p.server)) {
		if slices.Contains(tc.unless, d.Name) {
			return d.Reason
		}
	}
	return ""
}

func TestWire(t *testing.T) {
	t.Cleanup(func() {
		for noise := range strings.Lines(libraries.String()) {
			if strings.Contains(noise, "Unsolicited response received on idle HTTP channel") {
				continue // net/http says so of an upstream that answers twice, and rightly
			}
			t.Errorf("a library wrote to standard error, at a cost and with whatever stands in a URL (traps R18, H10): %s", noise)
		}
	})
	for _, tc := range cases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range pairs() {
				t.Run(p.String(), func(t *testing.T) {
					t.Parallel()
					reason := p.deviation(tc)
					problems := tc.check(p, t.TempDir(), reason != "")
					switch {
					case reason == "" && len(problems) > 0:
						t.Errorf("rule: %s (%s)\n%s", tc.rule, tc.source, strings.Join(problems, "\n"))
					case reason != "" && len(problems) == 0:
						t.Errorf("declared as a deviation (%s), yet it holds: remove the declaration\nrule: %s", reason, tc.rule)
					case reason != "":
						t.Logf("deviates as declared (%s): %s", reason, problems[0])
					}
				})
			}
		})
	}
}

func TestCasesAreWellNamed(t *testing.T) {
	var declared, seen []string
	for _, p := range pairs() {
		entry, _ := registry.Lookup(p.client)
		for _, d := range slices.Concat(entry.Deviations(), server.Deviations(p.server)) {
			declared = append(declared, d.Name)
		}
	}
	for _, tc := range cases() {
		if slices.Contains(seen, tc.name) {
			t.Errorf("two cases are named %s", tc.name)
		}
		seen = append(seen, tc.name)
		if tc.rule == "" || tc.source == "" {
			t.Errorf("%s: without rule or source", tc.name)
		}
		for _, u := range tc.unless {
			if !slices.Contains(declared, u) {
				t.Errorf("%s: nobody declares %s any more: the case holds for all now", tc.name, u)
			}
		}
	}
}

const (
	// bound is how long a case may take.
	bound = 30 * time.Second

	// patience is how long is waited for something that must happen: far more
	// than it takes, so that a busy machine does not matter.
	patience = 12 * time.Second

	// impatience is the same where it is declared not to happen.
	impatience = 1500 * time.Millisecond

	// short is a time-out that strikes; roomy is one that must not strike the
	// sound requests beside those that it is for, however busy the machine.
	short = 250 * time.Millisecond
	roomy = 6 * short
)

// A check is one case at work for one pair: it makes upstreams, a gateway and
// callers, and collects what is wrong.
type check struct {
	pair
	dir      string
	patience time.Duration
	over     chan struct{} // closes with the case

	mu       sync.Mutex
	problems []string
	sockets  []func() // close what a gateway could wait for
	gateways []func() // end afterwards
	running  sync.WaitGroup
}

// check runs the case and returns all that is wrong.
func (tc testCase) check(p pair, dir string, impatient bool) []string {
	c := &check{pair: p, dir: dir, patience: patience, over: make(chan struct{})}
	if impatient {
		c.patience = impatience
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				c.errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		tc.run(c)
	}()
	select {
	case <-done:
	case <-time.After(bound):
		c.errorf("not done within %v", bound)
	}
	close(c.over)
	c.cleanUp()
	<-done // what hung ends now, and begins nothing more
	c.cleanUp()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}

// cleanUp closes the sockets before the gateways, which wait for their exchanges.
func (c *check) cleanUp() {
	for _, fs := range []*[]func(){&c.sockets, &c.gateways} {
		c.mu.Lock()
		todo := *fs
		*fs = nil
		c.mu.Unlock()
		for _, f := range slices.Backward(todo) {
			f()
		}
	}
	c.running.Wait()
}

// mayBegin ends a case that has gone on beyond its bound.
func (c *check) mayBegin() {
	select {
	case <-c.over:
		runtime.Goexit()
	default:
	}
}

func (c *check) onEnd(list *[]func(), f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, f)
}

func (c *check) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// fatalf ends the case. Only the goroutine that runs the case calls it.
func (c *check) fatalf(format string, args ...any) {
	c.errorf(format, args...)
	runtime.Goexit()
}

// eventually waits until ok holds.
func (c *check) eventually(what string, ok func() bool) {
	for end := time.Now().Add(c.patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			c.errorf("%v later, not yet: %s", c.patience, what)
			return
		}
	}
}

// equal compares what was seen with what must be.
func equal[T comparable](c *check, what string, got, want T) {
	if got != want {
		c.errorf("%s: %v, want %v", what, got, want)
	}
}

// libraries collects what is written to os.Stderr, where libraries log by
// themselves; the gateway's own log goes elsewhere. canary stands in for a proxy
// that the environment names and nobody must use (trap N5).
var (
	libraries = new(lockedBuffer)
	canary    *proxyCanary
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The cases wait far more than they compute: the number of processors is
	// the wrong bound for them.
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "16")
	}
	canary = newProxyCanary() // before any library reads the environment, which it does once
	stderr, restore := os.Stderr, captureStderr()
	code := m.Run()
	restore()
	canary.close()
	if err := goleak.Find(
		// fasthttp keeps one clock for the process; each server's cleaner and
		// each client's notice their end late.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	); err != nil && code == 0 {
		fmt.Fprintln(stderr, err)
		code = 1
	}
	os.Exit(code)
}
