package load

import (
	"slices"
	"strings"
	"time"

	"gatebench/internal/conf"
)

// The executors: who decides when the next request is due. The words are k6's, but
// for the last.
const (
	// ConstantVUs is closed load: every user sends its next request when the
	// last one is answered.
	ConstantVUs = "constant-vus"
	// RampingVUs is closed load by a number of users that changes in stages.
	RampingVUs = "ramping-vus"
	// SharedIterations is closed load until a number of requests, shared by
	// all users, is used up (ab -n -c).
	SharedIterations = "shared-iterations"
	// ConstantArrivalRate is open load: requests are due at a rate, whatever
	// the answers do.
	ConstantArrivalRate = "constant-arrival-rate"
	// RampingArrivalRate is open load at a rate that changes in stages.
	RampingArrivalRate = "ramping-arrival-rate"
	// MaxRateSearch is open load at several rates, one after the other, until
	// the highest that meets an objective is known to within a twentieth.
	MaxRateSearch = "max-rate-search"
)

// Executors lists them all.
func Executors() []string {
	return []string{ConstantVUs, RampingVUs, SharedIterations, ConstantArrivalRate, RampingArrivalRate, MaxRateSearch}
}

// How arrivals and think times are spread.
const (
	Constant    = "constant"    // all gaps alike
	Poisson     = "poisson"     // gaps of arrivals at random, as of many users who know nothing of each other
	Exponential = "exponential" // the same of one user's think times
)

// maxRate is the highest arrival rate that is taken for meant. One schedule has
// one pacer, and a gap of a microsecond is shorter than its wake-up.
const maxRate = 1e6

// maxVUs is the most users that are taken for meant: more than the ports and
// descriptors of one machine carry.
const maxVUs = 1_000_000

// maxDrawn is how many arrivals are drawn beforehand at most: 8 bytes each.
const maxDrawn = 10_000_000

// maxStages bounds the results of stages, which are kept apart.
const maxStages = 100

// Profile is a load shape, as under `profiles:` in YAML and as the flags of
// `gatebench load`.
type Profile struct {
	// Executor is constant-vus, ramping-vus, shared-iterations,
	// constant-arrival-rate, ramping-arrival-rate or max-rate-search. It has
	// no default.
	Executor string `yaml:"executor"`

	// VUs is the number of virtual users, each with a connection of its own.
	// For open load it is the cap, and 0, the default, stands for rate ×
	// timeout as far as the file descriptors reach.
	VUs int `yaml:"vus"`

	// RampUp spreads the users' first requests evenly over a time, warm-up
	// included; 0, the default, starts all at once. For constant-vus and
	// shared-iterations.
	RampUp time.Duration `yaml:"ramp_up"`

	// Start is the level that the first stage starts from, and that a warm-up
	// holds: users, like 10, or a rate, like 100/s. Default 0.
	Start Level `yaml:"start"`

	// Stages are the course of a ramping executor. Each that takes time has a
	// result of its own; one of 0s is a jump, so that a ladder of steps is
	// jumps and stages in turn.
	Stages []Stage `yaml:"stages"`

	// Iterations is how many requests the users of shared-iterations send
	// together, warm-up not included.
	Iterations int64 `yaml:"iterations"`

	// Rate is the arrival rate of constant-arrival-rate, and the highest that
	// max-rate-search tries; without it that finds out by itself.
	Rate conf.Rate `yaml:"rate"`

	// Arrivals is how open load is spread: constant or poisson. Default
	// constant.
	Arrivals string `yaml:"arrivals"`

	// Objective is what the rate that max-rate-search looks for has to meet,
	// like {p99: "< 50ms", errors: "< 0.1%"}.
	Objective Objective `yaml:"objective"`

	// Duration is the measured window, warm-up not included. For
	// shared-iterations it bounds the run, and 0 means no bound; for
	// max-rate-search it is that of each probe. The ramping executors take as
	// long as their stages.
	Duration time.Duration `yaml:"duration"`

	// Warmup is loaded like the window before it and counts nowhere. Default 0.
	Warmup time.Duration `yaml:"warmup"`

	// ThinkTime is how long a user of closed load waits between an answer and
	// its next request. Default 0s.
	ThinkTime time.Duration `yaml:"think_time"`

	// ThinkDistribution is constant, or exponential around the mean that
	// think_time then is. Default constant.
	ThinkDistribution string `yaml:"think_distribution"`

	// Timeout is how long a request may take once it is sent, connecting
	// included, and how long a due one may wait for a user before it is
	// dropped. Default 10s.
	Timeout time.Duration `yaml:"timeout"`

	// GracefulStop is how long what is in flight at the end is awaited; it is
	// cut then. Default 0s, which is the timeout.
	GracefulStop time.Duration `yaml:"graceful_stop"`

	// KeepAlive reuses connections; without it each request opens its own and
	// says `Connection: close`. Default true.
	KeepAlive bool `yaml:"keep_alive"`

	// Requests are a mix, in place of the one request that the target
	// describes. Default: none.
	Requests []Request `yaml:"requests"`

	// Seed gives whatever is drawn at random: Poisson arrivals, exponential
	// think times, the order of a mix of requests. Default 1.
	Seed uint64 `yaml:"seed"`
}

