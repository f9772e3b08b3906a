package experiment

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

func TestReadingsOfTheMachine(t *testing.T) {
	const s = time.Second
	from := look{sut.Host{Busy: 10 * s, Stolen: s, All: 100 * s, LocalPorts: 1000, TimeWait: 900, Throttled: new(int64(3))}, 2 * s, true}
	for _, c := range []struct {
		name string
		to   look
		want map[string]float64
	}{
		{"all that can be read", look{sut.Host{Busy: 13 * s, Stolen: 1500 * time.Millisecond, All: 110 * s, LocalPorts: 1000, TimeWait: 250, Throttled: new(int64(5))}, 4 * s, true},
			map[string]float64{gate.Foreign: 0.1, gate.Steal: 0.05, gate.Ports: 0.25, gate.Throttled: 2}},
		{"ticks that missed what was ours", look{sut.Host{Busy: 12 * s, Stolen: s, All: 110 * s}, 5 * s, true},
			map[string]float64{gate.Foreign: 0, gate.Steal: 0}},
		{"no time between", look{sut.Host{All: 100 * s}, 2 * s, true}, map[string]float64{}},
		{"a machine that does not tell", look{}, map[string]float64{}},
	} {
		if diff := cmp.Diff(c.want, c.to.since(from)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if got := from.since(look{}); len(got) != 0 {
		t.Errorf("readings against nothing: %v", got)
	}
}

// TestALagIsTheGeneratorsOnlyWhereNobodyWaited: else the gateway's slowness would
// void the gateway's slow trials.
func TestALagIsTheGeneratorsOnlyWhereNobodyWaited(t *testing.T) {
	s := &load.Summary{
		Seconds:   2,
		Requests:  load.Requests{Planned: 200, Sent: 190, Dropped: 10},
		Errors:    map[string]int64{"ports": 2, "descriptors": 1, "reset": 7},
		Generator: load.Generator{LagP99: 50, CPUShare: 0.5},
	}
	got := map[string]float64{}
	ofGenerator(got, s)
	want := map[string]float64{gate.Lag: 50, gate.Unsent: 0.05, gate.OwnLimits: 3, gate.GeneratorCPU: 0.5, gate.Tail: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.Generator.Waited, s.Seconds = 1, 0.5
	got = map[string]float64{}
	ofGenerator(got, s)
	want = map[string]float64{gate.Unsent: 0.05, gate.OwnLimits: 3, gate.Tail: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func metricsOf(t *testing.T, text string) sut.Metrics {
	t.Helper()
	m, err := sut.ParseMetrics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWorkAddsUp: what gateway and backend counted may differ by attempts that
// failed, and by nothing else.
func TestWorkAddsUp(t *testing.T) {
	const gateway = `# TYPE gatebench_gateway_requests_total counter
gatebench_gateway_requests_total{code="200",reason=""} 100
gatebench_gateway_requests_total{code="404",reason=""} 5
gatebench_gateway_requests_total{code="502",reason="dial"} 3
gatebench_gateway_requests_total{code="0",reason="canceled"} 1
gatebench_gateway_requests_total{code="503",reason="breaker_open"} 0
# TYPE gatebench_gateway_upstream_attempts_total counter
gatebench_gateway_upstream_attempts_total 109
`
	backend := func(n string) sut.Metrics {
		return metricsOf(t, "# TYPE gatebench_backend_requests_total counter\ngatebench_backend_requests_total{code=\"200\"} "+n+"\n")
	}
	for seen, want := range map[string]float64{
		"1109": 0, // every attempt
		"1105": 0, // without those that failed
		"1104": 1, // one that succeeded was answered by somebody else
		"1113": 0,
		"1120": 7, // the client repeats behind our back
	} {
		s := &soloist{atEnd: &sample{metrics: metricsOf(t, gateway)}, backendBefore: backend("1000"), backendAfter: backend(seen)}
		if got, ok := s.work(); !ok || got != want {
			t.Errorf("seen %s: got %v, %v, want %v", seen, got, ok, want)
		}
	}
	lost := &soloist{atEnd: &sample{metrics: metricsOf(t, gateway)}, backendBefore: backend("0"), backendAfter: backend("105"),
		summary: &load.Summary{Requests: load.Requests{Completed: 111}}}
	if got, ok := lost.work(); !ok || got != 2 {
		t.Errorf("two answers more than the gateway has requests: got %v, %v", got, ok)
	}
	silent := &soloist{atEnd: &sample{metrics: metricsOf(t, gateway)}, backendAfter: backend("1105")}
	if _, ok := silent.work(); ok {
		t.Error("a backend that did not tell was judged")
	}

	trial := result.Trial{Metrics: map[string]float64{}}
	fromGateway(&trial, metricsOf(t, gateway))
	if diff := cmp.Diff(map[string]float64{"attempts_per_request": 1}, trial.Metrics); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"dial": 3, "canceled": 1}, trial.Reasons); diff != "" {
		t.Error(diff)
	}
}

// TestSettle: a calm machine costs no time, one that becomes calm the time until
// then, and one that does not costs no more than there is to spare.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name     string
		calmsAt  time.Duration // foreign processes and TIME_WAIT end then
		foreign  float64
		waiting  int
		patience time.Duration
		budget   time.Duration
		want     time.Duration
		warns    bool
	}{
		{name: "calm", foreign: 0.9, patience: time.Hour},
		{name: "somebody else", calmsAt: 990 * time.Millisecond, foreign: 0.5, patience: time.Hour, want: 1250 * time.Millisecond},
		{name: "ports", calmsAt: 990 * time.Millisecond, waiting: 600, patience: time.Hour, want: time.Second},
		{name: "few ports", calmsAt: time.Hour, waiting: 500, patience: time.Hour},
		{name: "somebody who stays", calmsAt: time.Hour, foreign: 0.5, patience: time.Hour, want: longestOther, warns: true},
		{name: "ports that stay", calmsAt: time.Hour, waiting: 501, patience: time.Hour, want: longestPorts, warns: true},
		{name: "no patience left", calmsAt: time.Hour, foreign: 0.5, patience: time.Second, want: time.Second, warns: true},
		{name: "no time left", calmsAt: time.Hour, foreign: 0.5, patience: time.Hour, budget: 3 * time.Second, want: time.Second, warns: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := sut.NewLauncher(io.Discard)
				defer l.Close()
				began := time.Now()
				p := Plan{Arms: []Arm{{Name: "a"}}, Blocks: 1, Duet: Duet{Duration: 2*time.Second - duetOverhead}, Budget: c.budget}
				r := &run{plan: p, launcher: l, warnings: map[string]int{}, patience: c.patience, clock: startClock(p)}
				// Many times faster than this process can use its own.
				const fast = 1_000_000
				r.options.Host = func() (sut.Host, error) {
					now := time.Since(began)
					h := sut.Host{All: fast * now, Busy: time.Duration(c.foreign * fast * float64(min(now, c.calmsAt))), LocalPorts: 1000}
					if now < c.calmsAt {
						h.TimeWait = c.waiting
					}
					return h, nil
				}
				if c.calmsAt > 0 {
					r.foreign = c.foreign
				}
				r.settle(t.Context())
				if got := time.Since(began); got != c.want {
					t.Errorf("it took %v, want %v", got, c.want)
				}
				if (len(r.warned()) > 0) != c.warns {
					t.Errorf("it said %q", r.warned())
				}
				if spent := c.patience - r.patience; spent != c.want {
					t.Errorf("of the patience, %v are spent", spent)
				}
			})
		})
	}
}

func TestSettleEndsWithTheRun(t *testing.T) {
	l := sut.NewLauncher(io.Discard)
	defer l.Close()
	r := &run{launcher: l, warnings: map[string]int{}, patience: time.Hour, foreign: 1, clock: startClock(Plan{})}
	r.options.Host = func() (sut.Host, error) { return sut.Host{}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.settle(ctx) // an hour, else
}

func TestPatienceIsAShareOfThePlan(t *testing.T) {
	p := Plan{Arms: []Arm{{Name: "a"}}, Blocks: 4, Duet: Duet{Warmup: time.Second, Duration: 9*time.Second - duetOverhead}, Budget: time.Hour}
	if got := p.patience(); got != 4*time.Second {
		t.Errorf("a plan of 40 s waits up to %v", got)
	}
}

func TestGoSettings(t *testing.T) {
	got := goSettings([]string{"PATH=/bin", "GOGC=50", "GOGCX=1", "GOMAXPROCS=3", "GOPATH=/go", "GODEBUG=", "GOMEMLIMIT=1GiB"})
	want := []string{"GOGC=50", "GOMAXPROCS=3", "GODEBUG=", "GOMEMLIMIT=1GiB"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
