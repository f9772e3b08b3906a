package experiment

import "time"

// Event is one step of a run, as it begins.
type Event struct {
	// Phase is "pilot", "duet", "solo", or "" when all is done.
	Phase string
	// Arm is what is measured, "" when it is all of them.
	Arm     string
	Profile string

	// Block is the block's number from 0, of Blocks.
	Block, Blocks int
	// Done counts trials that are over, of Total.
	Done, Total int

	// End is when the run will probably be over.
	End time.Time
}

// clock knows how far a run is. It corrects what the plan says by what the steps
// took so far.
type clock struct {
	started time.Time
	budget  time.Duration // 0 is none

	planned time.Duration // of all steps
	spent   time.Duration // planned time of the steps that are over

	block      time.Duration // the longest so far, at first as planned
	blockStart time.Time

	done, total int // trials
}

func startClock(p Plan) clock {
	phases := len(p.Profiles)
	if p.Duet.Duration > 0 {
		phases++
	}
	now := time.Now()
	return clock{
		started: now,
		budget:  p.Budget,
		planned: p.pilotTime() + time.Duration(p.Blocks)*p.blockTime(),
		block:   p.blockTime(),
		total:   p.Blocks * len(p.Arms) * phases,
	}
}

// step counts trials that are over and the time that the plan gave them.
func (c *clock) step(planned time.Duration, trials int) {
	c.spent += planned
	c.done += trials
}

// blockFits reports whether the budget holds another block, and starts timing it.
func (c *clock) blockFits() bool {
	c.blockStart = time.Now()
	return c.budget == 0 || c.blockStart.Add(c.block).Before(c.started.Add(c.budget))
}

func (c *clock) blockDone() { c.block = max(c.block, time.Since(c.blockStart)) }

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
	e.Blocks, e.Done, e.Total, e.End = r.plan.Blocks, r.clock.done, r.clock.total, r.clock.end()
	r.options.Progress(e)
}
