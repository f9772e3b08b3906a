package experiment_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatebench/internal/conf"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// arm is an arm with a fake gateway and a fake backend.
func arm(name string, g gatewayScript, b backendScript) experiment.Arm {
	return experiment.Arm{Name: name, Client: name, Server: "net/http", Gateway: g.yaml(), Backend: b.yaml()}
}

// plan is a quick plan: a duet and one solo profile.
func plan(blocks int, arms ...experiment.Arm) experiment.Plan {
	steady := load.DefaultProfile()
	steady.Executor, steady.Rate = load.ConstantArrivalRate, conf.Rate{PerSecond: 700}
	steady.Warmup, steady.Duration = 10*time.Millisecond, 100*time.Millisecond
	return experiment.Plan{
		Name:     "test",
		Arms:     arms,
		Blocks:   blocks,
		Seed:     42,
		Duet:     experiment.Duet{Connections: 8, Warmup: 10 * time.Millisecond, Duration: 100 * time.Millisecond},
		Profiles: []experiment.Profile{{Name: "steady", Profile: steady}},
	}
}

// raceEnd lets a race-built child end at once: by default the detector makes it
// wait a second for reports.
const raceEnd = "GORACE=atexit_sleep_ms=0"

// machine is one on which others use that share of its CPU time, and nothing else is
// wrong. Ours counts as theirs, too, since the clock of this one is a fast one: a
// tests' own use is nothing beside it.
func machine(foreign float64) func() (sut.Host, error) {
	began := time.Now()
	return func() (sut.Host, error) {
		all := 1000 * time.Since(began)
		return sut.Host{All: all, Busy: time.Duration(foreign * float64(all)), LocalPorts: 1000}, nil
	}
}

// carryOut runs p on a calm machine and checks what holds of every run: it leaves no process and no
// port, and its document can be written.
func carryOut(t *testing.T, ctx context.Context, p experiment.Plan, env ...string) (*result.Document, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	doc, err := experiment.Run(ctx, p, experiment.Options{Binary: exe, Out: out, Env: append(env, raceEnd), Host: machine(0), Progress: func(experiment.Event) {}})
	if doc == nil {
		t.Fatal(err)
	}
	leftNothing(t, out)
	if _, err := json.Marshal(doc); err != nil {
		t.Error(err)
	}
	return doc, err
}

// leftNothing checks that no process of the run is alive and no port open.
func leftNothing(t *testing.T, out string) {
	t.Helper()
	journal, err := os.ReadFile(filepath.Join(out, "processes.log"))
	if err != nil {
		t.Fatal(err)
	}
	started := regexp.MustCompile(`started, pid (\d+):`).FindAllSubmatch(journal, -1)
	if len(started) == 0 {
		t.Errorf("nothing was started:\n%s", journal)
	}
	for _, m := range started {
		var pid int
		fmt.Sscan(string(m[1]), &pid)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is left: %v\n%s", pid, err, journal)
		}
	}
	for _, m := range regexp.MustCompile(`listening on (\S+)`).FindAllSubmatch(journal, -1) {
		if c, err := net.Dial("tcp", string(m[1])); err == nil {
			c.Close()
			t.Errorf("port %s is left open", m[1])
		}
	}
}