// DefaultProfile has the defaults of a profile. It is not valid as it stands: a
// profile has to name its executor.
func DefaultProfile() Profile {
	return Profile{
		Arrivals: Constant, ThinkDistribution: Constant,
		Timeout: 10 * time.Second, KeepAlive: true, Seed: 1,
	}
}

// Open reports whether requests are due whatever the answers do.
func (p Profile) Open() bool {
	return p.Executor == ConstantArrivalRate || p.Executor == RampingArrivalRate || p.Executor == MaxRateSearch
}

func (p Profile) ramping() bool { return p.Executor == RampingVUs || p.Executor == RampingArrivalRate }

// Window is how long the load is measured: the duration, or that of all stages
// together. It is 0 where nobody knows beforehand.
func (p Profile) Window() time.Duration {
	switch {
	case p.Executor == MaxRateSearch:
		return 0
	case !p.ramping():
		return p.Duration
	}
	total := time.Duration(0)
	for _, s := range p.Stages {
		total += s.Duration
	}
	return total
}

// OfSaturation reports whether a rate is a share of a saturation that is to be
// measured first.
func (p Profile) OfSaturation() bool {
	return p.Rate.OfSaturation > 0 || p.Start.Rate.OfSaturation > 0 ||
		slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.Target.Rate.OfSaturation > 0 })
}

// At is the profile with every share of saturation as a rate, given that
// saturation in requests per second: whole ones, from 1 per second upwards, so that
// the rate in a report is the rate that was sent.
func (p Profile) At(saturation float64) Profile {
	absolute := func(r *conf.Rate) {
		if share := float64(r.OfSaturation); share > 0 {
			*r = conf.Rate{PerSecond: max(1, float64(int64(share*saturation)))}
		}
	}
	absolute(&p.Rate)
	absolute(&p.Start.Rate)
	p.Stages = slices.Clone(p.Stages)
	for i := range p.Stages {
		absolute(&p.Stages[i].Target.Rate)
	}
	return p
}

// Validate names every bad value, and every value that the executor would have to
// ignore.
func (p Profile) Validate() error {
	var c conf.Check
	c.That(p.Timeout > 0, "timeout", "must be above 0: a request that is never given up can hold up the end of the run for ever")
	c.That(p.VUs >= 0, "vus", "must not be negative")
	c.That(p.VUs <= maxVUs, "vus", "must be at most %d", maxVUs)
	for _, d := range []struct {
		path string
		time.Duration
	}{
		{"duration", p.Duration},
		{"warmup", p.Warmup},
		{"ramp_up", p.RampUp},
		{"think_time", p.ThinkTime},
		{"graceful_stop", p.GracefulStop},
	} {
		c.That(d.Duration >= 0, d.path, "must not be negative")
	}
	spread := func(path, value, random string) {
		c.That(slices.Contains([]string{"", Constant, random}, value), path, "%q is not known: write %s or %s", value, Constant, random)
	}
	spread("arrivals", p.Arrivals, Poisson)
	spread("think_distribution", p.ThinkDistribution, Exponential)
	c.That(p.ThinkTime > 0 || p.ThinkDistribution != Exponential, "think_distribution", "has no think_time to spread")
	c.Within("objective", p.Objective.Validate())
	for i, r := range p.Requests {
		c.Within("requests["+itoa(i)+"]", r.Validate())
	}
	p.checkUse(&c)
	switch p.Executor {
	case ConstantVUs:
		c.That(p.RampUp < p.Warmup+p.Duration || p.RampUp == 0, "ramp_up",
			"must be shorter than warmup and duration together, or some users never start")
	case RampingVUs, RampingArrivalRate:
		p.checkStages(&c)
	case ConstantArrivalRate, MaxRateSearch:
		c.That(p.Rate.PerSecond <= maxRate, "rate", "must be at most %d/s", int(maxRate))
	}
	p.checkDrawn(&c)
	return c.Err()
}

// use is what an executor does with a key.
type use int

const (
	ignored use = iota
	optional
	needed
)

