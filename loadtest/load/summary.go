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
	// less where iterations or an interrupt ended it. Where more answers came
	// after it than in it (they take longer than the window lasts) it runs to
	// the last answer, so that rates stay those of real time.
	Seconds float64 `json:"seconds"`

	Requests Requests `json:"requests"`

	// Offered is planned requests per second in which they were due.
	Offered float64 `json:"offered"`
	// Throughput is full answers per second, Goodput ok ones: those that came
	// in the measured window, the warm-up's last among them and what was still
	// awaited at its end not. So neither can be more than the target did, and
	// times Seconds they need not be the requests that are completed or ok.
	Throughput float64 `json:"throughput"`
	Goodput    float64 `json:"goodput"`

	// ResponseTime runs from the due time: the headline. It is over all requests
	// that were due and were not turned away (rejected). One that timed out, was
	// cut or was dropped stands in it with its age, and its true time is longer;
	// one that ended in an error has a time without end. So quick errors and
	// early timeouts cannot flatter a quantile. Null where no request has a time.
	ResponseTime *Times `json:"response_time"`
	// ServiceTime runs from the moment of sending, connecting included where it
	// was needed. It is over all sent requests but the rejected, those that failed at
	// their age.
	ServiceTime *Times `json:"service_time"`

	// OKResponseTime is the response time of ok requests alone: it stands
	// beside the headline wherever quick failures or timeouts bend that.
	OKResponseTime *Times `json:"ok_response_time"`

	// Censored is how many requests were given up (timed out, cut or dropped):
	// their true response times are longer than the ones they stand there with.
	Censored int64 `json:"censored"`
	// OverRange is how many samples lie beyond the histogram's hour. They count
	// there; Max and Mean are exact all the same.
	OverRange int64 `json:"over_range"`

	// Errors by class; every failed request is in exactly one. ErrorExamples
	// has the first of each class that is not a status.
	Errors        map[string]int64  `json:"errors"`
	ErrorExamples map[string]string `json:"error_examples,omitempty"`

	// Timeouts says where the time ran out for those in the class timeout:
	// connect (handshake included), header, body.
	Timeouts map[string]int64 `json:"timeouts,omitempty"`

	// Statuses counts completed requests by status.
	Statuses map[string]int64 `json:"statuses"`
	// BodyBytes of full responses, without framing.
	BodyBytes int64 `json:"body_bytes"`
	// ConnectionsOpened by the generator, in the warm-up too.
	ConnectionsOpened int64 `json:"connections_opened"`

	// ByRequest has a result for each kind of request, of a mix.
	ByRequest []Kind `json:"by_request,omitempty"`
	// Steps has a result for each stage that took time, of a ramping executor.
	Steps []Step `json:"steps,omitempty"`
	// Search is the result of max-rate-search; the other figures are then those
	// of its probe at the highest rate that met the objective.
	Search *Search `json:"search,omitempty"`
	// Series is the course of the run.
	Series Series `json:"series"`

	Generator Generator `json:"generator"`

	// Saturated says that the target could not carry an even rate
	// (constant-arrival-rate): the requests in flight kept growing, so that the
	// times are those of the run's length.
	Saturated bool `json:"saturated"`

	// Valid is false where the generator, not the server, set the figures, and
	// where the target is saturated.
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`

	response, service distribution // of WriteHistograms
}

// Requests are the counts: planned = sent + dropped and sent = ok + failed.
type Requests struct {
	Planned   int64 `json:"planned"`
	Sent      int64 `json:"sent"`
	Completed int64 `json:"completed"` // a full response of any status
	OK        int64 `json:"ok"`        // completed, and every check passed
	Failed    int64 `json:"failed"`    // sent and not ok
	Rejected  int64 `json:"rejected"`  // of failed: turned away by a 503 with Retry-After
	Dropped   int64 `json:"dropped"`   // due, never started
}

// Times are quantiles of one kind of time, in milliseconds: nearest rank, to three
// digits; mean, min and max are exact, over those requests that have a time. P999
// is null below a thousand samples, where it would be the maximum by another name.
type Times struct {
	Mean float64  `json:"mean"`
	Min  float64  `json:"min"`
	Max  float64  `json:"max"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p99.9"`
	// AtLeast names those of the figures above that are lower bounds: so many
	// requests had no answer that more is not known.
	AtLeast []string `json:"at_least,omitempty"`
	// Curve is the whole distribution, as far as it is known: the time within which
	// each share of the requests was answered, up to one beyond which one request
	// lies. Absent from parts of a run.
	Curve []CurvePoint `json:"curve,omitempty"`
}

