package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// Options say where and with what a plan is carried out.
type Options struct {
	// Binary is the program whose commands gateway, backend and load are
	// started.
	Binary string

	// Out is the folder for the processes' log and configuration.
	Out string

	// Env is the environment that the processes get; GATEBENCH_ variables are
	// left out, since the plan alone decides what is measured.
	Env []string

	// Host looks at the machine for the gates; nil is [sut.ReadHost].
	Host func() (sut.Host, error)

	// Pprof is a kind of profile that every arm's gateway writes of itself after
	// the last block: "cpu" or "heap", "" for none.
	Pprof string

	// Progress is called before every step, from one goroutine. Nil is none.
	Progress func(Event)

	// Live is called four times a second for every load that runs, from several
	// goroutines at once. Nil is none, and costs nothing.
	Live func(Live)
}

// journalName is the file in the output folder with what every process said.
const journalName = "processes.log"

// Run carries the plan out and returns what was measured, without comparisons.
//
// If ctx is done first, or a process dies, everything is stopped within seconds
// and the document holds what was measured so far: marked Interrupted in the first
// case, beside an error that names the process and its last words in the second.
// The document is nil only if nothing was started.
func Run(ctx context.Context, p Plan, o Options) (*result.Document, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := PrepareOut(o.Out); err != nil {
		return nil, err
	}
	files, err := writeArms(o.Out, p.Arms)
	if err != nil {
		return nil, err
	}
	profiles, err := newProfileFiles(o.Out)
	if err != nil {
		return nil, err
	}
	journal, err := os.Create(filepath.Join(o.Out, journalName))
	if err != nil {
		return nil, fmt.Errorf("open the log of processes: %w", err)
	}
	defer func() { _ = journal.Close() }() // only a log
	l := sut.NewLauncher(journal)
	defer l.Close()

	if o.Host == nil {
		o.Host = sut.ReadHost
	}
	r := &run{
		plan:     p,
		options:  o,
		files:    files,
		profiles: profiles,
		env:      foreign(o.Env),
		launcher: l,
		place:    placeOn(sut.CPUs()),
		doc:      newDocument(p),
		patience: p.patience(),
		warnings: map[string]int{},
	}
	r.doc.Machine.Environment = goSettings(r.env)
	r.doc.Machine.PinnedTo = r.place.String()
	if r.place.gateways == nil {
		r.warn("nothing is pinned, as there are not two processors to keep gateways and load apart: figures are noisier")
	}
	err = r.all(ctx)
	if ctx.Err() != nil {
		// Whatever failed then, failed because of it.
		r.doc.Interrupted, err = true, nil
	}
	if err != nil {
		r.warn("the run ended early: " + err.Error())
	}
	r.doc.Finished = time.Now()
	r.doc.Gates = gate.Read(r.doc.Trials)
	r.doc.Warnings = append(r.warned(), gate.Warnings(r.doc.Trials)...)
	return r.doc, err
}

// run is one experiment on its way.
type run struct {
	plan     Plan
	options  Options
	files    []sections // by arm
	profiles *profileFiles
	env      []string
	launcher *sut.Launcher
	place    placement
	doc      *result.Document
	clock    clock

	patience time.Duration // left to wait for a calm machine
	foreign  float64       // share of the machine that others used in the last trial

	told int // trials that progress has heard of

	texts    []string // of warnings, in order
	warnings map[string]int
}

func newDocument(p Plan) *result.Document {
	d := &result.Document{
		Schema:      result.Schema,
		Plan:        p.Name,
		Started:     time.Now(),
		Machine:     sut.Machine(),
		Config:      p.Config,
		About:       map[string]json.RawMessage{},
		Seed:        p.Seed,
		Trials:      []result.Trial{},
		Comparisons: []result.Comparison{},
		Faults:      windows(p.Profiles),
	}
	for _, a := range p.Arms {
		d.Arms = append(d.Arms, result.Arm{Name: a.Name, Client: a.Client, Server: a.Server, SentinelOf: a.SentinelOf, Floor: a.Floor})
	}
	return d
}

