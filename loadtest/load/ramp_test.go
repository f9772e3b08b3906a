package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Four users come one a second, stay, and leave one a second. 100 ms an answer, so
// the area below the line times ten is the number of requests.
func TestRampingUsersFollowTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		server := &pipes{script: afterDelay(100 * time.Millisecond)}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: RampingVUs, Stages: []Stage{
			{users(4), 4 * time.Second}, {users(4), 2 * time.Second}, {users(0), 4 * time.Second},
		}}), server)
		near(t, "seconds taken", time.Since(begin).Seconds(), 10, .1)
		near(t, "sent", float64(s.Requests.Sent), 280, 0) // users at work for 10+8+6+4 s
		near(t, "opened", float64(s.ConnectionsOpened), 4, 0)
		if len(s.Steps) != 3 {
			t.Fatalf("%+v", s.Steps)
		}
		for i, want := range []struct {
			from, to string
			sent     int64
		}{{"0", "4", 100}, {"4", "4", 80}, {"4", "0", 100}} {
			got := s.Steps[i]
			if got.From != want.from || got.To != want.to || got.Requests.Sent != want.sent {
				t.Errorf("stage %d: %+v", i, got)
			}
		}
	})
}

// A user whose shift ends finishes its request, and its connection closes.
func TestLeavingUsersFinishTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: afterDelay(700 * time.Millisecond)}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: RampingVUs, Start: users(2), Stages: []Stage{
			{users(2), time.Second}, {users(0), 0}, {users(0), time.Second}, {users(2), 0}, {users(2), time.Second},
		}}), server)
		// Two users, two shifts of a second, each with room to begin two.
		if diff := cmp.Diff(Requests{Planned: 8, Sent: 8, Completed: 8, OK: 8}, s.Requests); diff != "" {
			t.Error(diff)
		}
		near(t, "opened", float64(s.ConnectionsOpened), 4, 0)
	})
}

func TestStepsOfALadderHaveTheirOwnResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// One worker of 10 ms carries 100/s; the third step asks for 200.
		worker := make(chan struct{}, 1)
		server := &pipes{script: func(int64) string {
			worker <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-worker
			return answer200
		}}
		p := profile(Profile{Executor: RampingArrivalRate, Start: at(50), Warmup: time.Second, Stages: []Stage{
			{at(50), 2 * time.Second}, {at(100), 0}, {at(100), 2 * time.Second}, {at(200), 0}, {at(200), 2 * time.Second},
		}})
		_, s := loadPipes(t, t.Context(), p, server)
		if len(s.Steps) != 3 {
			t.Fatalf("%+v", s.Steps)
		}
		for i, want := range []struct{ at, offered, throughput, p50 float64 }{
			{0, 50, 50, 10}, {2, 100, 100, 10}, {4, 200, 100, 1005},
		} {
			got := s.Steps[i]
			near(t, "at", got.At, want.at, 0)
			near(t, "seconds", got.Seconds, 2, 0)
			near(t, "offered", got.Offered, want.offered, .5)
			near(t, "throughput", got.Throughput, want.throughput, 2)
			near(t, "p50, ms", *got.ResponseTime.P50, want.p50, want.p50/50)
		}
		near(t, "planned", float64(s.Requests.Planned), 700, 0)
	})
}

// Zero think has X = N/R; think time Z makes it N/(R+Z), whatever its distribution.
func TestThinkTimeObeysTheInteractiveLaw(t *testing.T) {
	for _, tt := range []struct {
		distribution string
		tolerance    float64
	}{{Constant, 0}, {Exponential, 3}} { // ~ 10,000 draws: 1 %, three standard errors
		synctest.Test(t, func(t *testing.T) {
			p := profile(Profile{
				Executor: ConstantVUs, VUs: 100, ThinkTime: 900 * time.Millisecond, ThinkDistribution: tt.distribution,
				Warmup: 10 * time.Second, Duration: 100 * time.Second,
			})
			_, s := loadPipes(t, t.Context(), p, &pipes{script: afterDelay(100 * time.Millisecond)})
			near(t, tt.distribution+" throughput", s.Throughput, 100, tt.tolerance)
			near(t, "mean", s.ResponseTime.Mean, 100, 1e-6)
			near(t, "lag", s.Generator.LagP99, 0, 0)
		})
	}
}

