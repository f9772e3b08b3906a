package load

// SummarySchema names the layout of [Summary].
const SummarySchema = "gatebench.load/1"

// Summary is what one load run measured, as printed by `gatebench load --json`.
// Times in milliseconds, rates per second of the measured window.
type Summary struct {
	Schema      string  `json:"schema"`
	URL         string  `json:"url"`
	Executor    string  `json:"executor"`
	Interrupted bool    `json:"interrupted"`
	Seconds     float64 `json:"seconds"` // measured window, warm-up not included

	Requests Requests `json:"requests"`

	// Throughput counts completed, Goodput ok requests.
	Throughput float64 `json:"throughput"`
	Goodput    float64 `json:"goodput"`

	// ResponseTime runs from the due time: the headline. ServiceTime from the
	// moment of sending. Both are over sent requests; a request that failed
	// without a full response counts as censored at its age. Null where
	// nothing was sent.
	ResponseTime *Times `json:"response_time"`
	ServiceTime  *Times `json:"service_time"`

	// Errors by class; every failed request is in exactly one.
	Errors map[string]int64 `json:"errors"`

	Generator Generator `json:"generator"`

	// Valid is false where the generator, not the server, set the figures.
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

// Requests are the counts: planned = sent + dropped and sent = ok + failed.
type Requests struct {
	Planned   int64 `json:"planned"`
	Sent      int64 `json:"sent"`
	Completed int64 `json:"completed"` // a full response of any status
	OK        int64 `json:"ok"`        // completed, and every check passed
	Failed    int64 `json:"failed"`    // sent and not ok
	Dropped   int64 `json:"dropped"`   // due, never started
}

// Times are quantiles of one kind of time, in milliseconds. A quantile that too
// few samples carry is null.
type Times struct {
	Mean float64  `json:"mean"`
	Min  float64  `json:"min"`
	Max  float64  `json:"max"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p99.9"`
}

// Generator is what the load generator says of itself.
type Generator struct {
	CPUMicrosPerRequest float64 `json:"cpu_us_per_request"`
	LagP50              float64 `json:"lag_p50"` // sent − due, ms
	LagP99              float64 `json:"lag_p99"`
}
