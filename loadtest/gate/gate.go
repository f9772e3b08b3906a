// Package gate holds the conditions under which the figures of an experiment may be
// believed: as data, each with its thresholds, and pure functions that hold readings
// against them.
//
// It leaves to others how a reading is taken and what an experiment does with a
// trial that is void.
//
// The trap: a gate must be blind to the outcome. One that voids a trial because the
// gateway under test was slow takes the slow trials away and flatters the arm. So a
// reading is of the machine or of the load generator, with two exceptions that are
// counted against the arm alone: requests that could not be sent, and work that does
// not add up.
package gate

import (
	"fmt"
	"strconv"

	"gatebench/loadtest/result"
)

// Strength is what follows when a reading lies beyond a threshold.
type Strength int

const (
	Passed Strength = iota
	// Warned: the figure stands, and the reader is told.
	Warned
	// Voided: the trial is not used, and its block is run again.
	Voided
)

// Gate is one condition, of the trials of one phase.
type Gate struct {
	// Name is that of the reading in [result.Trial.Gates]. The same reading may
	// have other thresholds in the other phase.
	Name  string
	Phase result.Phase
	Title string // for people
	Unit  Unit

	// Below: a reading trips by being less than a threshold, else by being more.
	Below bool
	// Warn and Void are the thresholds; nil for a strength that the gate does
	// not have.
	Warn, Void *float64
}

// Unit is what a reading is in.
type Unit string

const (
	Share  Unit = "share" // in [0,1], shown as a percentage
	Millis Unit = "ms"
	Number Unit = ""
)

// Names of readings.
const (
	Lag          = "lag"
	Unsent       = "unsent"
	GeneratorCPU = "generator_cpu"
	OwnLimits    = "own_limits"
	Steal        = "steal"
	Foreign      = "foreign_cpu"
	Throttled    = "throttled"
	Ports        = "ports"
	Work         = "work"
	Busy         = "gateway_busy"
	GCCycles     = "gc_cycles"
	Tail         = "tail"
	// Steady is of a single trial, and too noisy to judge one by: the report asks
	// it of all trials of a profile together.
	Steady = "half_change"
	// How many times the trial's rate they carry when no gateway is in the way.
	GeneratorCeiling = "generator_ceiling"
	BackendCeiling   = "backend_ceiling"
)

// All lists every gate, in the order in which the first that voids a trial gives
// the reason: the machine's before the arm's.
//
// The thresholds are those of the project's method. Three differ. The lag's are
// absolute, since a share of the response time would be judged by the outcome. Ports
// in TIME_WAIT only warn: on one machine Linux takes them again after a second, and
// whoever finds none in spite of that has failed requests, which void. And in a duet
// what takes the machine away only warns: it hits all arms at once, which is what a
// duet is for, and the sentinel shows what is left of it.
var All = []Gate{
	{Name: Throttled, Phase: result.Duet, Title: "times that a CPU quota stopped us", Warn: new(0.0)},
	{Name: Throttled, Phase: result.Solo, Title: "times that a CPU quota stopped us", Void: new(0.0)},
	{Name: Steal, Phase: result.Duet, Title: "CPU time that the host took for others", Unit: Share, Warn: new(0.05)},
	{Name: Steal, Phase: result.Solo, Title: "CPU time that the host took for others", Unit: Share, Warn: new(0.01), Void: new(0.05)},
	{Name: Foreign, Phase: result.Duet, Title: "CPU time that other processes used", Unit: Share, Warn: new(0.10)},
	{Name: Foreign, Phase: result.Solo, Title: "CPU time that other processes used", Unit: Share, Warn: new(0.03), Void: new(0.10)},
	{Name: Ports, Phase: result.Duet, Title: "local ports in TIME_WAIT", Unit: Share, Warn: new(0.8)},
	{Name: Ports, Phase: result.Solo, Title: "local ports in TIME_WAIT", Unit: Share, Warn: new(0.8)},
	{Name: OwnLimits, Phase: result.Duet, Title: "requests that failed for want of descriptors or ports", Void: new(0.0)},
	{Name: OwnLimits, Phase: result.Solo, Title: "requests that failed for want of descriptors or ports", Void: new(0.0)},
	{Name: GeneratorCPU, Phase: result.Solo, Title: "use of the load generator's cores", Unit: Share, Warn: new(0.7), Void: new(0.9)},
	{Name: GeneratorCeiling, Phase: result.Solo, Title: "times the rate that the load generator can carry", Below: true, Warn: new(2.0), Void: new(1.5)},
	{Name: BackendCeiling, Phase: result.Solo, Title: "times the rate that the backend can carry", Below: true, Warn: new(2.0), Void: new(1.5)},
	{Name: Lag, Phase: result.Solo, Title: "the load generator's lag, p99", Unit: Millis, Warn: new(1.0), Void: new(10.0)},
	{Name: Busy, Phase: result.Duet, Title: "use of the gateways' core", Unit: Share, Below: true, Warn: new(0.9)},
	{Name: GCCycles, Phase: result.Duet, Title: "garbage collections in the window", Below: true, Warn: new(3.0)},
	{Name: Tail, Phase: result.Solo, Title: "requests beyond the p99", Below: true, Warn: new(20.0)},
	{Name: Unsent, Phase: result.Solo, Title: "requests that were due and never sent", Unit: Share, Warn: new(0.0), Void: new(0.02)},
	{Name: Work, Phase: result.Solo, Title: "requests by which gateway and backend differ beyond failures", Void: new(0.0)},
}

