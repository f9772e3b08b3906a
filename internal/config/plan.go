package config

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gatebench/backend"
	"gatebench/gateway"
	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/load"
)

// profile is one load shape, decoded.
type profile struct {
	name   string
	shape  profileConfig
	values *strictyaml.Values
}

// readProfiles decodes every profile, used or not: one that is wrong now is wrong
// on the day it is used.
func (d *document) readProfiles() error {
	var errs []error
	overlays := d.file.Profiles
	for _, name := range slices.Sorted(maps.Keys(overlays)) {
		p := profile{name: name, shape: profileConfig{Profile: load.DefaultProfile()}}
		var err error
		p.values, err = overlays[name].Decode(&p.shape)
		p.shape.complete(p.values)
		errs = append(errs, err, p.values.Locate("", p.shape.Validate()))
		if !faulty(err, "profiles."+name+".faults") {
			errs = append(errs, p.values.Locate("", p.shape.checkFaults()))
		}
		if !isName(name) {
			errs = append(errs, p.values.Fault("", "", "%q cannot name a profile: use printable characters, at most %d", name, longestName))
			continue
		}
		d.profiles = append(d.profiles, p)
	}
	if _, written := overlays[steadyName]; !written {
		p := profile{name: steadyName, shape: profileConfig{Profile: steady()}}
		p.values, _ = d.values.Below("profiles." + steadyName).Decode(&p.shape) // no keys, no fault
		d.profiles = append(d.profiles, p)
	}
	return strictyaml.Join(append(errs, d.checkProfileNames())...)
}

