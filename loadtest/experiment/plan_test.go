package experiment

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
)

// Order opens order to the tests outside.
var Order = order

// TestOrderIsAFunctionOfSeedAndBlock: these numbers must not change, or a result
// could not be repeated from its seed.
func TestOrderIsAFunctionOfSeedAndBlock(t *testing.T) {
	for _, c := range []struct {
		seed         uint64
		block, phase int
		want         []int
	}{
		{42, 0, 0, []int{2, 1, 3, 0, 4}},
		{42, 0, 1, []int{3, 4, 2, 1, 0}},
		{42, 1, 0, []int{2, 4, 1, 3, 0}},
		{43, 0, 0, []int{2, 4, 1, 3, 0}},
	} {
		if got := order(c.seed, c.block, c.phase, 5); !slices.Equal(got, c.want) {
			t.Errorf("seed %d, block %d, phase %d: got %v, want %v", c.seed, c.block, c.phase, got, c.want)
		}
	}
}

// TestOrderIsFair: over many blocks every arm is about as often at each position.
func TestOrderIsFair(t *testing.T) {
	const n, blocks = 4, 4000
	var at [n][n]int
	for block := range blocks {
		for position, arm := range order(1, block, 1, n) {
			at[arm][position]++
		}
	}
	for arm, positions := range at {
		for position, count := range positions {
			if count < 900 || count > 1100 { // 3.6 standard deviations around 1000
				t.Errorf("arm %d is at position %d in %d of %d blocks", arm, position, count, blocks)
			}
		}
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	p := Plan{
		Arms:     []Arm{{Name: "a"}, {Name: "a"}},
		Duet:     Duet{Duration: time.Second},
		Profiles: []Profile{{Name: "steady"}},
	}
	var got []string
	for _, pr := range conf.Problems(p.Validate()) {
		got = append(got, pr.Path)
	}
	want := []string{"blocks", "duet.connections", "arms", "profiles.steady.timeout", "profiles.steady.executor"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	empty := Plan{Blocks: 1, Duet: Duet{Connections: 1}}
	if err := empty.Validate(); err == nil || !strings.Contains(err.Error(), "no arm") || !strings.Contains(err.Error(), "nothing to measure") {
		t.Errorf("got %v", err)
	}
}

func TestValidateRefusesAPrecisionThatCannotBeReached(t *testing.T) {
	p := Plan{Arms: []Arm{{Name: "a"}}, Blocks: 5, Duet: Duet{Connections: 1, Duration: time.Second},
		Precision: []Precision{{"cpu_us_per_request", 0.01}, {"response_time_p99", 1.5}}}
	var got []string
	for _, pr := range conf.Problems(p.Validate()) {
		got = append(got, pr.Path)
	}
	if diff := cmp.Diff([]string{"precision", "precision", "precision.response_time_p99"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.Blocks, p.Budget, p.Precision = 6, time.Hour, p.Precision[:1]
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateRefusesABudgetBelowOneBlock(t *testing.T) {
	p := Plan{
		Arms:   []Arm{{Name: "a"}},
		Blocks: 10,
		Duet:   Duet{Connections: 1, Warmup: time.Second, Duration: 4 * time.Second},
		Budget: 5 * time.Second,
	}
	want := "budget: 5s cannot hold a single block, which takes about 6s"
	if err := p.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	p.Budget = 6 * time.Second
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAbsoluteIsAShareOfTheSlowest(t *testing.T) {
	share := func(name string, share conf.Ratio, vus int) Profile {
		return Profile{Name: name, Profile: load.Profile{Rate: conf.Rate{OfSaturation: share}, VUs: vus}}
	}
	rate := func(name string, perSecond float64, vus int) Profile {
		return Profile{Name: name, Profile: load.Profile{Rate: conf.Rate{PerSecond: perSecond}, VUs: vus}}
	}
	found := &result.Pilot{Saturation: map[string]float64{"a": 9000, "b": 2001}, Rates: map[string]float64{}}
	got := absolute([]Profile{share("free", .45, 0), share("capped", .1, 7), share("tiny", 1e-5, 0), rate("own", 50, 0)}, 64, found)
	want := []Profile{rate("free", 900, 256), rate("capped", 200, 7), rate("tiny", 1, 256), rate("own", 50, 0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"free": 900, "capped": 200, "tiny": 1}, found.Rates); diff != "" {
		t.Error(diff)
	}
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		want string
	}{
		{nil, ""},
		{[]int{3}, ""},
		{[]int{0, 1}, "gateways on cpu 1, load and backend on cpu 0"},
		{[]int{0, 2, 5}, "gateways on cpu 5, load and backend on cpu 0,2"},
	} {
		if got := placeOn(c.cpus).String(); got != c.want {
			t.Errorf("%v: got %q, want %q", c.cpus, got, c.want)
		}
	}
}

// TestClockCorrectsItself: what is left is stretched by what the steps took so far.
func TestClockCorrectsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Plan{Arms: []Arm{{Name: "a"}}, Blocks: 4, Duet: Duet{Warmup: time.Second, Duration: 9 * time.Second}, Budget: 50 * time.Second}
		c := startClock(p)
		if left := time.Until(c.end()); left != 4*p.blockTime() {
			t.Errorf("at first it sees %v left", left)
		}
		for block, fits := range []bool{true, true, false} { // 20 s + 20 s + 20 s > 50 s
			if got := c.fits(p.blockTime()); got != fits {
				t.Errorf("block %d fits: %v", block, got)
			}
			if !fits {
				break
			}
			time.Sleep(20 * time.Second)
			c.step(p.blockTime(), 1)
			c.took(20*time.Second, p.blockTime())
			if left, want := time.Until(c.end()), time.Duration(3-block)*20*time.Second; (left - want).Abs() > time.Millisecond {
				t.Errorf("after block %d it sees %v left, want %v", block, left, want)
			}
		}
		if c.done != 2 || c.total != 4 {
			t.Errorf("done %d of %d", c.done, c.total)
		}
	})
}

func TestWarningsAreCounted(t *testing.T) {
	r := run{warnings: map[string]int{}}
	for _, w := range []string{"a", "b", "a"} {
		r.warn(w)
	}
	if diff := cmp.Diff([]string{"a (2 times)", "b"}, r.warned()); diff != "" {
		t.Error(diff)
	}
}
