package load

import (
	"strconv"
	"time"
)

// SummarySchema names the layout of [Summary].
const SummarySchema = "gatebench.load/1"

// Summary is what one load run measured, as printed by `gatebench load --json`.
// Times in milliseconds, rates per second of the measured window.
type Summary struct {
	Schema      string `json:"schema"`
	URL         string `json:"url"`
	Executor    string `json:"executor"`
	Interrupted bool   `json:"interrupted"`

	// Seconds is the measured window, warm-up not included: the duration, or
	// less where iterations or an interrupt ended it. Where most answers came
	// only after it (they take longer than the window lasts) it runs to the
	// last answer, so that rates stay those of real time.
	Seconds float64 `json:"seconds"`

	Requests Requests `json:"requests"`

	// Offered counts planned, Throughput completed, Goodput ok requests.
	Offered    float64 `json:"offered"`
	Throughput float64 `json:"throughput"`
	Goodput    float64 `json:"goodput"`

	// ResponseTime runs from the due time: the headline. ServiceTime from the
	// moment of sending, connecting included where it was needed. Both are over
	// sent requests; a request that failed without a full response counts as
	// censored at its age. Null where nothing was sent.
	ResponseTime *Times `json:"response_time"`
	ServiceTime  *Times `json:"service_time"`

	// OKResponseTime is the response time of ok requests alone: it stands
	// beside the headline wherever quick failures or timeouts bend that.
	OKResponseTime *Times `json:"ok_response_time"`

	// Censored is how many sent requests stand in the times with their age
	// because they had no full response: their true times are longer, or none.
	Censored int64 `json:"censored"`
	// OverRange is how many samples lie beyond the histogram's hour. They count
	// there; Max and Mean are exact all the same.
	OverRange int64 `json:"over_range"`

	// Errors by class; every failed request is in exactly one. ErrorExamples
	// has the first of each class that is not a status.
	Errors        map[string]int64  `json:"errors"`
	ErrorExamples map[string]string `json:"error_examples,omitempty"`

	// Statuses counts completed requests by status.
	Statuses map[string]int64 `json:"statuses"`
	// BodyBytes of full responses, without framing.
	BodyBytes int64 `json:"body_bytes"`
	// ConnectionsOpened by the generator, in the warm-up too.
	ConnectionsOpened int64 `json:"connections_opened"`

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

// Times are quantiles of one kind of time, in milliseconds: nearest rank, to three
// digits; mean, min and max are exact. P999 is null below a thousand samples,
// where it would be the maximum by another name.
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
	// CPUMicrosPerRequest is the process's CPU in the window per sent request;
	// absent where the system does not tell, or nothing was sent.
	CPUMicrosPerRequest float64 `json:"cpu_us_per_request,omitzero"`
	// CPUShare is the part of its cores (GOMAXPROCS) that was used, in [0,1].
	CPUShare float64 `json:"cpu_share,omitzero"`
	LagP50   float64 `json:"lag_p50"` // sent − due, ms
	LagP99   float64 `json:"lag_p99"`
	// Waited is how many requests of an open load had to wait for a user.
	Waited int64 `json:"waited"`
}

// fewForP999 is the fewest samples of which one lies beyond the p99.9.
const fewForP999 = 1000

// times are the figures of a distribution, nil of an empty one.
func (d *distribution) times() *Times {
	n := d.count()
	if n == 0 {
		return nil
	}
	q := func(q float64) *float64 { return new(millis(d.quantile(q))) }
	t := &Times{
		Mean: d.sum / float64(n) / float64(time.Millisecond),
		Min:  millis(d.min), Max: millis(d.max),
		P50: q(.5), P90: q(.9), P95: q(.95), P99: q(.99),
	}
	if n >= fewForP999 {
		t.P999 = q(.999)
	}
	return t
}

func millis(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

// summary merges what the shards recorded. The run has ended.
func (e *engine) summary() *Summary {
	all := newShard()
	for _, s := range e.shards {
		all.merge(s)
	}
	ok, sent := all.ok.count(), all.service.count()
	s := &Summary{
		Schema:      SummarySchema,
		Executor:    e.p.Executor,
		Interrupted: e.stopped.Load() != 0,
		Requests: Requests{
			Planned: sent + e.dropped, Sent: sent, Completed: all.completed,
			OK: ok, Failed: sent - ok, Dropped: e.dropped,
		},
		ServiceTime:       all.service.times(),
		OKResponseTime:    all.ok.times(),
		Censored:          sent - all.completed,
		Errors:            map[string]int64{},
		ErrorExamples:     map[string]string{},
		Statuses:          map[string]int64{},
		BodyBytes:         all.bytes,
		ConnectionsOpened: all.connections,
		Valid:             true,
		Warnings:          []string{},
	}
	response := &all.failed
	response.merge(&all.ok)
	s.ResponseTime = response.times()
	s.OverRange = response.over
	for c, n := range all.errors {
		s.Errors[string(c)] = n
	}
	for c, text := range all.examples {
		s.ErrorExamples[string(c)] = text
	}
	for status, n := range all.statuses {
		if n > 0 {
			s.Statuses[strconv.Itoa(status)] = n
		}
	}
	e.rates(s, all)
	e.generator(s, all)
	e.judge(s)
	return s
}

// window is the length of the measured window as it was.
func (e *engine) window(all *shard) time.Duration {
	end := e.until
	if stopped := time.Duration(e.stopped.Load()); stopped != 0 {
		end = min(end, stopped)
	} else if e.p.Iterations > 0 {
		end = min(end, all.lastEnd)
	}
	if 2*all.late > all.completed {
		end = max(end, all.lastDone)
	}
	return max(0, end-e.from)
}

func (e *engine) rates(s *Summary, all *shard) {
	s.Seconds = e.window(all).Seconds()
	if s.Seconds == 0 {
		return
	}
	s.Offered = float64(s.Requests.Planned) / s.Seconds
	s.Throughput = float64(s.Requests.Completed) / s.Seconds
	s.Goodput = float64(s.Requests.OK) / s.Seconds
}

func (e *engine) generator(s *Summary, all *shard) {
	g := &s.Generator
	g.LagP50, g.LagP99 = millis(all.lag.quantile(.5)), millis(all.lag.quantile(.99))
	g.Waited = e.waited
	used, span, known := e.usageUntil.since(e.usageFrom)
	if !known || s.Requests.Sent == 0 || span <= 0 {
		return
	}
	g.CPUMicrosPerRequest = float64(used) / float64(time.Microsecond) / float64(s.Requests.Sent)
	g.CPUShare = min(1, float64(used)/float64(span)/float64(e.cores))
}