// checkProfileNames refuses names of profiles that do not exist, or come twice.
func (d *document) checkProfileNames() error {
	var known []string
	for _, p := range d.profiles {
		known = append(known, p.name)
	}
	e, vs := d.file.Experiment, d.values
	if vs.Set("experiment.profile") && vs.Set("experiment.profiles") {
		return vs.Fault("experiment.profile", "keep one of the two", "stands beside experiment.profiles, of which it is the short form")
	}
	var errs []error
	check := func(path, name string, before []string) {
		switch {
		case slices.Contains(before, name):
			errs = append(errs, vs.Fault(path, "", "the profile %q is named twice", name))
		case !slices.Contains(known, name):
			hint := ""
			if near, ok := strictyaml.Nearest(name, known); ok {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			errs = append(errs, vs.Fault(path, hint, "there is no profile %q; the profiles are %s", name, strings.Join(known, ", ")))
		}
	}
	if vs.Set("experiment.profile") {
		check("experiment.profile", e.Profile, nil)
	} else {
		for i, name := range e.Profiles {
			check(fmt.Sprintf("experiment.profiles[%d]", i), name, e.Profiles[:i])
		}
	}
	return strictyaml.Join(errs...)
}

// armConfig is an arm as it is written: any key of gateway, and a backend.
type armConfig struct {
	Name    string         `yaml:"name"`
	Gateway gateway.Config `yaml:",inline"`
	Backend backend.Config `yaml:"backend"`
}

// arm is one thing compared, decoded.
type arm struct {
	armConfig
	values *strictyaml.Values
}

// given goes over what the arm sets itself.
func (a arm) given() iter.Seq[strictyaml.Value] {
	return func(yield func(strictyaml.Value) bool) {
		for v := range a.values.All() {
			named := strings.HasSuffix(v.Path, "].name") || strings.HasSuffix(v.Path, "].client")
			if (named || v.Origin != "default") && !yield(v) {
				return
			}
		}
	}
}

// readArms decodes every arm over the gateway and backend sections.
func (d *document) readArms() error {
	if !d.values.Set("experiment.arms") {
		d.defaultArms()
		return nil
	}
	if len(d.file.Experiment.Arms) == 0 {
		return d.values.Fault("experiment.arms", "name at least one client, like [{client: net/http}]", "holds no arm to measure")
	}
	var errs []error
	for _, o := range d.file.Experiment.Arms {
		a := arm{armConfig: d.base()}
		var err error
		a.values, err = o.Decode(&a.armConfig)
		if a.Name == "" {
			a.Name = a.Gateway.Client
			if a.Gateway.Mode == gateway.ModeTyped {
				a.Name += " typed"
			}
		}
		errs = append(errs, err, d.checkArm(a))
		if err == nil {
			errs = append(errs, d.checkName(a))
		}
		d.arms = append(d.arms, a)
	}
	return strictyaml.Join(errs...)
}

// defaultArms compares every client.
func (d *document) defaultArms() {
	for i, client := range d.options.Clients {
		a := arm{armConfig: d.base()}
		a.Name, a.Gateway.Client = client, client
		a.values, _ = d.values.Below(fmt.Sprintf("experiment.arms[%d]", i)).Decode(&a.armConfig) // no keys, no fault
		d.arms = append(d.arms, a)
	}
}

// base is what an arm overrides.
func (d *document) base() armConfig {
	return armConfig{Gateway: d.file.Gateway, Backend: d.file.Backend}
}

// chosen are the keys that the experiment decides on for every arm.
var chosen = []string{"listen", "upstream", "admin", "tls", "backend.listen"}

// checkArm has an arm's sections check themselves. What is wrong in the base too
// has been said there.
func (d *document) checkArm(a arm) error {
	errs := []error{
		a.values.Locate("", except(a.Gateway.Validate(), d.file.Gateway.Validate())),
		a.values.Locate("backend", except(a.Backend.Validate(), d.file.Backend.Validate())),
		poolKeys(a.values, "", a.Gateway),
	}
	if a.values.Set("client") {
		errs = append(errs, d.knownClient(a.values, "client", a.Gateway.Client))
	}
	for _, path := range chosen {
		if a.values.Set(path) {
			errs = append(errs, a.values.Fault(path, "take it out", "is not an arm's to set: an experiment starts every process itself, on free ports and in clear"))
		}
	}
	return strictyaml.Join(errs...)
}

// except returns the problems in err that known does not have.
func except(err, known error) error {
	seen := conf.Problems(known)
	var left []error
	for _, p := range conf.Problems(err) {
		if !slices.Contains(seen, p) {
			left = append(left, p)
		}
	}
	return errors.Join(left...)
}

// checkName refuses the name of an arm that another has already.
func (d *document) checkName(a arm) error {
	path := "client"
	if a.values.Set("name") {
		path = "name"
	}
	if !isName(a.Name) {
		return a.values.Fault(path, "", "%q cannot name an arm: use printable characters, at most %d", a.Name, longestName)
	}
	for i, other := range d.arms {
		if other.Name == a.Name {
			return a.values.Fault(path, `tell them apart by a name of its own, like {name: "`+a.Name+` 2", …}`,
				"the arm %q is there already, as experiment.arms[%d]", a.Name, i)
		}
	}
	if d.file.Experiment.Sentinel && len(d.arms) > 0 && a.Name == sentinelOf(d.arms[0].Name) {
		return a.values.Fault(path, "take the arm out, or write sentinel: false", "%q is the name of the copy that is added by itself", a.Name)
	}
	return nil
}

func sentinelOf(baseline string) string { return baseline + " (sentinel)" }

// longestName keeps tables readable, in characters.
const longestName = 60

// isName reports whether s can stand in a table, a file and a metric's label.
func isName(s string) bool {
	n := 0
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
		n++
	}
	return n > 0 && n <= longestName && strings.TrimSpace(s) == s
}

// plan works out the experiment, as far as its arms and profiles could be read.
func (d *document) plan(name string) experiment.Plan {
	e := d.file.Experiment
	p := experiment.Plan{
		Name: name, Blocks: e.Blocks, Seed: e.Seed, Budget: e.Budget,
		Duet: experiment.Duet{Connections: e.Duet.Connections, Warmup: e.Duet.Warmup, Duration: e.Duet.Duration},
	}
	for _, wanted := range []experiment.Precision{
		{Metric: "cpu_us_per_request", Half: float64(e.Precision.CPU)},
		{Metric: "response_time_p50", Half: float64(e.Precision.P50)},
		{Metric: "response_time_p99", Half: float64(e.Precision.P99)},
	} {
		if wanted.Half != 0 {
			p.Precision = append(p.Precision, wanted)
		}
	}
	for _, name := range d.chosenProfiles() {
		for _, known := range d.profiles {
			if known.name == name {
				p.Profiles = append(p.Profiles, experiment.Profile{Name: name, Profile: known.shape.Profile, Faults: known.shape.faults()})
			}
		}
	}
	for _, a := range d.arms {
		p.Arms = append(p.Arms, experiment.Arm{Name: a.Name, Client: a.Gateway.Client, Server: a.Gateway.Server})
	}
	if i := slices.IndexFunc(p.Arms, func(a experiment.Arm) bool { return d.options.Floor != "" && a.Client == d.options.Floor }); i >= 0 {
		p.Arms[i].Floor = true
	}
	if e.Sentinel && len(p.Arms) > 0 {
		s := p.Arms[0]
		s.Floor = false // it is there to be compared
		s.Name, s.SentinelOf = sentinelOf(s.Name), s.Name
		p.Arms = append(p.Arms, s)
	}
	return p
}

