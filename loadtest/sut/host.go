package sut

import "time"

// Host is what the system says of the whole machine at one moment.
type Host struct {
	// Busy, Stolen and All are CPU time since the machine started, over all of
	// its processors: what anybody used, what a hypervisor gave to others, and
	// both with idling. Busy counts ticks, so that a second of one processor is
	// good to about a hundredth.
	Busy, Stolen, All time.Duration

	// TimeWait is how many TCP connections wait in TIME_WAIT, LocalPorts how
	// many local ports there are for outgoing ones; 0 ports where that is not
	// known.
	TimeWait, LocalPorts int

	// Throttled is how often a CPU quota has stopped this process's control
	// group; nil where it has none.
	Throttled *int64
}

// CPU is the CPU time that this process has used with everything that it started:
// what runs, by ticks of a hundredth of a second, and what has ended.
func (l *Launcher) CPU() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	total, err := ownCPU()
	if err != nil {
		return 0, err
	}
	for p := range l.live {
		used, err := cpuTime(p.PID())
		if err != nil {
			continue // it ended a moment ago, and counts as ended next time
		}
		total += used
	}
	return total, nil
}
