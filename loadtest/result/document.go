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

	// Precision is what the number of blocks came from; absent where the plan
	// named the number itself.
	Precision *Precision `json:"precision,omitempty"`

	// Ceilings are what load generator and backend can carry without a gateway,
	// for each way of using connections that the plan has.
	Ceilings []Ceiling `json:"ceilings,omitempty"`

	Arms        []Arm        `json:"arms"`
	Trials      []Trial      `json:"trials"`
	Comparisons []Comparison `json:"comparisons"`

	// AboveFloor is what each arm costs beyond the floor arm; absent where there
	// is none.
	AboveFloor []AboveFloor `json:"above_floor,omitempty"`

	// Pprof are the profiles that were taken after the last block; absent where
	// none was asked for.
	Pprof []Pprof `json:"pprof,omitempty"`

	// Gates are the conditions under which figures may be believed, and what
	// came of them.
	Gates []Gate `json:"gates,omitempty"`

	// Thresholds is what the configuration asks of every arm, and whether it
	// is so; absent where it asks nothing.
	Thresholds []Threshold `json:"thresholds,omitempty"`

	// Faults are the windows in which something was wrong on purpose, the same
	// for every arm; absent where nothing was.
	Faults []FaultWindow `json:"faults,omitempty"`

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

// Precision is how a run of two stages found its length: the scatter of a pilot, never
// where its figures lay, says how many blocks an interval as narrow as asked for needs.
type Precision struct {
	// Half is half the width asked for, as a share, by the metric's name: 0.01
	// is ±1 %.
	Half map[string]float64 `json:"half"`
	// Pilot blocks were measured first; Wanted is how many they asked for in all,
	// of which the budget may have held fewer.
	Pilot  int `json:"pilot"`
	Wanted int `json:"wanted"`
	// Widest is the comparison that decided; "" where the pilot was enough.
	Widest string `json:"widest,omitempty"`
	// Level is the nominal confidence of intervals in such a run, 0.96: it holds
	// the truth as often as 0.95 does where the number was fixed.
	Level float64 `json:"level"`
}

// Ceiling is what can be carried without a gateway, in requests per second: where it
// is near the rate of a trial, the gateway was not what limited that. Null is what
// could not be measured.
type Ceiling struct {
	KeepAlive bool `json:"keep_alive"`
	// Generator is of the load generator against a server that has nothing to do,
	// on the processors of gateways.
	Generator *float64 `json:"generator"`
	// Backend is of the baseline's backend and a load generator together, on the
	// processors that they have in trials.
	Backend *float64 `json:"backend"`
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

	// Environment holds those variables that change how Go programs run, as
	// GOGC=50: every process had them.
	Environment []string `json:"environment,omitempty"`
}

// Arm is one thing compared.
type Arm struct {
	Name   string `json:"name"`
	Client string `json:"client"`
	Server string `json:"server"`

	// SentinelOf names the arm of which this one is a second, identical copy
	// that shows the noise; "" otherwise.
	SentinelOf string `json:"sentinel_of,omitempty"`

	// Floor marks the one arm whose client answers from memory. It is under no
	// test: the others are held against it in [Document.AboveFloor].
	Floor bool `json:"floor,omitempty"`
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
	// Reasons counts the answers that the gateway made itself, by the reason
	// it gave, over its whole life: the same failures from the other side, those
	// of the warm-up too.
	Reasons map[string]int64 `json:"reasons,omitempty"`

	// Curves are the distributions of response_time and service_time.
	Curves map[string][]CurvePoint `json:"curves,omitempty"`

	// Series is the course of a solo trial's window.
	Series *Series `json:"series,omitempty"`

	// Steps has a result for each stage of a ramping profile that took time.
	Steps []Step `json:"steps,omitempty"`

	// Metrics by name, see [Metrics]; what was not measured is absent.
	Metrics map[string]float64 `json:"metrics"`

	// Timeline is the gateway's course through the faults of its profile;
	// absent without any.
	Timeline []Moment `json:"timeline,omitempty"`

	// AtLeast names those of the metrics that are lower bounds: so many requests
	// were given up that more is not known. No ratio is made of such a figure.
	AtLeast []string `json:"at_least,omitempty"`

	// Gates has what was read for each [Gate] of the trial's phase, by its
	// name; what could not be read is absent.
	Gates map[string]float64 `json:"gates,omitempty"`
}

// Pprof is a profile that one arm's gateway wrote of itself under load, outside of
// everything measured: it explains, and has no part in any figure.
type Pprof struct {
	Arm  string `json:"arm"`
	Kind string `json:"kind"` // "cpu" or "heap"
	// File is its path in the folder of the result; `go tool pprof` reads it.
	File string `json:"file"`
}

// FaultWindow is a time in which something was wrong on purpose.
type FaultWindow struct {
	Profile string  `json:"profile"`
	AtMS    float64 `json:"at_ms"` // from the start of the measured window
	ForMS   float64 `json:"for_ms"`
	// What says what was wrong, and where: "backend status 503", "wire latency
	// 200ms".
	What string `json:"what"`
}