// CurvePoint is one quantile of a distribution.
type CurvePoint struct {
	Q  float64 `json:"q"`  // share of requests, in [0,1)
	MS float64 `json:"ms"` // that took at most so long
}

// Kind is the result of one kind of request.
type Kind struct {
	Name           string   `json:"name"`
	Requests       Requests `json:"requests"`
	ResponseTime   *Times   `json:"response_time"`
	OKResponseTime *Times   `json:"ok_response_time"`
}

// Step is the result of one stage. Its requests and response times are those due in
// it; throughput and goodput count what was answered in it.
type Step struct {
	At             float64  `json:"at"`      // start, seconds into the window
	Seconds        float64  `json:"seconds"` // length
	From           string   `json:"from"`    // level at its start, as in YAML
	To             string   `json:"to"`      // level at its end
	Requests       Requests `json:"requests"`
	Offered        float64  `json:"offered"`
	Throughput     float64  `json:"throughput"`
	Goodput        float64  `json:"goodput"`
	ResponseTime   *Times   `json:"response_time"`
	OKResponseTime *Times   `json:"ok_response_time"`
}

// Search is the highest rate that meets an objective: it was met at Lo and missed at
// Hi, which is at most a twentieth more, requests per second.
type Search struct {
	Objective Objective `json:"objective"`
	// Lo is null if it was met nowhere, Hi if it was missed nowhere.
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
	// Confirmed says that four of five probes agreed at either end.
	Confirmed bool `json:"confirmed"`
	// Saturation is the goodput of closed load that the search set out from;
	// null where a highest rate was given.
	Saturation *float64 `json:"saturation"`
	// Probes in the order in which they were made.
	Probes []Probe `json:"probes"`
}

// Probe is one run of a search, at one rate.
type Probe struct {
	Rate         float64  `json:"rate"`
	Met          bool     `json:"met"`
	Missed       []string `json:"missed,omitempty"` // why not
	Requests     Requests `json:"requests"`
	ResponseTime *Times   `json:"response_time"`
}

// Series is the course of a run in equal intervals: seconds, or longer ones where
// there would be more than 600.
type Series struct {
	Interval float64 `json:"interval"` // seconds
	Points   []Point `json:"points"`
}

// Point is one interval, by the moments at which things happened: the sent column
// shows what the generator did, the others what the target did. Times are the
// response times of ok requests, in milliseconds to one digit (the maximum is
// exact); null where there were none.
type Point struct {
	At     float64 `json:"at"` // start, seconds into the window
	Sent   int64   `json:"sent"`
	OK     int64   `json:"ok"`
	Failed int64   `json:"failed"`
	// Errors are the failed ones by class.
	Errors map[string]int64 `json:"errors,omitempty"`
	OKP50  *float64         `json:"ok_p50"`
	OKP99  *float64         `json:"ok_p99"`
	OKMax  *float64         `json:"ok_max"`
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
	// OnWire is how many requests it wrote, or began to, warm-up included:
	// what the other side of the wire should have seen.
	OnWire int64 `json:"on_wire"`
	// InFlight is the mean number of requests in flight as it follows from
	// their times, InFlightSeen as it was counted at random moments; null where
	// there were none. By Little's law they are equal. Both are of the time in
	// which requests were due: what is awaited after that is not among them.
	InFlight     float64  `json:"in_flight"`
	InFlightSeen *float64 `json:"in_flight_seen"`
}

// times are the figures of a distribution, nil of an empty one.
func (d *distribution) times() *Times {
	n := d.count()
	if n == 0 {
		return nil
	}
	x := &Times{Mean: d.mean(), Min: millis(d.min), Max: millis(d.max)}
	for _, q := range x.quantiles(n) {
		*q.to = new(millis(d.quantile(q.q)))
	}
	return x
}

// curveBeyond are the shares of requests beyond the points of a curve: alike in distance
// on the axis 1/(1−q) that a tail is read on.
var curveBeyond = []float64{1, .9, .8, .7, .6, .5, .4, .3, .2, .1, .07, .05, .03, .02, .01, .007, .005, .003, .002, .001, .0005, .0002, .0001, .00005, .00002, .00001}

// curve is the distribution of n requests of which d has the times that are known, and
// known says up to which rank.
func (d *distribution) curve(n, known int64) []CurvePoint {
	var ps []CurvePoint
	for _, beyond := range curveBeyond {
		rank := rankOf(1-beyond, n)
		if beyond*float64(n) < 1 || rank > known {
			break
		}
		ps = append(ps, CurvePoint{Q: 1 - beyond, MS: millis(d.ranked(rank))})
	}
	return ps
}

