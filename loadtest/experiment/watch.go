package experiment

import (
	"context"
	"time"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// look is the machine at one moment, and what of it was ours.
type look struct {
	host sut.Host
	ours time.Duration
	ok   bool
}

func (r *run) look() look {
	host, err := r.options.Host()
	if err != nil {
		return look{}
	}
	ours, err := r.launcher.CPU()
	return look{host, ours, err == nil}
}

// readings are those of the machine since then.
func (r *run) readings(from look) map[string]float64 {
	rs := r.look().since(from)
	r.foreign = rs[gate.Foreign]
	return rs
}

// since gives the readings of the machine between two looks: what the system does
// not tell is absent.
func (to look) since(from look) map[string]float64 {
	readings := map[string]float64{}
	all := to.host.All - from.host.All
	if !from.ok || !to.ok || all <= 0 {
		return readings
	}
	share := func(d time.Duration) float64 { return max(0, d.Seconds()/all.Seconds()) }
	readings[gate.Steal] = share(to.host.Stolen - from.host.Stolen)
	readings[gate.Foreign] = share(to.host.Busy - from.host.Busy - (to.ours - from.ours))
	if to.host.LocalPorts > 0 {
		readings[gate.Ports] = to.portsWaiting()
	}
	if from.host.Throttled != nil && to.host.Throttled != nil {
		readings[gate.Throttled] = float64(*to.host.Throttled - *from.host.Throttled)
	}
	return readings
}

// portsWaiting is the share of local ports that TIME_WAIT keeps from use.
func (l look) portsWaiting() float64 {
	return float64(l.host.TimeWait) / float64(max(1, l.host.LocalPorts))
}

// ofGenerator adds what a load generator says of itself. Its lag is no reading where
// requests had to wait for a user: all users were busy then because the gateway was
// slow, and a gate must not take away the trials in which an arm was slow.
func ofGenerator(readings map[string]float64, s *load.Summary) {
	if s.Requests.Planned > 0 {
		readings[gate.Unsent] = float64(s.Requests.Dropped) / float64(s.Requests.Planned)
	}
	if s.Generator.Waited == 0 {
		readings[gate.Lag] = s.Generator.LagP99
	}
	const minSpan = 1.0 // seconds: below, a burst is a large share
	if s.Generator.CPUShare > 0 && s.Seconds >= minSpan {
		readings[gate.GeneratorCPU] = s.Generator.CPUShare
	}
	readings[gate.OwnLimits] = ownLimits(s)
	if change, ok := halves(s); ok {
		readings[gate.Steady] = change
	}
	readings[gate.Tail] = float64(s.Requests.Sent / 100)
}

// halves is how much longer the typical response time of a window's second half is than
// that of its first, as a share of it; ok is false where one has no answers. A load that
// changes on purpose is told apart by the profile, not here. The series goes on after the
// window with what was late, which is no half of anything.
func halves(s *load.Summary) (change float64, ok bool) {
	points := s.Series.Points
	within := 0
	for within < len(points) && points[within].At+s.Series.Interval <= s.Seconds+1e-9 {
		within++
	}
	half := within / 2
	first, second := typical(points[:half]), typical(points[within-half:within])
	if first == 0 || second == 0 {
		return 0, false
	}
	return second/first - 1, true
}

// typical is the mean of the intervals' medians, each as heavy as its answers; 0 where
// there are none.
func typical(points []load.Point) float64 {
	var sum, n float64
	for _, p := range points {
		if p.OKP50 != nil {
			sum, n = sum+*p.OKP50*float64(p.OK), n+float64(p.OK)
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// ownLimits counts requests that failed because this machine ran out of descriptors
// or ports.
func ownLimits(s *load.Summary) float64 {
	return float64(s.Errors["descriptors"] + s.Errors["ports"])
}

// judge voids a trial whose readings forbid to use it.
func judge(t *result.Trial) {
	if reason, ok := gate.Void(*t); ok {
		void(t, reason)
	}
}

// What a calm machine has at most: shares of its CPU time and of its local ports.
const (
	calmForeign = 0.03
	calmPorts   = 0.5
)

// How long a trial waits for a calm machine, and all of them together.
const (
	longestPorts = 60 * time.Second       // as long as TIME_WAIT lasts
	longestOther = 5 * time.Second        // who is not done by then stays
	betweenLooks = 250 * time.Millisecond // fifty ticks of two processors, so that 3 % shows
	waitingShare = 0.10                   // of the time that the plan takes without it
)

// settle waits before a trial until the ports that the last one left in TIME_WAIT
// are free and whoever else used the machine is done. It gives up in time: the
// gates see what it left. It takes no time that blocks will need.
func (r *run) settle(ctx context.Context) {
	last := r.look()
	foreign := r.foreign // of the trial before
	for began := time.Now(); ; {
		longest := longestOther
		if last.portsWaiting() > calmPorts {
			longest = longestPorts
		} else if !last.ok || foreign <= calmForeign {
			return
		}
		if time.Since(began) >= longest || r.patience <= 0 || r.clock.slack() < betweenLooks {
			r.warn("the machine was not calm when a trial began: other processes used it, or connections of the trials before kept their ports")
			return
		}
		started := time.Now()
		if !sleepUntil(ctx, started.Add(betweenLooks)) {
			return
		}
		r.patience -= time.Since(started)
		now := r.look()
		foreign = now.since(last)[gate.Foreign]
		last = now
	}
}

// patience is how long all trials together may wait for a calm machine.
func (p Plan) patience() time.Duration {
	return time.Duration(waitingShare * float64(p.time()))
}