// uses are the keys that not every executor has a use for.
var uses = []struct {
	path string
	set  func(Profile) bool
	by   map[string]use
	how  string // what a needed one looks like
}{
	{"vus", func(p Profile) bool { return p.VUs != 0 }, map[string]use{
		ConstantVUs: needed, SharedIterations: needed, ConstantArrivalRate: optional, RampingArrivalRate: optional, MaxRateSearch: optional,
	}, "like 50"},
	{"ramp_up", func(p Profile) bool { return p.RampUp != 0 }, map[string]use{ConstantVUs: optional, SharedIterations: optional}, ""},
	{"start", func(p Profile) bool { return p.Start != Level{} }, map[string]use{RampingVUs: optional, RampingArrivalRate: optional}, ""},
	{"stages", func(p Profile) bool { return len(p.Stages) > 0 }, map[string]use{RampingVUs: needed, RampingArrivalRate: needed},
		"like [{target: 100, duration: 10s}]"},
	{"iterations", func(p Profile) bool { return p.Iterations != 0 }, map[string]use{SharedIterations: needed}, "like 10000"},
	{"rate", func(p Profile) bool { return !p.Rate.IsZero() }, map[string]use{ConstantArrivalRate: needed, MaxRateSearch: optional}, "like 1000/s"},
	{"arrivals", func(p Profile) bool { return p.Arrivals == Poisson }, map[string]use{
		ConstantArrivalRate: optional, RampingArrivalRate: optional, MaxRateSearch: optional,
	}, ""},
	{"objective", func(p Profile) bool { return len(p.Objective) > 0 }, map[string]use{MaxRateSearch: needed}, `like {p99: "< 50ms"}`},
	{"duration", func(p Profile) bool { return p.Duration != 0 }, map[string]use{
		ConstantVUs: needed, SharedIterations: optional, ConstantArrivalRate: needed, MaxRateSearch: needed,
	}, "like 10s"},
	{"think_time", func(p Profile) bool { return p.ThinkTime != 0 }, map[string]use{ConstantVUs: optional, RampingVUs: optional, SharedIterations: optional}, ""},
}

func (p Profile) checkUse(c *conf.Check) {
	if !slices.Contains(Executors(), p.Executor) {
		c.That(false, "executor", "%q is not an executor: choose %s", p.Executor, strings.Join(Executors(), ", "))
		return
	}
	for _, u := range uses {
		switch set := u.set(p); {
		case u.by[p.Executor] == ignored:
			c.That(!set, u.path, "is not used by executor %s: remove it", p.Executor)
		case u.by[p.Executor] == needed:
			c.That(set, u.path, "is needed by executor %s, %s", p.Executor, u.how)
		}
	}
	c.That(p.Iterations >= 0, "iterations", "must not be negative")
}

func (p Profile) checkStages(c *conf.Check) {
	c.That(len(p.Stages) <= maxStages, "stages", "must be at most %d", maxStages)
	users := p.Executor == RampingVUs
	level := func(path string, l Level) {
		if users {
			c.That(l.Rate.IsZero(), path, "%s is a rate, and executor %s counts users: write a whole number", l, p.Executor)
			c.That(0 <= l.Users && l.Users <= maxVUs, path, "must be from 0 to %d", maxVUs)
			return
		}
		c.That(l.Users == 0, path, "%s has no unit: write a rate, like %s/s", l, l)
		c.That(l.Rate.PerSecond <= maxRate, path, "must be at most %d/s", int(maxRate))
	}
	level("start", p.Start)
	for i, s := range p.Stages {
		at := "stages[" + itoa(i) + "]"
		level(at+".target", s.Target)
		c.That(s.Duration >= 0, at+".duration", "must not be negative")
	}
	c.That(len(p.Stages) == 0 || p.Window() > 0, "stages", "take no time at all: give one of them a duration")
	c.That(p.Warmup == 0 || p.Start != Level{}, "warmup", "has no load to hold: give the level that it holds as start")
}

// checkDrawn bounds what is drawn before the run.
func (p Profile) checkDrawn(c *conf.Check) {
	if p.Arrivals != Poisson || c.Err() != nil || p.OfSaturation() || p.Executor == MaxRateSearch {
		return
	}
	n := p.curve().before(p.Warmup + p.Window())
	c.That(n <= maxDrawn, "arrivals", "%s arrivals are drawn beforehand, at most %d of them, and these would be %d: take a shorter run", Poisson, maxDrawn, n)
}

// curve is the mean of an open load's arrivals over time.
func (p Profile) curve() curve {
	if p.Executor == RampingArrivalRate {
		return newRamp(p.stretches())
	}
	return arrivals(p.Rate.PerSecond)
}

// schedule is when the requests of an open load are due.
func (p Profile) schedule() schedule {
	c := p.curve()
	if p.Arrivals == Poisson {
		return poisson(c, p.Seed, p.Warmup, p.Warmup+p.Window())
	}
	return c
}

// highestRate is that of an open load, per second.
func (p Profile) highestRate() float64 {
	if p.Executor == RampingArrivalRate {
		return peak(p.stretches())
	}
	return p.Rate.PerSecond
}