// Moment is one look at a gateway: its state, and what it counted since the look
// before.
type Moment struct {
	AtMS float64 `json:"at_ms"` // from the start of the measured window
	// Breaker is its state; absent where it is switched off.
	Breaker string `json:"breaker,omitempty"`
	// Answered are the requests answered, OK those of them with a status below
	// 400. Attempts are tries upstream, retries among them.
	Answered int64 `json:"answered"`
	OK       int64 `json:"ok"`
	Attempts int64 `json:"attempts"`
	// InFlight is how many requests were being worked on.
	InFlight int64 `json:"in_flight"`
	// Rejected counts the answers that the gateway made itself, by reason.
	Rejected map[string]int64 `json:"rejected,omitempty"`
}

// CurvePoint is one quantile of a distribution.
type CurvePoint struct {
	Q  float64 `json:"q"`  // share of requests, in [0,1)
	MS float64 `json:"ms"` // that took at most so long
}

// Series is the course of a window in equal intervals.
type Series struct {
	Interval float64 `json:"interval"` // seconds
	Points   []Point `json:"points"`
}

// Point is one interval, by the moments at which things happened. The times are
// response times of ok requests in milliseconds, the quantiles to one digit; null where
// there were none.
type Point struct {
	At     float64 `json:"at"` // start, seconds into the window
	Sent   int64   `json:"sent"`
	OK     int64   `json:"ok"`
	Failed int64   `json:"failed"`
	// Errors are the failed ones by class.
	Errors map[string]int64 `json:"errors,omitempty"`
	P50    *float64         `json:"ok_p50"`
	P99    *float64         `json:"ok_p99"`
	Max    *float64         `json:"ok_max"`
}

// Step is one stage of a trial: the requests that were due in it, and their response
// times in milliseconds, null where so few or so many of them failed that there is
// none.
type Step struct {
	At      float64 `json:"at"`      // start, seconds into the window
	Seconds float64 `json:"seconds"` // length
	From    string  `json:"from"`    // level at its start, as in YAML
	To      string  `json:"to"`      // level at its end

	Requests int64 `json:"requests"` // sent
	Errors   int64 `json:"errors"`   // failed
	Dropped  int64 `json:"dropped"`  // due, never sent

	Offered    float64 `json:"offered"`    // per second
	Throughput float64 `json:"throughput"` // answers per second
	Goodput    float64 `json:"goodput"`    // ok answers per second

	Mean *float64 `json:"response_time_mean"`
	P50  *float64 `json:"response_time_p50"`
	P90  *float64 `json:"response_time_p90"`
	P99  *float64 `json:"response_time_p99"`
	// AtLeast names those of them that are lower bounds.
	AtLeast []string `json:"at_least,omitempty"`
}

