// Package config is the configuration file: which sections there are, how a file,
// a bundled plan or nothing at all becomes one checked whole, and how an experiment
// becomes a plan of complete arms.
//
// It leaves to others: what a section's values mean (each section's package), how
// YAML is read (strictyaml), which clients exist (the caller knows the registry).
//
// The trap: a profile that the file names replaces the built-in one of that name,
// it is not merged with it: the keys of one executor are errors for another.
package config

import (
	"time"

	"gatebench/backend"
	"gatebench/gateway"
	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// formatVersion is the one version of the file's format.
const formatVersion = 1

// EnvPrefix begins the names of the variables that override single keys.
const EnvPrefix = "GATEBENCH"

// file is the document as it is written. Arms and profiles are kept as overlays:
// what they override is known only when the rest is decoded.
type file struct {
	Version    int                           `yaml:"version"`
	Backend    backend.Config                `yaml:"backend"`
	Gateway    gateway.Config                `yaml:"gateway"`
	Experiment Experiment                    `yaml:"experiment"`
	Profiles   map[string]strictyaml.Overlay `yaml:"profiles"`
	// Thresholds are what every arm must keep, like p99: "< 50ms". Default
	// none.
	Thresholds map[string]string `yaml:"thresholds"`
}

// Experiment is the experiment section.
type Experiment struct {
	// Arms are what is compared, each by the keys in which it differs from
	// the gateway section, and under backend from the backend section. The
	// first is the baseline. An arm's name is its client unless it gives one.
	// Default: every client once.
	Arms []strictyaml.Overlay `yaml:"arms"`
	// Sentinel adds a second copy of the baseline, which shows the noise.
	// Default true.
	Sentinel bool `yaml:"sentinel"`
	// Blocks is how often every arm is measured. Default 10.
	Blocks int `yaml:"blocks"`
	// Precision makes Blocks a pilot, from which the run finds how many blocks an
	// interval as narrow as this needs, as far as the budget holds them. Default
	// none: Blocks is the number.
	Precision Precision `yaml:"precision"`
	// Seed gives the order of the arms in every block. Default 42.
	Seed uint64 `yaml:"seed"`
	// Budget is the time that the whole run may take; 0s is no bound. Default
	// 30m.
	Budget time.Duration `yaml:"budget"`
	// Duet is the phase in which all arms run at once.
	Duet Duet `yaml:"duet"`
	// Profiles name the loads of the solo phase. Default [steady].
	Profiles []string `yaml:"profiles"`
	// Profile is short for a list of one. Default "".
	Profile string `yaml:"profile"`
}

// Precision is half the width that an interval is to have, as a share of the ratio; 0%
// asks nothing of a metric.
type Precision struct {
	// CPU is of gateway CPU per request. Default 0%.
	CPU conf.Ratio `yaml:"cpu_us_per_request"`
	// P50 and P99 are of response times. Default 0%.
	P50 conf.Ratio `yaml:"response_time_p50"`
	P99 conf.Ratio `yaml:"response_time_p99"`
}

// Duet is the phase that gives CPU per request.
type Duet struct {
	// Connections is how many users load each arm. Default 64.
	Connections int `yaml:"connections"`
	// Warmup comes before Duration and counts nowhere. Default 2s.
	Warmup time.Duration `yaml:"warmup"`
	// Duration is the measured window; 0s leaves the phase out. Default 8s.
	Duration time.Duration `yaml:"duration"`
}

func defaults() file {
	return file{
		Version: formatVersion,
		Backend: backend.DefaultConfig(),
		Gateway: gateway.DefaultConfig(),
		Experiment: Experiment{
			Sentinel: true,
			Blocks:   10,
			Seed:     42,
			Budget:   30 * time.Minute,
			Duet:     Duet{Connections: 64, Warmup: 2 * time.Second, Duration: 8 * time.Second},
			Profiles: []string{steadyName},
		},
	}
}

// steady is the profile that is there without being written.
const steadyName = "steady"

func steady() load.Profile {
	p := load.DefaultProfile()
	p.Executor = load.ConstantArrivalRate
	p.Rate = conf.Rate{OfSaturation: 0.45}
	p.Duration = 10 * time.Second
	p.Warmup = 3 * time.Second
	return p
}
