package load

import "time"

// usage is what the process had used of the CPU at a moment.
type usage struct {
	at    time.Duration
	cpu   time.Duration
	known bool
}

func readUsage(at time.Duration) usage {
	cpu, ok := cpuTime()
	return usage{at: at, cpu: cpu, known: ok}
}

// since is the CPU used between two moments, and the time between them.
func (u usage) since(before usage) (used, span time.Duration, known bool) {
	return u.cpu - before.cpu, u.at - before.at, u.known && before.known
}
