// Package result is the document that an experiment leaves behind: what was
// asked, on what machine, what every trial measured and what was concluded. It is
// a leaf: plain data with stable JSON names, read by reports, scripts and later
// versions of this program.
//
// Units: times in milliseconds, rates per second, CPU in microseconds, sizes in
// bytes. A number is never NaN or infinite; what could not be measured is absent,
// with a warning that says why.
package result

import (
	"encoding/json"
	"time"
)

// Schema names the layout of [Document]; it changes when a reader would have to.
const Schema = "gatebench.result/1"

// Document is result.json.
type Document struct {
	Schema      string    `json:"schema"`
	Plan        string    `json:"plan"`
	Command     string    `json:"command"` // repeats it
	Started     time.Time `json:"started"`
	Finished    time.Time `json:"finished"`
	Interrupted bool      `json:"interrupted"`

	Machine Machine `json:"machine"`

	// Config is the effective configuration: the plan, and for each arm its
	// whole gateway and backend section.
	Config json.RawMessage `json:"config"`

	// About holds what each arm's gateway said of itself at /-/about, by the
	// arm's name: library versions, declared deviations.
	About map[string]json.RawMessage `json:"about"`

	// Seed gives the order of arms in every block.
	Seed uint64 `json:"seed"`

	// Pilot is what the absolute rates come from; null where every profile
	// names its own.
	Pilot *Pilot `json:"pilot"`

	Arms        []Arm        `json:"arms"`
	Trials      []Trial      `json:"trials"`
	Comparisons []Comparison `json:"comparisons"`

	// Valid is false where a gate forbids any conclusion; InvalidReasons then
	// says which.
	Valid          bool     `json:"valid"`
	InvalidReasons []string `json:"invalid_reasons,omitempty"`
	Warnings       []string `json:"warnings"`
}

// Pilot is the short saturation before the first block that gives the rate which
// a share of saturation stands for. It is no comparison: one moment per arm.
type Pilot struct {
	// Saturation is the goodput of each arm alone, per second, by the arm's
	// name.
	Saturation map[string]float64 `json:"saturation"`
	// Rates are the arrival rates, per second, that were used for all arms, by
	// the profile's name.
	Rates map[string]float64 `json:"rates"`
}

// Machine says where the experiment ran.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Kernel   string `json:"kernel,omitempty"`
	CPU      string `json:"cpu,omitempty"`
	Cores    int    `json:"cores"`
	MemoryB  int64  `json:"memory_bytes,omitempty"`
	Go       string `json:"go"`
	Version  string `json:"version"` // of gatebench
	FDLimit  int64  `json:"fd_limit,omitempty"`
	PinnedTo string `json:"pinned,omitempty"` // "gateways on cpu 0, load and backend on cpu 1"
}

// Arm is one thing compared.
type Arm struct {
	Name   string `json:"name"`
	Client string `json:"client"`
	Server string `json:"server"`

	// SentinelOf names the arm of which this one is a second, identical copy
	// that shows the noise; "" otherwise.
	SentinelOf string `json:"sentinel_of,omitempty"`
}

// Phase is how a trial was loaded.
type Phase string

const (
	// Duet: all arms' gateways at once under the same saturating load on the
	// same core. Gives CPU and allocations per request, and these alone.
	Duet Phase = "duet"
	// Solo: one arm alone at one fixed rate well below saturation. Gives
	// response times, errors, connections, memory.
	Solo Phase = "solo"
)

// Trial is one arm in one phase of one block.
type Trial struct {
	Arm        string `json:"arm"`
	Block      int    `json:"block"` // from 0
	Phase      Phase  `json:"phase"`
	Profile    string `json:"profile"`
	Position   int    `json:"position"` // of the arm within the block, from 0
	Valid      bool   `json:"valid"`
	VoidReason string `json:"void_reason,omitempty"`

	Requests     int64            `json:"requests"`
	Errors       int64            `json:"errors"`
	ErrorClasses map[string]int64 `json:"error_classes"`

	// Metrics by name, see [Metrics]; what was not measured is absent.
	Metrics map[string]float64 `json:"metrics"`
}

// Comparison is one arm against the baseline in one metric.
type Comparison struct {
	Arm      string `json:"arm"`
	Baseline string `json:"baseline"`
	Profile  string `json:"profile"`
	Metric   string `json:"metric"`

	// Ratio is arm ÷ baseline with its interval, null where no block has both.
	// Lo and Hi are null where the blocks are too few to bound it.
	Ratio *float64 `json:"ratio"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`

	// Level is the confidence of [Lo, Hi], 0.95.
	Level   float64 `json:"level"`
	Verdict Verdict `json:"verdict"`

	// Blocks is how many blocks the estimate stands on.
	Blocks int `json:"blocks"`
	// BlocksNeeded is, for "cannot tell", about how many would settle it.
	BlocksNeeded int `json:"blocks_needed,omitempty"`
	// Why is the reason for "not valid", or a doubt worth knowing.
	Why string `json:"why,omitempty"`
}

// Verdict is what a comparison concludes.
type Verdict string

const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	NoDifference Verdict = "no meaningful difference"
	CannotTell   Verdict = "cannot tell"
	NotValid     Verdict = "not valid"
)

// Metric defines one figure of a trial: its one name, unit and direction.
type Metric struct {
	Name  string
	Unit  string
	Title string // for people
	Phase Phase
	// LowerIsBetter is the direction of "better".
	LowerIsBetter bool
	// Interest is the smallest relative difference worth a verdict (0.02 =
	// 2 %); 0 marks a figure that explains and is never judged.
	Interest float64
}

// Metrics lists every figure, primary ones first.
var Metrics = []Metric{
	{"cpu_us_per_request", "µs", "gateway CPU per request", Duet, true, 0.02},
	{"response_time_p50", "ms", "response time p50", Solo, true, 0.03},
	{"response_time_p99", "ms", "response time p99", Solo, true, 0.10},
	{"allocs_per_request", "", "allocations per request", Duet, true, 0},
	{"alloc_bytes_per_request", "B", "bytes allocated per request", Duet, true, 0},
	{"response_time_p90", "ms", "response time p90", Solo, true, 0},
	{"throughput", "/s", "throughput", Solo, false, 0},
	{"connections_opened", "", "upstream connections opened", Solo, true, 0},
	{"memory_peak_bytes", "B", "gateway peak memory", Solo, true, 0},
	{"goroutines", "", "goroutines", Solo, true, 0},
	{"descriptors", "", "open descriptors", Solo, true, 0},
	{"backend_connections_accepted", "", "connections the backend accepted", Solo, true, 0},
	{"generator_cpu_us_per_request", "µs", "load generator CPU per request", Solo, true, 0},
	{"generator_lag_p99", "ms", "load generator lag p99", Solo, true, 0},
}

// MetricNamed finds a metric's definition.
func MetricNamed(name string) (Metric, bool) {
	for _, m := range Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}
