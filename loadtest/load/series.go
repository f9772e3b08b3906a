package load

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// finestInterval is that of a series, unless it would have too many points.
	finestInterval = time.Second
	// mostPoints bounds a series; a longer run has coarser ones.
	mostPoints = 600
)

// series is the course of a run: one slot per interval, from the window's start.
type series struct {
	interval time.Duration
	slots    []slot
}

// slot counts what happened in one interval, by the moment it happened: a request
// that was sent in one and answered in another is in both.
type slot struct {
	sent, ok, failed int64
	errors           map[class]int64 // of the failed; nil for none
	// Response times of the ok ones, to one digit: a point of a curve is worth
	// five kilobytes and not a quarter of a megabyte.
	times *hdr.Histogram
	max   time.Duration
}

// intervalOf is the interval for a window, 0 if nobody knows its length.
func intervalOf(window time.Duration) time.Duration {
	interval := finestInterval
	for ; window > interval*mostPoints; interval *= 2 {
	}
	return interval
}

func (s *series) record(sent, done, response time.Duration, c class) {
	s.at(sent).sent++
	to := s.at(done)
	if c != fine {
		to.fail(c, 1)
		return
	}
	to.ok++
	to.record(response, 1)
}

// at is the slot of a moment. What was due in the window was sent in it or later.
func (s *series) at(t time.Duration) *slot {
	i := int(max(0, t) / s.interval)
	for i >= mostPoints {
		s.coarsen()
		i = int(max(0, t) / s.interval)
	}
	for len(s.slots) <= i {
		s.slots = append(s.slots, slot{})
	}
	return &s.slots[i]
}

// coarsen doubles the interval.
func (s *series) coarsen() {
	s.interval *= 2
	for i := range s.slots {
		if i%2 == 0 {
			s.slots[i/2] = s.slots[i]
		} else {
			s.slots[i/2].merge(&s.slots[i])
		}
	}
	half := (len(s.slots) + 1) / 2
	clear(s.slots[half:])
	s.slots = s.slots[:half]
}

func (s *series) merge(o *series) {
	for s.interval < o.interval {
		s.coarsen()
	}
	for i := range o.slots {
		s.at(time.Duration(i) * o.interval).merge(&o.slots[i])
	}
}

func (s *slot) fail(c class, n int64) {
	if s.errors == nil {
		s.errors = map[class]int64{}
	}
	s.failed += n
	s.errors[c] += n
}

func (s *slot) record(t time.Duration, n int64) {
	if s.times == nil {
		s.times = hdr.New(int64(time.Microsecond), int64(topTime), 1)
	}
	s.max = max(s.max, t)
	_ = s.times.RecordValues(int64(min(max(t, 0), topTime)), n) // within range, so it cannot fail
}

func (s *slot) merge(o *slot) {
	s.sent += o.sent
	s.ok += o.ok
	for c, n := range o.errors {
		s.fail(c, n)
	}
	if o.times == nil {
		return
	}
	if s.times == nil {
		s.times = hdr.New(int64(time.Microsecond), int64(topTime), 1)
	}
	s.times.Merge(o.times)
	s.max = max(s.max, o.max)
}

// points are the series as the summary has it.
func (s *series) points() []Point {
	ps := make([]Point, len(s.slots))
	for i, from := range s.slots {
		ps[i] = Point{At: (time.Duration(i) * s.interval).Seconds(), Sent: from.sent, OK: from.ok, Failed: from.failed}
		for c, n := range from.errors {
			if ps[i].Errors == nil {
				ps[i].Errors = map[string]int64{}
			}
			ps[i].Errors[string(c)] = n
		}
		if from.times != nil {
			q := func(p float64) *float64 {
				return new(millis(min(time.Duration(from.times.ValueAtPercentile(p)), from.max)))
			}
			ps[i].OKP50, ps[i].OKP99, ps[i].OKMax = q(50), q(99), new(millis(from.max))
		}
	}
	return ps
}