func TestEveryArmIsMeasuredOnceAPhaseInEveryBlock(t *testing.T) {
	p := plan(2,
		arm("base", gatewayScript{CPU: 80, Allocs: 78, Bytes: 4000, Connections: 3}, backendScript{}),
		arm("slow", gatewayScript{CPU: 160, Allocs: 100, Bytes: 8000, Connections: 5}, backendScript{}),
		arm("base (sentinel)", gatewayScript{CPU: 80, Allocs: 78, Bytes: 4000, Connections: 3}, backendScript{}),
	)
	p.Arms[2].SentinelOf = "base"
	p.Config = json.RawMessage(`{"a":1}`)
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}

	type key struct {
		block int
		phase result.Phase
		arm   string
	}
	seen, positions := map[key]int{}, map[string]int{}
	for _, tr := range doc.Trials {
		seen[key{tr.Block, tr.Phase, tr.Arm}]++
		positions[fmt.Sprint(tr.Block, tr.Phase, tr.Position)]++
		if !tr.Valid {
			t.Errorf("%s of %s in block %d is void: %s", tr.Phase, tr.Arm, tr.Block, tr.VoidReason)
		}
		if tr.Requests != 10 || tr.Errors != 0 {
			t.Errorf("%s of %s: %d requests, %d errors", tr.Phase, tr.Arm, tr.Requests, tr.Errors)
		}
		readings := map[string]float64{"gc_cycles": 4, "own_limits": 0}
		if tr.Phase == result.Solo {
			readings = map[string]float64{"work": 0, "lag": 0.25, "tail": 0, "own_limits": 0}
		}
		for name, want := range readings {
			if got, read := tr.Gates[name]; !read || got != want {
				t.Errorf("%s of %s: the gate %s read %v, %v", tr.Phase, tr.Arm, name, got, read)
			}
		}
		if busy, read := tr.Gates["gateway_busy"]; read != (tr.Phase == result.Duet && len(sut.CPUs()) >= 2) || read && busy <= 0 {
			t.Errorf("%s of %s: the gateways' core was %v busy, %v", tr.Phase, tr.Arm, busy, read)
		}
		slow := 0.0
		if tr.Arm == "slow" {
			slow = 1
		}
		want := map[string]float64{
			"cpu_us_per_request":      80 + 80*slow,
			"allocs_per_request":      78 + 22*slow,
			"alloc_bytes_per_request": 4000 + 4000*slow,

			"gc_cycles_per_1000_requests": 4,
		}
		if tr.Phase == result.Solo {
			want = map[string]float64{
				"response_time_p50": 1.5, "response_time_p90": 2.5, "response_time_p95": 4.5, "response_time_p99": 9.5,
				"response_time_mean": 2, "response_time_min": 0.5, "response_time_max": 12, "received_bytes_per_second": 350_000,
				"solo_cpu_us_per_request": 80 + 80*slow,
				"throughput":              700, "generator_cpu_us_per_request": 16, "generator_lag_p99": 0.25,
				"connections_opened": 3 + 2*slow, "backend_connections_accepted": 3 + 2*slow,
				"goroutines": 9, "breaker_trips": 2,
				"attempts_per_request": tr.Metrics["attempts_per_request"], // hangs on the number of scrapes
				// What the system tells is not known beforehand.
				"memory_peak_bytes": tr.Metrics["memory_peak_bytes"], "descriptors": tr.Metrics["descriptors"],
			}
			if runtime.GOOS == "linux" && (tr.Metrics["memory_peak_bytes"] < 1<<20 || tr.Metrics["descriptors"] < 4) {
				t.Errorf("no memory or descriptors: %v", tr.Metrics)
			}
		}
		if diff := cmp.Diff(want, tr.Metrics, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s of %s: %s", tr.Phase, tr.Arm, diff)
		}
		for name := range tr.Metrics {
			if m, ok := result.MetricNamed(name); !ok || m.Phase != tr.Phase {
				t.Errorf("%s is no metric of phase %s", name, tr.Phase)
			}
		}
	}
	for block := range 2 {
		for _, phase := range []result.Phase{result.Duet, result.Solo} {
			for i, a := range p.Arms {
				if n := seen[key{block, phase, a.Name}]; n != 1 {
					t.Errorf("%s of %s in block %d: %d trials", phase, a.Name, block, n)
				}
				if n := positions[fmt.Sprint(block, phase, i)]; n != 1 {
					t.Errorf("%s in block %d: %d arms at position %d", phase, block, n, i)
				}
			}
		}
	}

	if doc.Schema != result.Schema || doc.Plan != "test" || doc.Seed != 42 || doc.Interrupted || string(doc.Config) != `{"a":1}` ||
		doc.Pilot != nil || doc.Started.IsZero() || !doc.Finished.After(doc.Started) {
		t.Errorf("got %+v", doc)
	}
	wantArms := []result.Arm{
		{Name: "base", Client: "base", Server: "net/http"},
		{Name: "slow", Client: "slow", Server: "net/http"},
		{Name: "base (sentinel)", Client: "base (sentinel)", Server: "net/http", SentinelOf: "base"},
	}
	if diff := cmp.Diff(wantArms, doc.Arms); diff != "" {
		t.Error(diff)
	}
}