// Gate is one condition under which the figures of one phase may be believed. A
// reading beyond Void makes a trial void, one beyond Warn alone is a warning.
type Gate struct {
	Name  string `json:"name"` // as in [Trial.Gates]
	Phase Phase  `json:"phase"`
	Title string `json:"title"`
	// Unit is "share" of 1, "ms", or "" for a number.
	Unit string `json:"unit"`
	// Below: beyond means less than the threshold, not more.
	Below bool `json:"below,omitempty"`
	// Warn and Void are the thresholds, null where the gate has none.
	Warn *float64 `json:"warn"`
	Void *float64 `json:"void"`

	// Readings is of how many trials there is one, Worst the one that is
	// furthest in the direction of the thresholds; null where there is none.
	Readings int      `json:"readings"`
	Worst    *float64 `json:"worst"`
	// Warned and Voided count readings beyond Warn alone, and beyond Void.
	Warned int `json:"warned"`
	Voided int `json:"voided"`
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

// AboveFloor is how much one arm uses beyond the floor arm, whose client answers from
// memory: what its client adds to a gateway. It is a difference in the metric's own
// unit, and there is one for figures of the duet alone, where both ran at once.
type AboveFloor struct {
	Arm     string `json:"arm"`
	Floor   string `json:"floor"` // the floor arm's name
	Profile string `json:"profile"`
	Metric  string `json:"metric"`

	// Value is arm − floor (Hodges–Lehmann over blocks) with its interval, null
	// where no block has both. Lo and Hi are null where the blocks are too few to
	// bound it.
	Value *float64 `json:"value"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`

	// Level is the confidence of [Lo, Hi]; Blocks is how many it stands on.
	Level  float64 `json:"level"`
	Blocks int     `json:"blocks"`
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

// Threshold is one bound on one arm under one profile.
type Threshold struct {
	Arm       string `json:"arm"`
	Threshold string `json:"threshold"` // as it was written: "p99 < 50ms"
	Metric    string `json:"metric"`    // the metric's name, or "errors"
	Profile   string `json:"profile"`
	// Baseline names the arm whose ratio is bounded; "" where the figure
	// itself is.
	Baseline string `json:"baseline,omitempty"`

	// Value is what is bounded: the median over blocks, the share of failed
	// requests, or the ratio to the baseline. Null where nothing was measured.
	Value *float64 `json:"value"`
	// Outcome is missed only where that is sure: a ratio's whole interval must
	// lie beyond the bound.
	Outcome Attainment `json:"outcome"`
	// Why is what stands in the way of a clear answer.
	Why string `json:"why,omitempty"`
}

// Attainment is whether a threshold was kept.
type Attainment string

const (
	Met    Attainment = "met"
	Missed Attainment = "missed"
	// Open: the interval of the ratio reaches to both sides of the bound.
	Open Attainment = "cannot tell"
	// Unmeasured: there is no figure to hold against the bound. It counts as
	// missed: a check that looked at nothing must not pass.
	Unmeasured Attainment = "no data"
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
	// Detail marks a figure that the report's tables leave out.
	Detail bool
	// Explains marks what may be the cause of a difference in a figure that is
	// judged.
	Explains bool
}

// Metrics lists every figure, primary ones first.
var Metrics = []Metric{
	{Name: "cpu_us_per_request", Unit: "µs", Title: "gateway CPU per request", Phase: Duet, LowerIsBetter: true, Interest: 0.02},
	{Name: "response_time_p50", Unit: "ms", Title: "response time p50", Phase: Solo, LowerIsBetter: true, Interest: 0.03},
	{Name: "response_time_p99", Unit: "ms", Title: "response time p99", Phase: Solo, LowerIsBetter: true, Interest: 0.10},
	{Name: "allocs_per_request", Title: "allocations per request", Phase: Duet, LowerIsBetter: true, Explains: true},
	{Name: "alloc_bytes_per_request", Unit: "B", Title: "bytes allocated per request", Phase: Duet, LowerIsBetter: true, Explains: true},
	{Name: "gc_cycles_per_1000_requests", Title: "garbage collections per 1000 requests", Phase: Duet, LowerIsBetter: true, Explains: true},
	{Name: "burned_us_per_request", Unit: "µs", Title: "CPU time burnt on purpose per request", Phase: Duet, LowerIsBetter: true, Detail: true},
	{Name: "response_time_mean", Unit: "ms", Title: "response time, mean", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "response_time_min", Unit: "ms", Title: "response time, least", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "response_time_p90", Unit: "ms", Title: "response time p90", Phase: Solo, LowerIsBetter: true},
	{Name: "response_time_p95", Unit: "ms", Title: "response time p95", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "response_time_p999", Unit: "ms", Title: "response time p99.9", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "service_time_p50", Unit: "ms", Title: "service time p50", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "service_time_p90", Unit: "ms", Title: "service time p90", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "service_time_p95", Unit: "ms", Title: "service time p95", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "service_time_p99", Unit: "ms", Title: "service time p99", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "service_time_p999", Unit: "ms", Title: "service time p99.9", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "response_time_max", Unit: "ms", Title: "response time, greatest", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "pool_wait_ms", Unit: "ms", Title: "waiting for a place in the pool, a request", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "connect_ms", Unit: "ms", Title: "connecting, a request", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "upstream_ms", Unit: "ms", Title: "until upstream's head, a request", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "relay_ms", Unit: "ms", Title: "relaying the response, a request", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "solo_cpu_us_per_request", Unit: "µs", Title: "gateway CPU per request at that rate", Phase: Solo, LowerIsBetter: true},
	{Name: "throughput", Unit: "/s", Title: "throughput", Phase: Solo},
	{Name: "max_rate", Unit: "/s", Title: "highest rate that met the objective", Phase: Solo, Interest: 0.05},
	{Name: "max_rate_missed", Unit: "/s", Title: "lowest rate that missed the objective", Phase: Solo, Detail: true},
	{Name: "received_bytes_per_second", Unit: "B/s", Title: "bytes of bodies received", Phase: Solo, Detail: true},
	{Name: "connections_opened", Title: "upstream connections opened", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "memory_peak_bytes", Unit: "B", Title: "gateway peak memory", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "goroutines", Title: "goroutines", Phase: Solo, LowerIsBetter: true, Explains: true},
	{Name: "descriptors", Title: "open descriptors", Phase: Solo, LowerIsBetter: true},
	{Name: "attempts_per_request", Title: "attempts per request", Phase: Solo, LowerIsBetter: true, Detail: true, Explains: true},
	{Name: "breaker_trips", Title: "times the breaker opened", Phase: Solo, LowerIsBetter: true, Detail: true, Explains: true},
	{Name: "recovery_ms", Unit: "ms", Title: "time to recover from a fault", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "storm_factor", Title: "attempts per arrival in a fault", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "goodput_lost", Title: "goodput lost per arrival in a fault", Phase: Solo, LowerIsBetter: true, Detail: true},
	{Name: "backend_connections_accepted", Title: "connections the backend accepted", Phase: Solo, LowerIsBetter: true},
	{Name: "generator_cpu_us_per_request", Unit: "µs", Title: "load generator CPU per request", Phase: Solo, LowerIsBetter: true},
	{Name: "generator_lag_p99", Unit: "ms", Title: "load generator lag p99", Phase: Solo, LowerIsBetter: true},
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
