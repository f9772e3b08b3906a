package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatebench/internal/conf"
)

// Stage is one part of a load that changes: in a straight line from the level
// before to Target, over Duration. One of 0s is a jump.
//
//	stages: [{target: 1000, duration: 10s}, {target: 1000, duration: 60s}, {target: 0, duration: 10s}]
type Stage struct {
	// Target is users for ramping-vus, like 200, and a rate for
	// ramping-arrival-rate, like 500/s.
	Target Level `yaml:"target"`
	// Duration is how long the stage takes.
	Duration time.Duration `yaml:"duration"`
}

// ParseStage reads a stage as a flag has it, DURATION:TARGET, like 10s:500/s.
func ParseStage(s string) (Stage, error) {
	d, target, ok := strings.Cut(s, ":")
	if !ok {
		return Stage{}, fmt.Errorf("%q is not a stage: write DURATION:TARGET, like 10s:200 or 10s:500/s", s)
	}
	var st Stage
	var err error
	if st.Duration, err = conf.ParseDuration(d); err != nil {
		return Stage{}, err
	}
	return st, st.Target.UnmarshalText([]byte(target))
}

// Level is how much load there is at a moment: users or a rate, of which at most
// one is not zero.
type Level struct {
	Users int
	Rate  conf.Rate
}

// UnmarshalText reads a number of users, 200, or a rate, 500/s or 45%.
func (l *Level) UnmarshalText(b []byte) error {
	*l = Level{}
	if n, err := strconv.Atoi(string(b)); err == nil {
		l.Users = n
		return nil
	}
	if l.Rate.UnmarshalText(b) == nil {
		return nil
	}
	return fmt.Errorf("%q is not a level of load: write users, like 200, or a rate, like 500/s or 45%%", b)
}

// MarshalText writes l as UnmarshalText reads it.
func (l Level) MarshalText() ([]byte, error) {
	if !l.Rate.IsZero() {
		return l.Rate.MarshalText()
	}
	return strconv.AppendInt(nil, int64(l.Users), 10), nil
}

func (l Level) String() string {
	b, _ := l.MarshalText() // never fails
	return string(b)
}

// amount is the level as a number: users, or requests per second.
func (l Level) amount() float64 { return float64(l.Users) + l.Rate.PerSecond }

// stretch is a level of load that goes straight from start to end.
type stretch struct {
	from, to   time.Duration
	start, end float64
}

// stretches are the stages one after the other, behind a warm-up that holds the level
// at which they begin. Jumps are not among them: they have no length.
func (p Profile) stretches() []stretch {
	var ss []stretch
	level, at := p.Start.amount(), time.Duration(0)
	add := func(end float64, length time.Duration) {
		if length > 0 {
			ss = append(ss, stretch{at, at + length, level, end})
		}
		level, at = end, at+length
	}
	add(level, p.Warmup)
	for _, s := range p.Stages {
		add(s.Target.amount(), s.Duration)
	}
	return ss
}

// peak is the highest level there is.
func peak(ss []stretch) float64 {
	top := 0.0
	for _, l := range ss {
		top = max(top, l.start, l.end)
	}
	return top
}

// shift is when a user of a changing number of users is at work.
type shift struct{ on, off time.Duration }

// shiftsOf are the shifts of the i-th user, from 0: those times in which more than
// i users are asked for. A user that leaves and comes back has two.
func shiftsOf(ss []stretch, i int) []shift {
	var out []shift
	open := func(on, off time.Duration) {
		if on >= off {
			return
		}
		if n := len(out); n > 0 && out[n-1].off == on {
			out[n-1].off = off
			return
		}
		out = append(out, shift{on, off})
	}
	u := float64(i)
	for _, l := range ss {
		// Where the line crosses u.
		cross := l.from
		if l.start != l.end {
			cross += time.Duration((u - l.start) / (l.end - l.start) * float64(l.to-l.from))
		}
		switch {
		case l.start > u && l.end > u:
			open(l.from, l.to)
		case l.start > u:
			open(l.from, cross)
		case l.end > u:
			open(cross, l.to)
		}
	}
	return out
}