func millis(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

// summary merges what the shards recorded. The run has ended.
func (e *engine) summary() *Summary {
	all := newShard(len(e.stages), len(e.mix.kinds), e.shards[0].series.interval)
	for _, s := range e.shards {
		all.merge(s)
	}
	ok, sent := all.response.ok.count(), all.service.count()+all.response.rejected
	s := &Summary{
		Schema:      SummarySchema,
		Executor:    e.p.Executor,
		Interrupted: e.stopped.Load() != 0,
		Requests: Requests{
			Planned: sent + e.dropped, Sent: sent, Completed: all.completed,
			OK: ok, Failed: sent - ok, Rejected: all.response.rejected, Dropped: e.dropped,
		},
		ServiceTime:       all.service.times(),
		OKResponseTime:    all.response.ok.times(),
		Errors:            map[string]int64{},
		ErrorExamples:     map[string]string{},
		Timeouts:          map[string]int64{},
		Statuses:          map[string]int64{},
		BodyBytes:         all.bytes,
		ConnectionsOpened: all.connections,
		Valid:             true,
		Warnings:          []string{},
	}
	s.response, s.service = all.response.ok, all.service
	if s.ServiceTime != nil {
		s.ServiceTime.Curve = all.service.curve(all.service.count(), all.service.count())
	}
	all.response.censored.merge(&e.lost)
	if s.ResponseTime = all.response.times(); s.ResponseTime != nil {
		// Above the shortest of the times that are but bounds, nothing is known.
		known := all.response.ok.count()
		if bounds := &all.response.censored; bounds.count() > 0 {
			known = all.response.ok.below(bounds.min)
		}
		s.ResponseTime.Curve = all.response.ok.curve(all.response.count(), known)
	}
	s.Censored = all.response.censored.count()
	s.OverRange = all.response.ok.over + all.response.censored.over
	s.Steps, s.ByRequest = e.steps(all), e.byRequest(all)
	s.Series = Series{Interval: all.series.interval.Seconds(), Points: all.series.points()}
	for c, n := range all.errors {
		s.Errors[string(c)] = n
	}
	for c, text := range all.examples {
		s.ErrorExamples[string(c)] = text
	}
	for where, n := range all.timeouts {
		if n > 0 {
			s.Timeouts[phase(where).String()] = n
		}
	}
	for status, n := range all.statuses {
		if n > 0 {
			s.Statuses[strconv.Itoa(status)] = n
		}
	}
	e.rates(s, all)
	e.generator(s, all)
	s.Saturated = e.saturated(s)
	e.judge(s)
	return s
}

// window is the length of the measured window: while requests were due, or to the
// last answer where iterations end the run.
func (e *engine) window(all *shard) time.Duration {
	end := e.until
	if stopped := time.Duration(e.stopped.Load()); stopped != 0 {
		end = min(end, stopped)
	} else if e.p.Iterations > 0 {
		end = min(end, all.lastEnd)
	}
	return max(0, end-e.from)
}

func (e *engine) rates(s *Summary, all *shard) {
	window := e.window(all)
	if window == 0 {
		return
	}
	s.Offered = float64(s.Requests.Planned) / window.Seconds()
	answers := all.within
	if all.after.all > answers.all {
		answers.merge(all.after)
		window = all.lastDone - e.from
	}
	s.Seconds = window.Seconds()
	s.Throughput = float64(answers.all) / s.Seconds
	s.Goodput = float64(answers.ok) / s.Seconds
}

func (e *engine) generator(s *Summary, all *shard) {
	g := &s.Generator
	g.LagP50, g.LagP99 = millis(all.lag.quantile(.5)), millis(all.lag.quantile(.99))
	g.Waited, g.OnWire = e.waited, all.onWire
	if looked := e.looked(); looked > 0 {
		g.InFlight = all.inFlight / float64(looked)
	}
	if len(e.looks) > 0 {
		g.InFlightSeen = new(mean(e.looks))
	}
	used, span, known := e.usageUntil.since(e.usageFrom)
	if !known || s.Requests.Sent == 0 || span <= 0 {
		return
	}
	g.CPUMicrosPerRequest = float64(used) / float64(time.Microsecond) / float64(s.Requests.Sent)
	g.CPUShare = min(1, float64(used)/float64(span)/float64(e.cores))
}
