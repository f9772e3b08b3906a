package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gatebench/backend/fault"
	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/load"
	"gatebench/loadtest/sut"
)

// profileConfig is a profile as it is written: a load shape, and what goes wrong
// meanwhile.
type profileConfig struct {
	load.Profile `yaml:",inline"`
	// Faults are windows in which something is wrong, the same for every arm.
	// Default none.
	Faults []faultWindow `yaml:"faults"`
}

// faultWindow is one window, in the backend or on the wire before it.
type faultWindow struct {
	// At is its start, from that of the measured window, For its length.
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
	// Backend is what the backend does: status, latency, hang, reset,
	// slow_body, truncate or length, for a share of requests.
	Backend fault.Fault `yaml:"backend"`
	// Wire is what is wrong between gateway and backend: latency, bandwidth,
	// reset, slice, slow_close or silence.
	Wire sut.WireFault `yaml:"wire"`
}

// inBackend and onWire tell which of the two a window is about.
func (w faultWindow) inBackend() bool { return w.Backend != fault.Fault{} }
func (w faultWindow) onWire() bool    { return !w.Wire.IsZero() }

// complete fills in the defaults that hang on what is written.
func (p *profileConfig) complete(vs *strictyaml.Values) {
	for i := range p.Faults {
		w := &p.Faults[i]
		if vs.Set(fmt.Sprintf("faults[%d].backend", i)) && !vs.Set(fmt.Sprintf("faults[%d].backend.share", i)) {
			w.Backend.Share = 1
		}
	}
}

// checkFaults names every bad window.
func (p profileConfig) checkFaults() error {
	var c conf.Check
	window := p.Window()
	c.That(len(p.Faults) == 0 || window > 0, "faults", "need a load that lasts for a known time: give the profile a duration")
	for i, w := range p.Faults {
		at := fmt.Sprintf("faults[%d]", i)
		c.That(w.At >= 0, at+".at", "%v is before the measured window: write 0s or more", w.At)
		c.That(w.For > 0, at+".for", "%v is no length for a window: write one like 5s", w.For)
		c.That(w.At+w.For <= window || window <= 0, at+".for", "the window ends after %v, and the profile is measured for %v: shorten it, or lengthen the profile", w.At+w.For, window)
		switch {
		case w.inBackend() && w.onWire():
			c.That(false, at+".wire", "stands beside backend: give it a window of its own, which may overlap")
		case w.onWire():
			c.Within(at+".wire", w.Wire.Validate())
		case w.inBackend():
			c.Within(at+".backend", w.Backend.Validate())
		default:
			c.That(false, at+".backend", "nothing goes wrong in this window: write backend: {status: 503}, or wire: {latency: 200ms}")
		}
	}
	return c.Err()
}

// faults are the windows for an experiment, which knows no backend.
func (p profileConfig) faults() []experiment.Fault {
	var fs []experiment.Fault
	for _, w := range p.Faults {
		f := experiment.Fault{At: w.At, For: w.For, Wire: w.Wire, What: "wire " + w.Wire.String()}
		if w.inBackend() {
			order, err := strictyaml.JSON(w.Backend, w.Backend.Absent()...)
			if err != nil {
				panic(fmt.Sprintf("encode %v: %v", w.Backend, err)) // numbers and words
			}
			f.Backend, f.What = order, "backend "+w.Backend.String()
		}
		fs = append(fs, f)
	}
	return fs
}

// unwritten are the paths of the keys of faults that nobody wrote: a fault is one of
// them, and the others say nothing.
func (p profile) unwritten() []string {
	var paths []string
	for v := range p.values.All() {
		if strings.Contains(v.Path, ".faults") && v.Origin == "default" && !strings.HasSuffix(v.Path, ".share") {
			paths = append(paths, v.Path)
		}
	}
	return paths
}

// errFaults is for loads that have no backend at hand.
var errFaults = errors.New("has faults, which `gatebench run` alone carries out, as it starts the backend: take them out")