// aboutOf is what the fake gateway of an arm said of itself.
func aboutOf(t *testing.T, doc *result.Document, arm string) (a about) {
	t.Helper()
	if err := json.Unmarshal(doc.About[arm], &a); err != nil {
		t.Fatalf("about %s: %v", arm, err)
	}
	return a
}

func TestThePlanAloneDecidesWhatProcessesRead(t *testing.T) {
	p := plan(1,
		arm("a", gatewayScript{}, backendScript{}),
		arm("b", gatewayScript{}, backendScript{}),
		arm("c", gatewayScript{}, backendScript{Number: 1}),
	)
	doc, err := carryOut(t, t.Context(), p, "GATEBENCH_GATEWAY_CLIENT=fasthttp", "GIVEN=1")
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := aboutOf(t, doc, "a"), aboutOf(t, doc, "b"), aboutOf(t, doc, "c")
	if a.Upstream != b.Upstream || a.Upstream == c.Upstream || !strings.HasPrefix(a.Upstream, "http://127.0.0.1:") {
		t.Errorf("equal backends are not shared, or different ones are: %s, %s, %s", a.Upstream, b.Upstream, c.Upstream)
	}
	slices.Sort(a.Environment)
	want := []string{"GATEBENCH_GATEWAY_ADMIN_LISTEN=", "GATEBENCH_GATEWAY_LISTEN=127.0.0.1:0", "GATEBENCH_GATEWAY_UPSTREAM=" + a.Upstream, "GIVEN=1"}
	if diff := cmp.Diff(want, a.Environment); diff != "" {
		t.Error(diff)
	}
	if len(sut.CPUs()) >= 2 {
		if a.GOMAXPROCS != 1 || !strings.HasPrefix(doc.Machine.PinnedTo, "gateways on cpu ") {
			t.Errorf("a gateway has %d processors; %q", a.GOMAXPROCS, doc.Machine.PinnedTo)
		}
	}
}

// TestVoidTrials: a trial that cannot be compared says why, and the others stand.
func TestVoidTrials(t *testing.T) {
	t.Parallel()
	p := plan(1,
		arm("good", gatewayScript{Connections: 1}, backendScript{}),
		arm("invalid", gatewayScript{Load: "invalid"}, backendScript{}),
		arm("empty", gatewayScript{Load: "empty"}, backendScript{}),
		arm("idle", gatewayScript{Idle: true}, backendScript{}),
		arm("both", gatewayScript{Idle: true, Load: "empty"}, backendScript{}),
		arm("mute", gatewayScript{Mute: true}, backendScript{}),
		arm("errors", gatewayScript{Load: "errors"}, backendScript{}),
		arm("few", gatewayScript{Load: "few"}, backendScript{}),
		arm("drops", gatewayScript{Load: "drops"}, backendScript{}),
		arm("waited", gatewayScript{Load: "waited"}, backendScript{}),
		arm("phantoms", gatewayScript{Connections: 1, Phantoms: 2}, backendScript{}),
		arm("liar", gatewayScript{Connections: 2, Unclaimed: 1}, backendScript{}),
	)
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tr := range doc.Trials {
		if tr.Valid == (tr.VoidReason != "") {
			t.Errorf("%s of %s: valid %v, reason %q", tr.Phase, tr.Arm, tr.Valid, tr.VoidReason)
		}
		if !tr.Valid {
			got[fmt.Sprintf("%s %s", tr.Phase, tr.Arm)] = tr.VoidReason
		}
		switch tr.Arm {
		case "errors":
			if diff := cmp.Diff(map[string]int64{"status": 2, "timeout": 1}, tr.ErrorClasses); diff != "" || tr.Errors != 3 || tr.Requests != 10 {
				t.Errorf("%d errors of %d: %s", tr.Errors, tr.Requests, diff)
			}
		case "few":
			if v, ok := tr.Metrics["response_time_p99"]; ok {
				t.Errorf("a p99 that is not known is %v", v)
			}
		}
	}
	want := map[string]string{
		"solo invalid":  "the load generator set the figures: it was late",
		"duet empty":    "no request was sent",
		"solo empty":    "no request was sent",
		"solo idle":     "requests by which gateway and backend differ beyond failures: more than 0",
		"duet idle":     "the gateway served no request in the window",
		"duet both":     "no request was sent", // the first reason stays
		"solo both":     "no request was sent",
		"duet mute":     `ask gateway "mute" for /-/metrics: answered 500 Internal Server Error`,
		"solo mute":     "the gateway gave no metrics after the load",
		"solo phantoms": "requests by which gateway and backend differ beyond failures: more than 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		`arm "liar", profile steady: the gateway counted other connections than the backend, 1 against 2 in block 1`,
		"in 1 of 1 solo trials, requests that were due and never sent: up to 0.5 %, more than 0 %",
	} {
		if !slices.Contains(doc.Warnings, want) {
			t.Errorf("no warning %q in %q", want, doc.Warnings)
		}
	}
}

