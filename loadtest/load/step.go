package load

import (
	"sort"
	"time"
)

// group is what became of some requests of a run: those of one kind.
type group struct {
	tally
	completed int64
}

func (g *group) record(x sample) {
	g.tally.record(x.class, x.done-x.due)
	if x.status != 0 {
		g.completed++
	}
}

func (g *group) merge(o *group) {
	g.tally.merge(&o.tally)
	g.completed += o.completed
}

// requests are the counts, given what was dropped; they go into the times.
func (g *group) requests(lost *distribution) Requests {
	sent := g.count() + g.rejected
	r := Requests{Sent: sent, Completed: g.completed, OK: g.ok.count(), Failed: sent - g.ok.count(), Rejected: g.rejected}
	if lost != nil {
		r.Dropped = lost.count()
		g.censored.merge(lost)
	}
	r.Planned = r.Sent + r.Dropped
	return r
}

// step is what a stage came to.
type step struct {
	// Requests that were due in it, whenever they ended.
	group
	// What was answered in it: the rate at which the target worked then.
	in answered
}

func (s *step) merge(o *step) {
	s.group.merge(&o.group)
	s.in.merge(o.in)
}

// stepAt is the stage that a moment belongs to, -1 for one before or after all.
func (e *engine) stepAt(t time.Duration) int {
	if t < e.from || t >= e.until {
		return -1
	}
	return sort.Search(len(e.stages), func(i int) bool { return e.stages[i].to > t })
}

// steps are the results of the stages that took time, as far as the run came.
func (e *engine) steps(all *shard) []Step {
	var out []Step
	level := func(x float64) Level {
		if e.p.Executor == RampingVUs {
			return Level{Users: int(x)}
		}
		l := Level{}
		l.Rate.PerSecond = x
		return l
	}
	for i, stage := range e.stages {
		end := stage.to
		if stopped := time.Duration(e.stopped.Load()); stopped != 0 {
			end = min(end, stopped)
		}
		if end <= stage.from {
			break
		}
		s := &all.steps[i]
		length := (end - stage.from).Seconds()
		r := s.requests(lostAt(e.lostIn, i))
		out = append(out, Step{
			At: (stage.from - e.from).Seconds(), Seconds: length,
			From: level(stage.start).String(), To: level(stage.end).String(),
			Requests: r,
			Offered:  float64(r.Planned) / length, Throughput: float64(s.in.all) / length, Goodput: float64(s.in.ok) / length,
			ResponseTime: s.times(), OKResponseTime: s.ok.times(),
		})
	}
	return out
}

// lostAt is the i-th of what only open load has.
func lostAt(ds []distribution, i int) *distribution {
	if ds == nil {
		return nil
	}
	return &ds[i]
}

// byRequest are the results of each kind of request of a mix.
func (e *engine) byRequest(all *shard) []Kind {
	var out []Kind
	for i := range all.kinds {
		g := &all.kinds[i]
		out = append(out, Kind{
			Name: e.mix.kinds[i].name, Requests: g.requests(lostAt(e.lostOf, i)),
			ResponseTime: g.times(), OKResponseTime: g.ok.times(),
		})
	}
	return out
}
