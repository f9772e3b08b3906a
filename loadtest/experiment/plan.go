package experiment

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"gatebench/internal/conf"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
)

// Plan is what an experiment is to do, complete: everything that decides what is
// measured is in it, so that the same plan can be carried out again.
type Plan struct {
	Name string

	// Arms are what is compared; the first is the baseline.
	Arms []Arm

	// Blocks is how often every arm is measured, at least 1.
	Blocks int

	// Precision, where it names a metric, makes Blocks a pilot: by how much its
	// ratios scatter the run finds how many blocks the precision needs, as far as
	// the budget holds them.
	Precision []Precision

	// Seed gives the order of arms in every block.
	Seed uint64

	// Budget is the time that the whole run may take: no block starts that
	// would overrun it. 0 is no bound.
	Budget time.Duration

	// Duet is the phase that gives CPU per request; a Duration of 0 leaves it
	// out.
	Duet Duet

	// Profiles are the loads of the solo phase, each over all arms.
	Profiles []Profile

	// Config is the effective configuration, kept in the result as it is.
	Config json.RawMessage
}

// Arm is one thing compared: a gateway and a backend of their own.
type Arm struct {
	Name, Client, Server string

	// SentinelOf names the arm of which this one is a second copy; "" for
	// none.
	SentinelOf string

	// Floor marks the arm whose client answers from memory: what its gateway
	// costs, every gateway does.
	Floor bool

	// Gateway and Backend are YAML documents as `gatebench gateway -f` and
	// `gatebench backend -f` read them. Their addresses are replaced: every
	// process listens on a free port. Arms with the same Backend share one
	// process in a block.
	Gateway, Backend []byte
}

// Duet is the phase in which the gateways of all arms run at once under the same
// saturating load.
type Duet struct {
	// Connections is the number of users that each arm's load has, without
	// think time.
	Connections int
	// Warmup comes before Duration and counts nowhere.
	Warmup, Duration time.Duration
}

// Profile is one load of the solo phase, by its name in the file.
type Profile struct {
	Name string
	load.Profile

	// Faults are what goes wrong meanwhile. Their windows lie within the
	// profile's.
	Faults []Fault
}

// Validate reports everything that would keep the plan from being carried out, by
// its path in the experiment section.
func (p Plan) Validate() error {
	var c conf.Check
	c.That(len(p.Arms) > 0, "arms", "no arm to measure: name at least one client")
	c.That(p.Blocks > 0, "blocks", "%d blocks measure nothing: at least 1 is needed", p.Blocks)
	c.That(p.Duet.Duration > 0 || len(p.Profiles) > 0, "profiles", "nothing to measure: name a profile or give the duet a duration")
	c.That(p.Duet.Connections > 0, "duet.connections", "%d connections carry no load: at least 1 is needed", p.Duet.Connections)
	c.That(len(p.Precision) == 0 || p.Blocks >= leastPilot, "precision",
		"%d blocks foretell no width: write blocks: %d or more, or take it out", p.Blocks, leastPilot)
	c.That(len(p.Precision) == 0 || p.Budget > 0, "precision", "may need any number of blocks: give the run a budget, or take it out")
	for _, pr := range p.Precision {
		c.That(pr.Half > 0 && pr.Half < 1, "precision."+pr.Metric, "±%v %% is no precision: write a share above 0%% and below 100%%", 100*pr.Half)
	}
	names := map[string]bool{}
	for _, a := range p.Arms {
		c.That(!names[a.Name], "arms", "two arms are called %q: give one of them another name", a.Name)
		names[a.Name] = true
	}
	for _, pr := range p.Profiles {
		c.Within("profiles."+pr.Name, pr.Validate())
	}
	if block := p.blockTime(); p.Budget > 0 && p.Blocks > 0 && c.Err() == nil {
		c.That(p.beforeTime()+block <= p.Budget, "budget", "%v cannot hold a single block, which takes about %v", p.Budget, (p.beforeTime() + block).Round(time.Second))
	}
	return c.Err()
}

// order is the random order of n arms in each phase of one block: first the duet,
// then every profile. It is a function of seed, block and the phase's place alone.
func order(seed uint64, block, phase, n int) []int {
	r := rand.New(rand.NewPCG(seed, uint64(block)))
	perm := r.Perm(n)
	for range phase {
		perm = r.Perm(n)
	}
	return perm
}

// Times that a trial takes apart from its load: starting, becoming ready,
// draining, stopping. They serve the estimate alone.
const (
	duetOverhead = 700 * time.Millisecond
	soloOverhead = 300 * time.Millisecond
)

// The pilot saturates every arm for a moment, twice, to find the rate that a share
// of saturation stands for.
const (
	pilotRounds   = 2
	pilotWarmup   = 300 * time.Millisecond
	pilotDuration = 900 * time.Millisecond
)

// time is about how long the plan takes on a calm machine.
func (p Plan) time() time.Duration {
	return p.beforeTime() + time.Duration(p.Blocks)*p.blockTime()
}

// blockTime is about how long a block takes.
func (p Plan) blockTime() time.Duration { return p.timeOf(p.parts()) }

// timeOf is about how long parts of a block take. A profile whose end is a number of
// iterations has no time of its own and counts nothing.
func (p Plan) timeOf(parts []part) time.Duration {
	var d time.Duration
	for _, of := range parts {
		if of.phase == result.Duet {
			d += p.Duet.Warmup + p.Duet.Duration + duetOverhead
			continue
		}
		pr := p.Profiles[of.profile]
		d += time.Duration(len(p.Arms)) * (pr.Warmup + pr.Window() + soloOverhead)
	}
	return d
}

// beforeTime is about how long what comes before the first block takes.
func (p Plan) beforeTime() time.Duration {
	return p.pilotTime() + time.Duration(2*len(p.connectionUses()))*ceilingTime
}

// pilotTime is about how long the pilot takes, 0 where none is needed.
func (p Plan) pilotTime() time.Duration {
	if !p.needsPilot() {
		return 0
	}
	n := 0
	for _, a := range p.Arms {
		if a.SentinelOf == "" {
			n++
		}
	}
	return time.Duration(pilotRounds*n) * (pilotWarmup + pilotDuration + soloOverhead)
}

func (p Plan) needsPilot() bool {
	return slices.ContainsFunc(p.Profiles, func(pr Profile) bool { return pr.OfSaturation() })
}