// TestVoidBlocksAreMadeUp: a phase with a void trial is run again with all arms, the
// other phase is not, and what was void stays in the document.
func TestVoidBlocksAreMadeUp(t *testing.T) {
	t.Parallel()
	p := plan(4,
		arm("good", gatewayScript{}, backendScript{}),
		arm("bad once", gatewayScript{InvalidAt: 2}, backendScript{}), // the solo trial of block 0
	)
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, tr := range doc.Trials {
		got[fmt.Sprintf("%s in block %d, valid %v", tr.Phase, tr.Block, tr.Valid)]++
	}
	want := map[string]int{
		"duet in block 0, valid true": 2, "solo in block 0, valid true": 1, "solo in block 0, valid false": 1,
		"duet in block 1, valid true": 2, "solo in block 1, valid true": 2,
		"duet in block 2, valid true": 2, "solo in block 2, valid true": 2,
		"duet in block 3, valid true": 2, "solo in block 3, valid true": 2,
		"solo in block 4, valid true": 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "1 block beyond the 4 planned made up for void ones"; !slices.Contains(doc.Warnings, want) {
		t.Errorf("no warning %q in %q", want, doc.Warnings)
	}
}

// TestWhatIsLostIsNotMadeUp: where even good blocks could not lead to a conclusion any
// more, no time is spent on them, and another arm's void trial is made up all the
// same.
func TestWhatIsLostIsNotMadeUp(t *testing.T) {
	t.Parallel()
	hopeless := arm("hopeless", gatewayScript{Load: "invalid"}, backendScript{})
	good := arm("good", gatewayScript{}, backendScript{})
	badOnce := arm("bad once", gatewayScript{InvalidAt: 2}, backendScript{})
	for _, c := range []struct {
		arms []experiment.Arm
		want int // blocks
	}{
		{[]experiment.Arm{hopeless}, 4},
		{[]experiment.Arm{good, hopeless}, 4},
		{[]experiment.Arm{good, hopeless, badOnce}, 5},
		{[]experiment.Arm{badOnce}, 5},
	} {
		p := plan(4, c.arms...)
		p.Duet.Duration = 0
		doc, err := carryOut(t, t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(doc.Trials) / len(c.arms); n != c.want {
			t.Errorf("%d arms: %d blocks were run, not %d", len(c.arms), n, c.want)
		}
	}
}

// TestABusyMachineVoidsSoloTrials: and no duet, which it hits on all arms alike.
func TestABusyMachineVoidsSoloTrials(t *testing.T) {
	t.Parallel()
	p := plan(1, arm("a", gatewayScript{}, backendScript{}), arm("b", gatewayScript{}, backendScript{}))
	exe, _ := os.Executable()
	doc, err := experiment.Run(t.Context(), p, experiment.Options{Binary: exe, Out: t.TempDir(), Host: machine(0.25), Env: []string{raceEnd}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range doc.Trials {
		if tr.Valid != (tr.Phase == result.Duet) || tr.Gates["foreign_cpu"] < 0.2 || tr.Gates["foreign_cpu"] > 0.25 {
			t.Errorf("%s of %s: valid %v, readings %v", tr.Phase, tr.Arm, tr.Valid, tr.Gates)
		}
	}
	for _, g := range doc.Gates {
		if g.Name == "foreign_cpu" && (g.Readings != 2 || g.Voided != 2 && g.Phase == result.Solo || g.Warned != 2 && g.Phase == result.Duet) {
			t.Errorf("the gate says %+v", g)
		}
	}
	if !slices.ContainsFunc(doc.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "in 2 of 2 duet trials, CPU time that other processes used: up to ")
	}) || !slices.ContainsFunc(doc.Warnings, func(w string) bool { return strings.HasPrefix(w, "the machine was not calm when a trial began") }) {
		t.Errorf("the warnings are %q", doc.Warnings)
	}
}

// TestDeaths: whoever dies, the run ends soon, names the dead and its last words,
// and keeps what was measured before.
func TestDeaths(t *testing.T) {
	good := arm("good", gatewayScript{}, backendScript{})
	for _, c := range []struct {
		name string
		arm  experiment.Arm
		want sut.ExitError
	}{
		{"gateway", arm("bad", gatewayScript{Dies: true}, backendScript{}),
			sut.ExitError{Name: `gateway "bad"`, Status: "signal: killed", LastWords: "gateway: out of cheese"}},
		{"backend", arm("bad", gatewayScript{Connections: 1}, backendScript{Dies: true}),
			sut.ExitError{Name: `backend of "bad"`, Status: "exit status 7", LastWords: "disk on fire"}},
		{"load", arm("bad", gatewayScript{Load: "die"}, backendScript{}),
			sut.ExitError{Name: `load on "bad"`, Status: "exit status 1", LastWords: "load: cannot assign requested address"}},
	} {
		for _, phase := range []result.Phase{result.Duet, result.Solo} {
			t.Run(c.name+" in "+string(phase), func(t *testing.T) {
				p := plan(3, good, c.arm)
				if phase == result.Duet {
					p.Duet.Duration = time.Minute // which nobody waits for
				} else {
					p.Duet.Duration = 0
					p.Profiles[0].Duration = time.Minute
					p.Arms = []experiment.Arm{good, c.arm}
					p.Seed = seedWithSecond(t) // the good one would take its minute
				}
				started := time.Now()
				doc, err := carryOut(t, t.Context(), p)
				if took := time.Since(started); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				exit, ok := errors.AsType[*sut.ExitError](err)
				if !ok || *exit != c.want {
					t.Fatalf("got %v", err)
				}
				if want := "the run ended early: " + err.Error(); !slices.Contains(doc.Warnings, want) {
					t.Errorf("no warning %q in %q", want, doc.Warnings)
				}
				if doc.Interrupted || len(doc.Trials) == 0 {
					t.Errorf("interrupted %v, %d trials", doc.Interrupted, len(doc.Trials))
				}
				for _, tr := range doc.Trials {
					if tr.Valid || tr.VoidReason != exit.Error() {
						t.Errorf("%s of %s: valid %v, %q", tr.Phase, tr.Arm, tr.Valid, tr.VoidReason)
					}
				}
			})
		}
	}
}

// seedWithSecond finds a seed that puts the second of two arms first in the first
// profile of block 0.
func seedWithSecond(t *testing.T) uint64 {
	for seed := range uint64(100) {
		if experiment.Order(seed, 0, 1, 2)[0] == 1 {
			return seed
		}
	}
	t.Fatal("no seed puts the second arm first")
	return 0
}

func TestABackendThatDoesNotStart(t *testing.T) {
	p := plan(1, arm("a", gatewayScript{}, backendScript{}), arm("b", gatewayScript{}, backendScript{Refuse: true}))
	doc, err := carryOut(t, t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || len(doc.Trials) != 0 {
		t.Errorf("got %v, %d trials", err, len(doc.Trials))
	}
}

func TestALoadWithoutASummary(t *testing.T) {
	_, err := carryOut(t, t.Context(), plan(1, arm("a", gatewayScript{Load: "garbage"}, backendScript{})))
	if err == nil || !strings.Contains(err.Error(), `load on "a" printed no summary: its schema is "" and not "gatebench.load/1"`) {
		t.Errorf("got %v", err)
	}
}

// TestInterrupt: what was measured is kept, the trial that ran is void, and even
// processes that do not want to end are gone in time.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"duet", "solo"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			p := plan(2,
				arm("a", gatewayScript{Stubborn: true}, backendScript{}),
				arm("b", gatewayScript{Stubborn: true, Load: "hang"}, backendScript{}),
			)
			if phase == "duet" {
				p.Duet.Duration = time.Minute
			} else {
				p.Profiles[0].Duration = time.Minute
				p.Arms = p.Arms[:1]
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			exe, _ := os.Executable()
			out := t.TempDir()
			var interrupted time.Time
			go func() {
				awaitJournal(t, out, "load on", phase)
				interrupted = time.Now()
				cancel()
			}()
			doc, err := experiment.Run(ctx, p, experiment.Options{Binary: exe, Out: out, Host: machine(0), Env: []string{raceEnd}})
			if err != nil || !doc.Interrupted {
				t.Fatalf("got %v, interrupted %v", err, doc.Interrupted)
			}
			if took := time.Since(interrupted); took > 5*time.Second {
				t.Errorf("it took %v to end", took)
			}
			leftNothing(t, out)
			last := doc.Trials[len(doc.Trials)-1]
			if string(last.Phase) != phase || last.Valid || last.VoidReason != "interrupted" {
				t.Errorf("the last trial is %+v", last)
			}
			if phase == "duet" {
				return
			}
			if last.Requests != 10 {
				t.Errorf("the interrupted load sent %d requests", last.Requests)
			}
			if duet := doc.Trials[0]; duet.Phase != result.Duet || !duet.Valid {
				t.Errorf("the trial before it is %+v", duet)
			}
		})
	}
}