// Long thoughts do not hold up the end.
func TestThinkersLeaveAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		loadPipes(t, t.Context(), profile(Profile{Executor: ConstantVUs, VUs: 2, ThinkTime: time.Hour, Duration: time.Second}),
			&pipes{script: afterDelay(100 * time.Millisecond)})
		near(t, "seconds taken", time.Since(begin).Seconds(), 1, 0)
	})
}

// LD03 with a grace of its own: shorter than the timeout, longer than an answer.
func TestGracefulStopBoundsTheWait(t *testing.T) {
	for _, tt := range []struct {
		grace time.Duration
		want  Requests
		cut   int64
		ends  float64
	}{
		{time.Second, Requests{Planned: 10, Sent: 10, Failed: 10}, 10, 4},
		{9 * time.Second, Requests{Planned: 10, Sent: 10, Completed: 10, OK: 10}, 0, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			p := profile(Profile{Executor: ConstantVUs, VUs: 10, Duration: 3 * time.Second, Timeout: time.Minute, GracefulStop: tt.grace})
			_, s := loadPipes(t, t.Context(), p, &pipes{script: afterDelay(10 * time.Second)})
			if diff := cmp.Diff(tt.want, s.Requests); diff != "" {
				t.Error(diff)
			}
			near(t, "cut", float64(s.Errors["cut"]), float64(tt.cut), 0)
			near(t, "seconds taken", time.Since(begin).Seconds(), tt.ends, 0)
		})
	}
}

func TestInterruptedStagesHaveTheResultsUntilThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, s := loadPipes(t, ctx, profile(Profile{Executor: RampingArrivalRate, Start: at(100), Stages: []Stage{
			{at(100), time.Second}, {at(100), time.Second}, {at(100), time.Second},
		}}), &pipes{script: afterDelay(time.Millisecond)})
		if len(s.Steps) != 2 {
			t.Fatalf("%+v", s.Steps)
		}
		near(t, "seconds of the second", s.Steps[1].Seconds, .5, 1e-9)
		near(t, "offered in the second", s.Steps[1].Offered, 100, 2)
	})
}

// The series shows each second as it was, and its counts add up to the whole.
func TestSeriesShowsTheStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(100), Warmup: 10 * time.Second, Duration: 10 * time.Second}),
			&pipes{script: stalling(time.Now())})
		near(t, "interval", s.Series.Interval, 1, 0)
		var sent, ok int64
		for i, p := range s.Series.Points {
			near(t, "at", p.At, float64(i), 0)
			sent, ok = sent+p.Sent, ok+p.OK
			switch i {
			case 4: // held until the second is over
				near(t, "ok in the stall", float64(p.OK), 0, 0)
			case 5:
				near(t, "ok after the stall", float64(p.OK), 200, 0)
				near(t, "max after the stall", *p.OKMax, 1001, 0)
			case 6:
				near(t, "ok", float64(p.OK), 100, 0)
				near(t, "p99", *p.OKP99, 1, .05)
			}
			if i < 10 {
				near(t, "sent", float64(p.Sent), 100, 0)
			}
		}
		near(t, "sent in all", float64(sent), 1000, 0)
		near(t, "ok in all", float64(ok), 1000, 0)
	})
}

func TestLongSeriesGrowCoarser(t *testing.T) {
	s := series{interval: time.Second}
	for i := range 5000 {
		s.record(time.Duration(i)*time.Second, time.Duration(i)*time.Second, time.Millisecond, fine)
	}
	if s.interval != 16*time.Second || len(s.slots) != 313 {
		t.Errorf("%d slots of %v", len(s.slots), s.interval)
	}
	ps := s.points()
	if ps[0].OK != 16 || ps[312].OK != 8 || ps[312].At != 4992 {
		t.Errorf("%+v", ps[312])
	}
	other := series{interval: time.Second}
	other.record(0, 5*time.Second, time.Second, timeout)
	s.merge(&other)
	if s.slots[0].sent != 17 || s.slots[0].failed != 1 {
		t.Errorf("%+v", s.slots[0])
	}
}
