package experiment

import (
	"math"
	"time"

	"gatebench/loadtest/result"
)

// Event is one step of a run, as it begins.
type Event struct {
	// Phase is "pilot", "ceiling" (Arm is then what is measured without a
	// gateway), "duet", "solo", "pprof", or "" when all is done.
	Phase string
	// Arm is what is measured, "" when it is all of them.
	Arm     string
	Profile string

	// Block is the block's number from 0, of Blocks: more than the plan's when
	// blocks are run again.
	Block, Blocks int
	// Done counts trials that are over, of Total.
	Done, Total int

	// End is when the run will probably be over.
	End time.Time

	// Ended are the trials that ended since the event before.
	Ended []result.Trial
}

// clock knows how far a run is. It corrects what the plan says by what the steps
// took so far.
type clock struct {
	started time.Time
	budget  time.Duration // 0 is none

	planned time.Duration // of all steps
	spent   time.Duration // planned time of the steps that are over

	slowness float64 // the longest block so far, as a multiple of its plan

	blocks      int
	done, total int // trials
}

func startClock(p Plan) clock {
	now := time.Now()
	return clock{
		started:  now,
		budget:   p.Budget,
		planned:  p.time(),
		slowness: 1,
		blocks:   p.Blocks,
		total:    p.Blocks * len(p.Arms) * len(p.parts()),
	}
}

// step counts trials that are over and the time that the plan gave them.
func (c *clock) step(planned time.Duration, trials int) {
	c.spent += planned
	c.done += trials
}

// fits reports whether the budget holds another block of that planned length.
func (c *clock) fits(planned time.Duration) bool {
	need := time.Duration(c.slowness * float64(planned))
	return c.budget == 0 || time.Now().Add(need).Before(c.started.Add(c.budget))
}

// slack is what of the budget will be left when all is done.
func (c *clock) slack() time.Duration {
	if c.budget == 0 {
		return math.MaxInt64
	}
	return c.started.Add(c.budget).Sub(c.end())
}

// took learns from a block that is over.
func (c *clock) took(spent, planned time.Duration) {
	c.slowness = max(c.slowness, float64(spent)/float64(max(planned, time.Millisecond)))
}

// more adds a block to what is planned.
func (c *clock) more(planned time.Duration, trials int) {
	c.planned += planned
	c.total += trials
	c.blocks++
}

// end is when all will be over if the rest is as slow, against the plan, as what
// is done.
func (c *clock) end() time.Time {
	now := time.Now()
	left := c.planned - c.spent
	if c.spent > 0 {
		left = time.Duration(float64(left) * float64(now.Sub(c.started)) / float64(c.spent))
	}
	return now.Add(left)
}

// progress says what begins now.
func (r *run) progress(e Event) {
	if r.options.Progress == nil {
		return
	}
	e.Blocks, e.Done, e.Total, e.End = r.clock.blocks, r.clock.done, r.clock.total, r.clock.end()
	e.Ended, r.told = r.doc.Trials[r.told:], len(r.doc.Trials)
	r.options.Progress(e)
}
