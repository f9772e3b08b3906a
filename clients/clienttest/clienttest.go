// Package clienttest is the contract of [clients.Client] as named cases, in the
// manner of testing/slogtest and golang.org/x/net/nettest. An adapter, a user's
// own as well as ours, is checked in three lines:
//
//	func TestClient(t *testing.T) {
//		clienttest.Run(t, New, Deviations()...)
//	}
//
// Each case speaks to an upstream of its own over a raw socket, so that it sees
// bytes and connections and not what a server library makes of them. Everything
// that is wrong in a case is reported, not only the first.
//
// What a library cannot do is declared as a [clients.Deviation] that bears the
// case's name. A declared case must fail: when a new version of the library can
// do it, the suite turns red and the declaration has to go.
//
// The package leaves to others what lies above a client: hop-by-hop fields,
// forwarding fields, statuses, breaker and admission.
//
// The trap: time. Limits are set short and asserted from below exactly, from
// above generously; nothing here measures speed.
package clienttest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatebench/clients"
)

// A Factory makes the client under test.
type Factory = func(clients.Settings) (clients.Client, error)

// A Rule is one line of the contract.
type Rule struct {
	// Name is short and stable: it names the subtest and a deviation from it.
	Name string
	// Text says what must hold, and where that comes from.
	Text string
}

// Rules lists the contract in the order in which Run checks it.
func Rules() []Rule {
	var rs []Rule
	for _, tc := range cases() {
		rs = append(rs, tc.Rule)
	}
	return rs
}

// Run checks every case against clients made by factory, each as a subtest. A case
// named by a deviation must fail.
func Run(t *testing.T, factory Factory, deviations ...clients.Deviation) {
	t.Helper()
	reasons := make(map[string]string)
	for _, d := range deviations {
		reasons[d.Name] = d.Reason
		if !slices.ContainsFunc(cases(), func(tc testCase) bool { return tc.Name == d.Name }) {
			t.Errorf("deviation %q names no case", d.Name)
		}
		if d.Reason == "" {
			t.Errorf("deviation %q has no reason", d.Name)
		}
	}
	for _, tc := range cases() {
		t.Run(tc.Name, func(t *testing.T) {
			reason, declared := reasons[tc.Name]
			patience := grace
			if declared {
				patience = grace / 8 // what must fail need not be waited for
			}
			problems, skipped := tc.check(factory, patience)
			if skipped != "" {
				t.Skip(skipped)
			}
			if failure := tc.judge(problems, declared); failure != "" {
				t.Error(failure)
			} else if declared {
				t.Logf("deviates as declared (%s): %s", reason, problems[0])
			}
		})
	}
}

// judge says why the subtest fails, "" if it does not.
func (tc testCase) judge(problems []string, declared bool) (failure string) {
	switch {
	case declared && len(problems) == 0:
		return "declared as a deviation, yet it holds: remove the declaration\nrule: " + tc.Text
	case !declared && len(problems) > 0:
		return "rule: " + tc.Text + "\n" + strings.Join(problems, "\n")
	}
	return ""
}

// testCase is a rule and the exchange that shows whether a client keeps it.
type testCase struct {
	Rule
	run func(*check)
}

// bound is how long a case may take. Cases set limits well below it.
const bound = 10 * time.Second

// grace is how soon something must have happened that happens "at once": far
// more than it takes, so that a busy machine does not matter. Where a failure is
// expected, it is cut short.
const grace = 2 * time.Second

// check runs the case and returns all that is wrong.
func (tc testCase) check(factory Factory, grace time.Duration) (problems []string, skipped string) {
	c := &check{newClient: factory, grace: grace}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	c.ctx = ctx
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.running.Wait()
		defer c.cleanUp()
		defer c.recover()
		tc.run(c)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		c.errorf("not done within %v", bound)
		c.cleanUp() // closes the upstream, which ends what hangs on it
		select {
		case <-done:
		case <-time.After(grace):
			c.errorf("still hanging %v after upstream was closed", grace)
		}
	}
	cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems), c.skipped
}

// check is one case at work: it makes upstreams and clients, collects problems
// and cleans up.
type check struct {
	ctx       context.Context
	newClient Factory
	grace     time.Duration

	// running are the goroutines of the case; those that hang end when
	// cleanUp closes the upstream.
	running sync.WaitGroup

	mu       sync.Mutex
	problems []string
	skipped  string
	cleanups []func()
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

// skip ends the case where the machine cannot carry it out.
func (c *check) skip(format string, args ...any) {
	c.mu.Lock()
	c.skipped = fmt.Sprintf(format, args...)
	c.mu.Unlock()
	runtime.Goexit()
}

// recover makes a panic of the client a problem like any other.
func (c *check) recover() {
	if v := recover(); v != nil {
		c.errorf("panic: %v\n%s", v, debug.Stack())
	}
}

// onEnd registers f to run when the case is over, the last one first.
func (c *check) onEnd(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanups = append(c.cleanups, f)
}

func (c *check) cleanUp() {
	c.mu.Lock()
	fs := c.cleanups
	c.cleanups = nil
	c.mu.Unlock()
	for _, f := range slices.Backward(fs) {
		f()
	}
}

// soon waits until ok holds, at most grace.
func (c *check) soon(what string, ok func() bool) bool {
	for end := time.Now().Add(c.grace); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.errorf("%v later, not yet: %s", c.grace, what)
			return false
		}
	}
	return true
}
