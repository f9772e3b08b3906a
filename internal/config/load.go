package config

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatebench/backend"
	"gatebench/configs"
	"gatebench/gateway"
	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/threshold"
)

// Options are what a configuration depends on besides its file.
type Options struct {
	// Clients are the names of the clients there are, in the order in which
	// they are compared by default.
	Clients []string
	// Floor is the name of the client that answers from memory, which an arm may
	// have and which is not compared by default; "" where there is none.
	Floor string
	// Environ is the environment, as from os.Environ: GATEBENCH_GATEWAY_CLIENT
	// and its like override single keys.
	Environ []string
}

// Config is a configuration, checked as a whole.
type Config struct {
	// Name is the plan's name, or the file's without its ending.
	Name    string
	Gateway gateway.Config
	Backend backend.Config
	// Plan is the experiment with its arms worked out.
	Plan experiment.Plan
	// Thresholds are what its result is held against, by name.
	Thresholds []threshold.Threshold

	document
}

// Load reads the file at path.
func Load(path string, o Options) (*Config, error) {
	d, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	return decode(strings.TrimSuffix(base, filepath.Ext(base)), d, o)
}

// LoadPlan reads a bundled plan by its name, or else a file by its path.
func LoadPlan(nameOrPath string, o Options) (*Config, error) {
	if file, src, ok := configs.Plan(nameOrPath); ok {
		d, err := strictyaml.Parse(file, src)
		if err != nil {
			return nil, err
		}
		return decode(nameOrPath, d, o)
	}
	if isPath(nameOrPath) {
		return Load(nameOrPath, o)
	}
	plans := configs.Plans()
	e := &strictyaml.Error{
		File:    nameOrPath,
		Message: "there is neither a plan nor a file of this name; the plans are " + strings.Join(plans, ", "),
	}
	if near, ok := strictyaml.Nearest(nameOrPath, plans); ok {
		e.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, e
}

// isPath tells a path from a mistyped plan.
func isPath(s string) bool {
	if strings.ContainsRune(s, filepath.Separator) || filepath.Ext(s) != "" {
		return true
	}
	_, err := os.Stat(s)
	return err == nil
}

// Defaults is the configuration without a file.
func Defaults(o Options) (*Config, error) {
	d, err := strictyaml.Parse("no file", nil)
	if err != nil {
		return nil, err
	}
	return decode("default", d, o)
}

// decode turns a document into a configuration, or into every fault there is.
func decode(name string, d *strictyaml.Document, o Options) (*Config, error) {
	doc := document{file: defaults(), options: o}
	var err error
	doc.values, err = d.Decode(&doc.file, strictyaml.Environment{Prefix: EnvPrefix, Vars: o.Environ})
	errs := []error{err, doc.check()}
	if !faulty(err, "profiles") {
		errs = append(errs, doc.readProfiles())
	}
	if !faulty(err, "experiment.arms") {
		errs = append(errs, doc.readArms())
	}
	thresholds, err := doc.readThresholds(err)
	errs = append(errs, err)
	plan := doc.plan(name)
	errs = append(errs, doc.checkPlan(plan, strictyaml.Join(errs...) == nil))
	if err := strictyaml.Join(errs...); err != nil {
		return nil, err
	}
	if err := doc.writeFiles(&plan); err != nil {
		return nil, err
	}
	return &Config{Name: name, Gateway: doc.file.Gateway, Backend: doc.file.Backend, Plan: plan, Thresholds: thresholds, document: doc}, nil
}

// faulty reports whether something at path could not be decoded, so that what
// stands on it would only be said to be wrong too.
func faulty(err error, path string) bool {
	for _, e := range strictyaml.Errors(err) {
		if isWithin(e.Path, path) {
			return true
		}
	}
	return false
}

// document is a file in the course of being understood.
type document struct {
	file     file
	values   *strictyaml.Values
	options  Options
	profiles []profile
	arms     []arm
}

// check has the sections check themselves, and what is between them.
func (d *document) check() error {
	var version conf.Check
	version.That(d.file.Version == formatVersion, "version", "%d is not a version this program reads: write %d", d.file.Version, formatVersion)
	return strictyaml.Join(
		d.values.Locate("", version.Err()),
		d.values.Locate("backend", d.file.Backend.Validate()),
		d.values.Locate("gateway", d.file.Gateway.Validate()),
		d.knownClient(d.values, "gateway.client", d.file.Gateway.Client),
		poolKeys(d.values, "gateway.", d.file.Gateway),
	)
}

// knownClient refuses a client that does not exist.
func (d *document) knownClient(vs *strictyaml.Values, path, client string) error {
	known := d.options.Clients
	if d.options.Floor != "" {
		known = append(slices.Clip(known), d.options.Floor)
	}
	if client == "" || slices.Contains(known, client) { // of "" the section complains
		return nil
	}
	hint := ""
	if near, ok := strictyaml.Nearest(client, known); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return vs.Fault(path, hint, "%q is not a client; the clients are %s", client, strings.Join(known, ", "))
}

// unused returns the paths of values that are not in force: the policy library
// leaves the pool as shipped.
func unused(g gateway.Config) []string {
	if g.Pool.Policy != "library" {
		return nil
	}
	return []string{"pool.max_conns", "pool.max_pending", "pool.pending_timeout", "pool.idle_timeout", "pool.keep_alive"}
}

// poolKeys refuses keys that were written and are not in force.
func poolKeys(vs *strictyaml.Values, prefix string, g gateway.Config) error {
	var errs []error
	for _, path := range unused(g) {
		if vs.Set(prefix + path) {
			errs = append(errs, vs.Fault(prefix+path, "take it out, or write policy: equal",
				"is not in force: pool.policy is library, which leaves every client as shipped"))
		}
	}
	return strictyaml.Join(errs...)
}

// Values goes over every effective value, with its origin: the sections, then what
// each arm sets, then the profiles.
func (c *Config) Values() iter.Seq[strictyaml.Value] {
	return func(yield func(strictyaml.Value) bool) {
		for v := range c.values.All() {
			if isWithin(v.Path, "experiment.arms") || isWithin(v.Path, "profiles") || c.outOfForce(v.Path) {
				continue
			}
			if !yield(v) {
				return
			}
		}
		for _, a := range c.arms {
			for v := range a.given() {
				if !yield(v) {
					return
				}
			}
		}
		for _, p := range c.profiles {
			unwritten := p.unwritten()
			for v := range p.values.All() {
				if !slices.Contains(unwritten, v.Path) && !yield(v) {
					return
				}
			}
		}
	}
}

func (c *Config) outOfForce(path string) bool {
	switch path {
	case "experiment.profile":
		return !c.values.Set(path)
	case "experiment.profiles":
		return c.values.Set("experiment.profile")
	}
	return slices.Contains(below("gateway", unused(c.Gateway)), path)
}

// isWithin reports whether path is the given one or below it.
func isWithin(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
