package lead

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Rings that are late by 80 µs and something, in one of twenty by milliseconds: three
// quarters of them come no earlier than the lead, and what the others wait is little.
func TestLeadIsTheLowerQuartile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	late := func() time.Duration {
		if rng.IntN(20) == 0 {
			return time.Duration(rng.Int64N(int64(5 * time.Millisecond)))
		}
		return 80*time.Microsecond + time.Duration(rng.ExpFloat64()*float64(30*time.Microsecond))
	}
	var l Lead
	for range 1000 {
		l.Rang(late())
	}
	early, awake := 0, time.Duration(0)
	const rings = 10_000
	for range rings {
		after := late()
		if after < l.Ahead() {
			early++
			awake += l.Ahead() - after
		}
		l.Rang(after)
	}
	if early < rings/5 || early > rings*3/10 {
		t.Errorf("%d of %d rings are early", early, rings)
	}
	if mean := awake / rings; mean > 5*time.Microsecond {
		t.Errorf("they wait %v awake, each", mean)
	}
}

func TestLeadHasBounds(t *testing.T) {
	var l Lead
	if l.Rang(-time.Second); l.Ahead() != 0 {
		t.Errorf("after an early ring: %v", l.Ahead())
	}
	for range 1000 {
		l.Rang(time.Second)
	}
	if l.Ahead() != Most {
		t.Errorf("after a thousand late ones: %v", l.Ahead())
	}
}