func (d *document) chosenProfiles() []string {
	if d.values.Set("experiment.profile") {
		return []string{d.file.Experiment.Profile}
	}
	return d.file.Experiment.Profiles
}

// checkPlan has the plan check itself, and refuses a duet of one. Of a plan that
// lacks what could not be read, only its own values can be judged.
func (d *document) checkPlan(p experiment.Plan, whole bool) error {
	var own []error
	for _, problem := range conf.Problems(p.Validate()) {
		if whole || !isWithin(problem.Path, "arms") && !isWithin(problem.Path, "profiles") {
			own = append(own, problem)
		}
	}
	errs := []error{d.values.Locate("experiment", errors.Join(own...))}
	if whole && p.Duet.Duration > 0 && len(p.Arms) == 1 {
		errs = append(errs, d.values.Fault("experiment.arms", "name a second arm, write sentinel: true, or leave the duet out with duet: {duration: 0s}",
			"the duet compares arms that run at once, and there is one"))
	}
	return strictyaml.Join(errs...)
}

// absent are the paths that the files of an arm do without: what is not in force,
// and what the experiment decides on.
func (a arm) absent() []string {
	return append(unused(a.Gateway), "listen", "upstream", "admin", "tls")
}

// writeFiles gives every arm of p its two files, and p what the result keeps.
func (d *document) writeFiles(p *experiment.Plan) error {
	for i, a := range d.arms {
		var err error
		if p.Arms[i].Gateway, p.Arms[i].Backend, err = a.files(); err != nil {
			return err
		}
	}
	if s := &p.Arms[len(p.Arms)-1]; s.SentinelOf != "" {
		s.Gateway, s.Backend = p.Arms[0].Gateway, p.Arms[0].Backend
	}
	var err error
	p.Config, err = d.effective()
	return err
}

func (a arm) files() (gatewayFile, backendFile []byte, err error) {
	gatewayFile, err = strictyaml.Marshal(struct {
		Gateway gateway.Config `yaml:"gateway"`
	}{a.Gateway}, below("gateway", a.absent())...)
	if err != nil {
		return nil, nil, err
	}
	backendFile, err = strictyaml.Marshal(struct {
		Backend backend.Config `yaml:"backend"`
	}{a.Backend}, "backend.listen")
	return gatewayFile, backendFile, err
}

func below(prefix string, paths []string) []string {
	full := make([]string, len(paths))
	for i, p := range paths {
		full[i] = prefix + "." + p
	}
	return full
}

// effective is the plan for the result document: the experiment and its profiles,
// and for each arm its whole gateway and backend section.
func (d *document) effective() ([]byte, error) {
	type armSections struct {
		Name    string         `yaml:"name"`
		Gateway gateway.Config `yaml:"gateway"`
		Backend backend.Config `yaml:"backend"`
	}
	doc := struct {
		Experiment Experiment               `yaml:"experiment"`
		Profiles   map[string]profileConfig `yaml:"profiles"`
		Thresholds map[string]string        `yaml:"thresholds"`
		Arms       []armSections            `yaml:"arms"`
	}{d.file.Experiment, map[string]profileConfig{}, d.file.Thresholds, nil}
	doc.Experiment.Profiles = d.chosenProfiles()
	omit := []string{"experiment.profile"}
	for _, pr := range d.profiles {
		if slices.Contains(doc.Experiment.Profiles, pr.name) {
			doc.Profiles[pr.name] = pr.shape
			omit = append(omit, pr.unwritten()...)
		}
	}
	for i, a := range d.arms {
		doc.Arms = append(doc.Arms, armSections{a.Name, a.Gateway, a.Backend})
		at := fmt.Sprintf("arms[%d]", i)
		omit = append(omit, below(at+".gateway", a.absent())...)
		omit = append(omit, at+".backend.listen")
	}
	return strictyaml.JSON(doc, omit...)
}