// Judge holds one reading against the thresholds.
func (g Gate) Judge(reading float64) Strength {
	switch {
	case g.beyond(reading, g.Void):
		return Voided
	case g.beyond(reading, g.Warn):
		return Warned
	}
	return Passed
}

func (g Gate) beyond(reading float64, threshold *float64) bool {
	return threshold != nil && g.worse(reading, *threshold)
}

func (g Gate) worse(a, b float64) bool {
	if g.Below {
		return a < b
	}
	return a > b
}

// Void gives the reason why a trial's readings void it; ok is false where they do
// not.
func Void(t result.Trial) (reason string, ok bool) {
	for _, g := range All {
		reading, read := t.Gates[g.Name]
		if read && g.Phase == t.Phase && g.Judge(reading) == Voided {
			return g.Title + ": " + g.words(*g.Void), true
		}
	}
	return "", false
}

// words leaves the reading out, so that trials which are void for one reason
// have one reason.
func (g Gate) words(threshold float64) string {
	if g.Below {
		return "less than " + g.Unit.format(threshold)
	}
	return "more than " + g.Unit.format(threshold)
}

func (u Unit) format(x float64) string {
	switch u {
	case Share:
		return strconv.FormatFloat(x*100, 'g', 3, 64) + " %"
	case Millis:
		return strconv.FormatFloat(x, 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Read sums up what all gates read, in the order of [All]: also those that read
// nothing, so that it shows what was not looked at.
func Read(trials []result.Trial) []result.Gate {
	sums := make([]result.Gate, len(All))
	for i, g := range All {
		sums[i] = g.read(trials)
	}
	return sums
}

func (g Gate) read(trials []result.Trial) result.Gate {
	sum := result.Gate{Name: g.Name, Phase: g.Phase, Title: g.Title, Unit: string(g.Unit), Below: g.Below, Warn: g.Warn, Void: g.Void}
	for _, t := range trials {
		reading, read := t.Gates[g.Name]
		if !read || g.Phase != t.Phase {
			continue
		}
		sum.Readings++
		if sum.Worst == nil || g.worse(reading, *sum.Worst) {
			sum.Worst = new(reading)
		}
		switch g.Judge(reading) {
		case Voided:
			sum.Voided++
		case Warned:
			sum.Warned++
		case Passed:
		}
	}
	return sum
}

// Warnings has a sentence for every gate that warned. What it voided is said with
// the trials.
func Warnings(trials []result.Trial) []string {
	var ws []string
	for _, g := range All {
		if sum := g.read(trials); sum.Warned > 0 {
			ws = append(ws, fmt.Sprintf("in %d of %d %s trials, %s", sum.Warned, sum.Readings, g.Phase, g.warning(trials)))
		}
	}
	return ws
}

// warning is the sentence of the worst reading that warned.
func (g Gate) warning(trials []result.Trial) string {
	worst := *g.Warn
	for _, t := range trials {
		reading, read := t.Gates[g.Name]
		if read && g.Phase == t.Phase && g.Judge(reading) == Warned && g.worse(reading, worst) {
			worst = reading
		}
	}
	reach := "up to"
	if g.Below {
		reach = "down to"
	}
	return fmt.Sprintf("%s: %s %s, %s", g.Title, reach, g.Unit.format(worst), g.words(*g.Warn))
}
