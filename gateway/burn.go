package gateway

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"gatebench/internal/process"
)

// burn is CPU time to waste on every request: a known difference, for tests of
// whether an experiment finds it. It is a number of rounds and not a time, because a
// spin until a clock says so burns too little when it is preempted.
//
// The trap: rounds were timed on a calm machine. Where the processor then runs at
// another speed, a request burns as much more or less as all its other work does. So
// what was burnt is timed and counted, and a test asks for that.
type burn struct {
	rounds int64
	spent  *atomic.Int64 // ns; nil where nothing is burnt
}

// calibrate finds how many rounds take d on this processor now.
func calibrate(d time.Duration) (burn, error) {
	if d == 0 {
		return burn{}, nil
	}
	per, err := roundTime()
	if err != nil {
		return burn{}, err
	}
	return burn{rounds: max(1, int64(float64(d)/per))}, nil
}

// What calibration takes: 21 samples of about 1 ms each.
const (
	calibrationSamples = 21
	calibrationRounds  = 1 << 20
)

// roundTime is the CPU time of one round, in nanoseconds: the median of samples, so
// that what disturbed a few of them does not count.
func roundTime() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kept := spin(calibrationRounds) // warm: the first rounds run at a sleeping processor's speed
	samples := make([]float64, calibrationSamples)
	for i := range samples {
		from, _ := process.ThreadCPU()
		kept += spin(calibrationRounds)
		to, ok := process.ThreadCPU()
		if !ok || to <= from {
			return 0, errors.New("burn: this system does not tell the CPU time of a thread, by which rounds are timed")
		}
		samples[i] = float64(to-from) / calibrationRounds
	}
	runtime.KeepAlive(kept) // or the compiler drops the work
	slices.Sort(samples)
	return samples[calibrationSamples/2], nil
}

// spend burns. The result is of no use but keeps the compiler from dropping the work.
func (b burn) spend() {
	if b.rounds == 0 {
		return
	}
	// Asking for the time is a system call, after which the goroutine may go on with
	// another thread, whose clock it would read.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, _ := process.ThreadCPU()
	if spin(b.rounds) == 0 {
		runtime.Gosched() // in one of 2^64 cases
	}
	if to, ok := process.ThreadCPU(); ok && to > from {
		b.spent.Add(int64(to - from))
	}
}

// spin takes n rounds of a linear congruential generator (Knuth's MMIX). Each waits for
// the one before, which leaves most of a processor idle: what else runs on it, a
// sibling thread say, makes little difference to how long a round takes.
//
//go:noinline
func spin(n int64) uint64 {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