// foreign is env without the variables that override our own configuration.
func foreign(env []string) []string {
	ours := func(kv string) bool { return strings.HasPrefix(kv, "GATEBENCH_") }
	return slices.Clip(slices.DeleteFunc(slices.Clone(env), ours)) // clipped: others append to it
}

// goSettings are the variables of the environment that change how Go programs run.
// They hold for every process, so that arms stay comparable; two runs may not be.
func goSettings(env []string) []string {
	var settings []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT":
			settings = append(settings, kv)
		}
	}
	return settings
}

// all is the pilot, where a rate needs one, then everything that is measured, and at
// the end the profiles of processes that were asked for.
func (r *run) all(ctx context.Context) error {
	r.clock = startClock(r.plan)
	profiles := r.plan.Profiles
	if r.plan.needsPilot() {
		var err error
		if profiles, err = r.pilot(ctx); err != nil {
			return fmt.Errorf("pilot: %w", err)
		}
	}
	if err := r.ceilings(ctx); err != nil {
		return fmt.Errorf("ceilings: %w", err)
	}
	if err := r.measure(ctx, profiles); err != nil {
		return err
	}
	if err := r.profileArms(ctx, profiles); err != nil {
		return err
	}
	r.progress(Event{Block: r.clock.blocks})
	return nil
}

// measure is every block: the planned ones, those that the precision asks for after
// them, and those that make up for void ones.
func (r *run) measure(ctx context.Context, profiles []Profile) error {
	if done, err := r.blocks(ctx, 0, profiles); err != nil || !done {
		return err
	}
	pilot := r.plan.Blocks
	r.lengthen()
	if done, err := r.blocks(ctx, pilot, profiles); err != nil || !done {
		return err
	}
	return r.makeUp(ctx, profiles)
}

// blocks runs those of the plan from that one on. done is false where the budget ended
// them early.
func (r *run) blocks(ctx context.Context, from int, profiles []Profile) (done bool, err error) {
	for block := from; block < r.plan.Blocks; block++ {
		if fits := r.clock.fits(r.plan.blockTime()); !fits && block > 0 {
			r.warn(fmt.Sprintf("the budget of %v is used up: %d of %d blocks were measured", r.plan.Budget, block, r.plan.Blocks))
			return false, nil
		}
		if err := r.block(ctx, block, r.plan.parts(), profiles); err != nil {
			return false, err
		}
	}
	return true, nil
}

// block measures every arm once in each of the parts, on a backend that is new.
func (r *run) block(ctx context.Context, block int, parts []part, profiles []Profile) (err error) {
	began, patience := time.Now(), r.patience
	defer func() {
		if err != nil {
			err = fmt.Errorf("block %d: %w", block+1, err) // people count from 1
			return
		}
		waited := patience - r.patience // for a calm machine: no reason to expect it again
		r.clock.took(time.Since(began)-waited, r.plan.timeOf(parts))
	}()
	backends, err := r.startBackends(ctx)
	defer func() { r.stop(ctx, backends.processes()...) }()
	if err != nil {
		return err
	}
	for _, b := range backends.apart() {
		r.redeal(ctx, b, block) // for the duet
	}
	for _, of := range parts {
		if err := r.part(ctx, block, of, profiles, backends); err != nil {
			return fmt.Errorf("%s: %w", r.plan.name(of), err)
		}
	}
	return nil
}

func (r *run) part(ctx context.Context, block int, of part, profiles []Profile, bs backends) error {
	n := len(r.plan.Arms)
	if of.phase == result.Duet {
		return r.duet(ctx, block, bs, order(r.plan.Seed, block, 0, n))
	}
	for position, arm := range order(r.plan.Seed, block, 1+of.profile, n) {
		if err := r.solo(ctx, block, profiles[of.profile], arm, position, bs); err != nil {
			return err
		}
	}
	return nil
}

// warn adds a warning to the document; a repeated one is counted.
func (r *run) warn(text string) {
	if r.warnings[text] == 0 {
		r.texts = append(r.texts, text)
	}
	r.warnings[text]++
}

func (r *run) warned() []string {
	ws := []string{}
	for _, text := range r.texts {
		if n := r.warnings[text]; n > 1 {
			text = fmt.Sprintf("%s (%d times)", text, n)
		}
		ws = append(ws, text)
	}
	return ws
}
