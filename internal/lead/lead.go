// Package lead learns how late this machine's timers ring, so that they can be set as
// much earlier. The interrupt of a timer and the waking of a core and a thread take a
// virtual machine about a tenth of a millisecond, nearly always alike: a load generator
// would send as much too late, and a simulated latency would be as much too long.
//
// It leaves to others how they wait; who is woken early waits for the rest awake, which
// is a few microseconds on average (see [Lead.Rang]).
package lead

import "time"

const (
	// quarter is the share of rings that are meant to come early.
	quarter = 0.25
	// step is how fast the lead follows what it sees: from 0 to 100 µs in a hundred
	// rings, and hardly at all where one ring is late by milliseconds.
	step = 4 * time.Microsecond
	// Most is the most that a lead can be: how long a ring may be waited for awake.
	// A machine that is busy is later than that, and has no time to give away.
	Most = 150 * time.Microsecond
)

// Lead is how much earlier to set a timer. The zero value is none yet. It is not safe
// for concurrent use.
type Lead struct{ d time.Duration }

// Ahead is the lead to set the next timer by, in [0, Most].
func (l *Lead) Ahead() time.Duration { return l.d }

// Rang takes in how long after the moment that a timer was set to it rang. The lead
// follows the lower quartile of that: the rings that come early come early by little,
// since few are much quicker than the quartile.
func (l *Lead) Rang(after time.Duration) {
	if after < l.d {
		l.d -= time.Duration((1 - quarter) * float64(step))
	} else {
		l.d += time.Duration(quarter * float64(step))
	}
	l.d = min(max(l.d, 0), Most)
}
