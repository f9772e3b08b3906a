package load

import (
	"math"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms count nanoseconds with three significant digits up to topTime. What
// is beyond is counted there and said so; its exact maximum is kept all the same.
const (
	topTime           = time.Hour
	significantDigits = 3
)

// distribution is a histogram with what a histogram loses: the exact extremes and
// sum. The zero value is empty; a histogram weighs a quarter of a megabyte and is
// made for the first sample.
type distribution struct {
	h        *hdr.Histogram
	min, max time.Duration
	sum      float64 // ns; a float, since a busy day of slow requests overflows 63 bits
	over     int64   // beyond topTime
}

func (d *distribution) histogram() *hdr.Histogram {
	if d.h == nil {
		d.h, d.min = hdr.New(1, int64(topTime), significantDigits), math.MaxInt64
	}
	return d.h
}

func (d *distribution) record(t time.Duration) {
	h := d.histogram()
	t = max(t, 0)
	d.min, d.max = min(d.min, t), max(d.max, t)
	d.sum += float64(t)
	if t > topTime {
		d.over++
		t = topTime
	}
	_ = h.RecordValue(int64(t)) // within range, so it cannot fail
}

func (d *distribution) merge(o *distribution) {
	if o.h == nil {
		return
	}
	d.histogram().Merge(o.h) // equal geometry, so nothing is dropped
	d.min, d.max = min(d.min, o.min), max(d.max, o.max)
	d.sum += o.sum
	d.over += o.over
}

func (d *distribution) count() int64 {
	if d.h == nil {
		return 0
	}
	return d.h.TotalCount()
}

// mean is in milliseconds; there must be samples.
func (d *distribution) mean() float64 {
	return d.sum / float64(d.count()) / float64(time.Millisecond)
}

// quantile is the nearest rank, to three digits. 0 without samples.
func (d *distribution) quantile(q float64) time.Duration {
	n := d.count()
	if n == 0 {
		return 0
	}
	return d.ranked(rankOf(q, n))
}

// ranked is the sample of a rank, from 1 to the count, to three digits.
func (d *distribution) ranked(rank int64) time.Duration {
	// The library takes a percentile and rounds to the nearest rank: it is
	// given the percentile of the rank itself.
	t := time.Duration(d.h.ValueAtPercentile(100 * float64(rank) / float64(d.count())))
	return min(max(t, d.min), d.max)
}

// below is how many samples are less than t, to three digits.
func (d *distribution) below(t time.Duration) int64 {
	if d.h == nil {
		return 0
	}
	n := int64(0)
	for _, bar := range d.h.Distribution() {
		if bar.To >= int64(t) {
			break
		}
		n += bar.Count
	}
	return n
}

// shard records for some of the users.
type shard struct {
	mu       sync.Mutex
	response tally
	service  distribution // of all that were sent and not rejected, whatever became of them
	lag      distribution

	statuses [1000]int64
	errors   map[class]int64
	examples map[class]string
	timeouts [phases]int64
	bytes    int64 // of bodies

	completed int64 // a full answer of any status

	// Full answers by when they came: in the window, and after its end.
	within, after answered
	lastDone      time.Duration // of the full answers
	lastEnd       time.Duration // of all, failed ones too

	connections int64
	onWire      int64   // requests written or begun to be, warm-up included
	inFlight    float64 // ns that requests were in flight while any were due, together

	steps  []step
	kinds  []group // of a mix; nil where there is one kind alone
	series series
}

// answered counts full answers by the moment they came, whenever their requests were
// due: those of the warm-up's requests that came in the window stand for those of the
// window's that came after it.
type answered struct{ all, ok int64 }

func (a *answered) add(x sample) {
	a.all++
	if x.class == fine {
		a.ok++
	}
}

func (a *answered) merge(o answered) {
	a.all += o.all
	a.ok += o.ok
}

// sample is one request that has ended.
type sample struct {
	kind            int
	due, sent, done time.Duration
	written         bool // or begun to be
	outcome
}

// newShard makes one that keeps so many steps and kinds apart, and a series as
// coarse as interval.
func newShard(steps, kinds int, interval time.Duration) *shard {
	s := &shard{
		errors: map[class]int64{}, examples: map[class]string{},
		steps: make([]step, steps), series: series{interval: interval},
	}
	if kinds > 1 {
		s.kinds = make([]group, kinds)
	}
	return s
}

// record takes in one request. Of those that were due in the warm-up only what the
// whole run is about counts.
func (s *shard) record(e *engine, x sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.written {
		s.onWire++
	}
	s.inFlight += float64(max(0, min(x.done, e.dueUntil())-max(x.sent, e.from)))
	s.lastEnd = max(s.lastEnd, x.done)
	if x.status != 0 && x.done > e.from {
		s.answer(e, x)
	}
	if e.measured(x.due) {
		s.measure(e, x)
	}
}

// answer takes in a full answer that came after the warm-up.
func (s *shard) answer(e *engine, x sample) {
	s.lastDone = max(s.lastDone, x.done)
	if x.done > e.until {
		s.after.add(x)
		return
	}
	s.within.add(x)
	if i := e.stepAt(x.done); i >= 0 && len(s.steps) > 0 {
		s.steps[i].in.add(x)
	}
}

// measure takes in one request of the measured window.
func (s *shard) measure(e *engine, x sample) {
	response := x.done - x.due
	s.response.record(x.class, response)
	if x.class != rejected {
		s.service.record(x.done - x.sent)
	}
	s.lag.record(x.sent - x.due)
	s.series.record(x.sent-e.from, x.done-e.from, response, x.class)
	s.bytes += x.body
	if i := e.stepAt(x.due); i >= 0 && len(s.steps) > 0 {
		s.steps[i].record(x)
	}
	if len(s.kinds) > 0 {
		s.kinds[x.kind].record(x)
	}
	if x.status != 0 {
		s.statuses[x.status]++
		s.completed++
	}
	if x.class == fine {
		return
	}
	s.errors[x.class]++
	if x.class == timeout {
		s.timeouts[x.phase]++
	}
	if x.err != nil && s.examples[x.class] == "" {
		s.examples[x.class] = describe(x.err)
	}
}

func (s *shard) opened() {
	s.mu.Lock()
	s.connections++
	s.mu.Unlock()
}

// progress adds the response times of ok requests to ok.
func (s *shard) progress(ok *distribution) (done, failed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok.merge(&s.response.ok)
	return s.service.count(), s.response.count() - s.response.ok.count()
}

func (s *shard) merge(o *shard) {
	s.response.merge(&o.response)
	s.service.merge(&o.service)
	s.lag.merge(&o.lag)
	for i, n := range o.statuses {
		s.statuses[i] += n
	}
	for c, n := range o.errors {
		s.errors[c] += n
	}
	for c, text := range o.examples {
		if s.examples[c] == "" {
			s.examples[c] = text
		}
	}
	for i, n := range o.timeouts {
		s.timeouts[i] += n
	}
	for i := range o.steps {
		s.steps[i].merge(&o.steps[i])
	}
	for i := range o.kinds {
		s.kinds[i].merge(&o.kinds[i])
	}
	s.series.merge(&o.series)
	s.bytes += o.bytes
	s.completed += o.completed
	s.within.merge(o.within)
	s.after.merge(o.after)
	s.lastDone = max(s.lastDone, o.lastDone)
	s.lastEnd = max(s.lastEnd, o.lastEnd)
	s.connections += o.connections
	s.onWire += o.onWire
	s.inFlight += o.inFlight
}