// awaitJournal waits until the load of the phase runs: in a duet the first one, in
// solo the one after it.
func awaitJournal(t *testing.T, out, who, phase string) {
	want := 1
	if phase == "solo" {
		want = 2
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		f, err := os.Open(filepath.Join(out, "processes.log"))
		if err != nil {
			continue
		}
		n := 0
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if strings.HasPrefix(sc.Text(), who) && strings.Contains(sc.Text(), "started") {
				n++
			}
		}
		f.Close()
		if n >= want {
			time.Sleep(300 * time.Millisecond) // into the load; nothing hangs on how far
			return
		}
	}
	t.Error("no load was started")
}

// TestPilot: one absolute rate for all arms, a share of what the slowest reached in
// the better of its rounds, and a sentinel is not asked.
func TestPilot(t *testing.T) {
	t.Parallel()
	p := plan(1,
		arm("fast", gatewayScript{Goodput: 9000}, backendScript{}),
		arm("slow", gatewayScript{Goodput: 2001, GoodputLater: 500}, backendScript{}),
		arm("fast (sentinel)", gatewayScript{Goodput: 10}, backendScript{}),
	)
	p.Arms[2].SentinelOf = "fast"
	p.Duet.Duration = 0
	p.Profiles[0].Rate = conf.Rate{OfSaturation: 0.45}
	named := p.Profiles[0]
	named.Name, named.Rate = "named", conf.Rate{PerSecond: 50}
	p.Profiles = append(p.Profiles, named)
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := &result.Pilot{Saturation: map[string]float64{"fast": 9000, "slow": 2001}, Rates: map[string]float64{"steady": 900}}
	if diff := cmp.Diff(want, doc.Pilot); diff != "" {
		t.Error(diff)
	}
	for _, tr := range doc.Trials {
		want := map[string]float64{"steady": 900, "named": 50}[tr.Profile]
		if got := tr.Metrics["throughput"]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s of %s ran at %v", tr.Profile, tr.Arm, got)
		}
	}
	if p.Profiles[0].Rate.OfSaturation != 0.45 {
		t.Error("the caller's plan was changed")
	}

	p.Arms = []experiment.Arm{arm("dead", gatewayScript{Goodput: 0}, backendScript{})}
	doc, err = carryOut(t, t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), `arm "dead": no request succeeded`) || len(doc.Trials) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestNoBlockStartsThatWouldOverrunTheBudget(t *testing.T) {
	t.Parallel()
	p := plan(1000, arm("a", gatewayScript{}, backendScript{}))
	p.Duet.Duration = 0
	p.Profiles[0].Duration = 300 * time.Millisecond
	p.Budget = 5 * time.Second // 2 s of blocks
	started := time.Now()
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(doc.Trials); n < 1 || n > 10 {
		t.Errorf("%d blocks of at least 310 ms in what the ceilings leave of 5 s", n)
	}
	want := fmt.Sprintf("the budget of 5s is used up: %d of 1000 blocks were measured", len(doc.Trials))
	if !slices.Contains(doc.Warnings, want) {
		t.Errorf("no warning %q in %q", want, doc.Warnings)
	}
	if took := time.Since(started); len(doc.Trials) > 1 && took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestProgressTellsEveryStep(t *testing.T) {
	t.Parallel()
	p := plan(2, arm("a", gatewayScript{Goodput: 100}, backendScript{}), arm("b", gatewayScript{Goodput: 100}, backendScript{}))
	p.Profiles[0].Rate = conf.Rate{OfSaturation: 0.5}
	exe, _ := os.Executable()
	var got []string
	order := func(block, i int) string { return p.Arms[experiment.Order(p.Seed, block, 1, 2)[i]].Name }
	_, err := experiment.Run(t.Context(), p, experiment.Options{Binary: exe, Out: t.TempDir(), Host: machine(0), Env: []string{raceEnd}, Progress: func(e experiment.Event) {
		got = append(got, fmt.Sprintf("%s %s %s %d/%d %d/%d", e.Phase, e.Arm, e.Profile, e.Block, e.Blocks, e.Done, e.Total))
		if left := time.Until(e.End); left < -time.Second || left > time.Minute {
			t.Errorf("at %v it says it ends in %v", e, left)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pilot a  0/2 0/8", "pilot b  0/2 0/8", "pilot a  0/2 0/8", "pilot b  0/2 0/8",
		"ceiling the load generator  0/2 0/8", "ceiling the backend  0/2 0/8",
		"duet   0/2 0/8", "solo " + order(0, 0) + " steady 0/2 2/8", "solo " + order(0, 1) + " steady 0/2 3/8",
		"duet   1/2 4/8", "solo " + order(1, 0) + " steady 1/2 6/8", "solo " + order(1, 1) + " steady 1/2 7/8",
		"   2/2 8/8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotRunStartsNothing(t *testing.T) {
	out := t.TempDir()
	file := filepath.Join(out, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := plan(1, arm("a", gatewayScript{}, backendScript{}))
	doc, err := experiment.Run(t.Context(), good, experiment.Options{Binary: "/no/such/program", Out: filepath.Join(file, "out")})
	if doc != nil || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v, %v", doc, err)
	}
	bad := good
	bad.Blocks = 0
	doc, err = experiment.Run(t.Context(), bad, experiment.Options{Out: filepath.Join(out, "never")})
	if doc != nil || len(conf.Problems(err)) != 1 {
		t.Errorf("got %v, %v", doc, err)
	}
	if _, err := os.Stat(filepath.Join(out, "never")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a bad plan left a folder: %v", err)
	}
}

func TestPrepareOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	for range 2 {
		if err := experiment.PrepareOut(dir); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if os.Geteuid() == 0 {
		return // nothing is forbidden to root
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := experiment.PrepareOut(dir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// A gateway that carries as much as the load generator does was not what limited it.
func TestATrialNearTheGeneratorsCeilingIsVoid(t *testing.T) {
	t.Parallel()
	p := plan(1, arm("a", gatewayScript{}, backendScript{}))
	p.Duet.Duration = 0
	for _, c := range []struct {
		rate float64 // of ceilings of 90,000 and 40,000 per second
		void string
	}{
		{26000, ""},
		{27000, "times the rate that the backend can carry: less than 1.5"},
		{61000, "times the rate that the load generator can carry: less than 1.5"},
	} {
		p.Profiles[0].Rate = conf.Rate{PerSecond: c.rate}
		doc, err := carryOut(t, t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Ceilings) != 1 || *doc.Ceilings[0].Generator != 90000 || *doc.Ceilings[0].Backend != 40000 {
			t.Errorf("ceilings: %+v", doc.Ceilings)
		}
		if got := doc.Trials[0].VoidReason; got != c.void {
			t.Errorf("%v/s: void for %q, want %q", c.rate, got, c.void)
		}
	}
}

func TestEveryUseOfConnectionsHasCeilings(t *testing.T) {
	t.Parallel()
	p := plan(1, arm("a", gatewayScript{}, backendScript{}))
	p.Duet.Duration = 0
	once := p.Profiles[0]
	once.Name, once.KeepAlive = "once", false
	p.Profiles = append(p.Profiles, once)
	doc, err := carryOut(t, t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Ceilings) != 2 || !doc.Ceilings[0].KeepAlive || doc.Ceilings[1].KeepAlive {
		t.Errorf("ceilings: %+v", doc.Ceilings)
	}
	for _, trial := range doc.Trials {
		if _, read := trial.Gates[gate.GeneratorCeiling]; !read {
			t.Errorf("%s has no reading", trial.Profile)
		}
	}
}
