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
// sum.
type distribution struct {
	h        *hdr.Histogram
	min, max time.Duration
	sum      float64 // ns; a float, since a busy day of slow requests overflows 63 bits
	over     int64   // beyond topTime
}

func newDistribution() distribution {
	return distribution{h: hdr.New(1, int64(topTime), significantDigits), min: math.MaxInt64}
}

func (d *distribution) record(t time.Duration) {
	t = max(t, 0)
	d.min, d.max = min(d.min, t), max(d.max, t)
	d.sum += float64(t)
	if t > topTime {
		d.over++
		t = topTime
	}
	_ = d.h.RecordValue(int64(t)) // within range, so it cannot fail
}

func (d *distribution) merge(o *distribution) {
	d.h.Merge(o.h) // equal geometry, so nothing is dropped
	d.min, d.max = min(d.min, o.min), max(d.max, o.max)
	d.sum += o.sum
	d.over += o.over
}

func (d *distribution) count() int64 { return d.h.TotalCount() }

// quantile is the nearest rank: the smallest sample that has a share of at least
// q at or below it, to three digits. 0 without samples.
func (d *distribution) quantile(q float64) time.Duration {
	n := d.count()
	if n == 0 {
		return 0
	}
	rank := max(1, math.Ceil(q*float64(n)-1e-9))
	// The library rounds to the nearest rank, where nearest rank means the
	// ceiling: it is given the percentile of the rank itself.
	t := time.Duration(d.h.ValueAtPercentile(100 * rank / float64(n)))
	return min(max(t, d.min), d.max)
}

// shard records for some of the users.
type shard struct {
	mu sync.Mutex
	// Response times, apart, so that fast failures cannot flatter the answers.
	ok, failed distribution
	service    distribution
	lag        distribution

	statuses [1000]int64
	errors   map[class]int64
	examples map[class]string
	bytes    int64 // of bodies

	completed int64 // a full answer of any status
	late      int64 // of those, after the window's end
	lastDone  time.Duration
	lastEnd   time.Duration // of all, failed ones too

	connections int64
}

func newShard() *shard {
	return &shard{
		ok: newDistribution(), failed: newDistribution(), service: newDistribution(), lag: newDistribution(),
		errors: map[class]int64{}, examples: map[class]string{},
	}
}

// record takes in one request that counts. late says that it ended after the
// window.
func (s *shard) record(due, sent, done time.Duration, late bool, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service.record(done - sent)
	s.lag.record(sent - due)
	s.bytes += o.body
	s.lastEnd = max(s.lastEnd, done)
	if o.status != 0 {
		s.statuses[o.status]++
		s.completed++
		s.lastDone = max(s.lastDone, done)
		if late {
			s.late++
		}
	}
	if o.class == fine {
		s.ok.record(done - due)
		return
	}
	s.failed.record(done - due)
	s.errors[o.class]++
	if o.err != nil && s.examples[o.class] == "" {
		s.examples[o.class] = describe(o.err)
	}
}

func (s *shard) opened() {
	s.mu.Lock()
	s.connections++
	s.mu.Unlock()
}

func (s *shard) progress() (done, failed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service.count(), s.failed.count()
}

func (s *shard) merge(o *shard) {
	s.ok.merge(&o.ok)
	s.failed.merge(&o.failed)
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
	s.bytes += o.bytes
	s.completed += o.completed
	s.late += o.late
	s.lastDone = max(s.lastDone, o.lastDone)
	s.lastEnd = max(s.lastEnd, o.lastEnd)
	s.connections += o.connections
}
