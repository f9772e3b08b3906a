package load

import (
	"time"

	"gatebench/internal/conf"
)

// The executors: who decides when the next request is due. The words are k6's.
const (
	// ConstantVUs is closed load: every user sends its next request when the
	// last one is answered.
	ConstantVUs = "constant-vus"
	// SharedIterations is closed load until a number of requests, shared by
	// all users, is used up (ab -n -c).
	SharedIterations = "shared-iterations"
	// ConstantArrivalRate is open load: requests are due at a rate, whatever
	// the answers do.
	ConstantArrivalRate = "constant-arrival-rate"
)

// maxRate is the highest arrival rate that is taken for meant. One schedule has
// one pacer, and a gap of a microsecond is shorter than its wake-up.
const maxRate = 1e6

// maxVUs is the most users that are taken for meant: more than the ports and
// descriptors of one machine carry.
const maxVUs = 1_000_000

// Profile is a load shape, as under `profiles:` in YAML and as the flags of
// `gatebench load`.
type Profile struct {
	// Executor is constant-vus, shared-iterations or constant-arrival-rate. It
	// has no default.
	Executor string `yaml:"executor"`

	// VUs is the number of virtual users, each with a connection of its own.
	// For constant-arrival-rate it is the cap, and 0, the default, stands for
	// rate × timeout as far as the file descriptors reach.
	VUs int `yaml:"vus"`

	// RampUp spreads the users' first requests evenly over a time, warm-up
	// included; 0, the default, starts all at once. Not for
	// constant-arrival-rate.
	RampUp time.Duration `yaml:"ramp_up"`

	// Iterations is how many requests the users of shared-iterations send
	// together, warm-up not included.
	Iterations int64 `yaml:"iterations"`

	// Rate is the arrival rate of constant-arrival-rate.
	Rate conf.Rate `yaml:"rate"`

	// Duration is the measured window, warm-up not included. For
	// shared-iterations it bounds the run, and 0 means no bound.
	Duration time.Duration `yaml:"duration"`

	// Warmup is loaded like the window before it and counts nowhere. Default 0.
	Warmup time.Duration `yaml:"warmup"`

	// Timeout is how long a request may take once it is sent, connecting
	// included, and how long a due one may wait for a user before it is
	// dropped. Default 10s.
	Timeout time.Duration `yaml:"timeout"`

	// KeepAlive reuses connections; without it each request opens its own and
	// says `Connection: close`. Default true.
	KeepAlive bool `yaml:"keep_alive"`
}

// DefaultProfile has the defaults of a profile. It is not valid as it stands: a
// profile has to name its executor.
func DefaultProfile() Profile {
	return Profile{Timeout: 10 * time.Second, KeepAlive: true}
}

// Validate names every bad value, and every value that the executor would have to
// ignore.
func (p Profile) Validate() error {
	var c conf.Check
	c.That(p.Timeout > 0, "timeout", "must be above 0: a request that is never given up can hold up the end of the run for ever")
	c.That(p.Duration >= 0, "duration", "must not be negative")
	c.That(p.Warmup >= 0, "warmup", "must not be negative")
	c.That(p.RampUp >= 0, "ramp_up", "must not be negative")
	c.That(p.VUs <= maxVUs, "vus", "must be at most %d", maxVUs)

	ignored := func(set bool, path string) {
		c.That(!set, path, "is not used by executor %s: remove it", p.Executor)
	}
	switch p.Executor {
	case ConstantVUs:
		c.That(p.VUs > 0, "vus", "must be at least 1 for executor %s", p.Executor)
		c.That(p.Duration != 0, "duration", "is needed by executor %s", p.Executor)
		c.That(p.RampUp < p.Warmup+p.Duration || p.RampUp == 0, "ramp_up",
			"must be shorter than warmup and duration together, or some users never start")
		ignored(p.Iterations != 0, "iterations")
		ignored(!p.Rate.IsZero(), "rate")
	case SharedIterations:
		c.That(p.VUs > 0, "vus", "must be at least 1 for executor %s", p.Executor)
		c.That(p.Iterations > 0, "iterations", "must be at least 1 for executor %s", p.Executor)
		ignored(!p.Rate.IsZero(), "rate")
	case ConstantArrivalRate:
		c.That(p.VUs >= 0, "vus", "must not be negative")
		c.That(!p.Rate.IsZero(), "rate", "is needed by executor %s, like 1000/s", p.Executor)
		c.That(p.Rate.PerSecond <= maxRate, "rate", "must be at most %d/s", int(maxRate))
		c.That(p.Duration != 0, "duration", "is needed by executor %s", p.Executor)
		ignored(p.RampUp != 0, "ramp_up")
		ignored(p.Iterations != 0, "iterations")
	default:
		c.That(false, "executor", "%q is not an executor: choose %s, %s or %s",
			p.Executor, ConstantVUs, SharedIterations, ConstantArrivalRate)
	}
	return c.Err()
}
