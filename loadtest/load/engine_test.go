package load

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
)

func TestClosedUsersSendOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: afterDelay(100 * time.Millisecond)}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantVUs, VUs: 7, Duration: time.Second, Warmup: 2 * time.Second}), server)

		want := Requests{Planned: 70, Sent: 70, Completed: 70, OK: 70}
		if diff := cmp.Diff(want, s.Requests); diff != "" {
			t.Error(diff)
		}
		near(t, "requests at the server, warm-up too", float64(server.seen.Load()), 210, 0)
		near(t, "throughput", s.Throughput, 70, 0)
		near(t, "mean", s.ResponseTime.Mean, 100, 0)
		near(t, "body bytes", float64(s.BodyBytes), 140, 0)
	})
}

func TestRampUpStartsUsersEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		server := &pipes{script: func(int64) string {
			mu.Lock()
			starts = append(starts, time.Since(begin))
			mu.Unlock()
			time.Sleep(time.Minute)
			return answer200
		}}
		loadPipes(t, t.Context(), profile(Profile{Executor: ConstantVUs, VUs: 4, RampUp: 2 * time.Second, Duration: 3 * time.Second}), server)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(starts)
		want := []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSharedIterationsSendExactlyThatMany(t *testing.T) {
	for _, tt := range []struct {
		name             string
		p                Profile
		sent, dropped    int64
		seconds          float64
		atServer, opened int64
	}{
		{"to the end", Profile{VUs: 8, Iterations: 1001}, 1001, 0, 12.6, 1001, 8},
		{"warm-up takes none", Profile{VUs: 8, Iterations: 80, Warmup: time.Second}, 80, 0, 1, 160, 8},
		{"more users than requests", Profile{VUs: 8, Iterations: 3}, 3, 0, .1, 3, 3},
		{"bounded by the duration", Profile{VUs: 8, Iterations: 1000, Duration: time.Second}, 80, 920, 1, 80, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.p.Executor = SharedIterations
				server := &pipes{script: afterDelay(100 * time.Millisecond)}
				_, s := loadPipes(t, t.Context(), profile(tt.p), server)
				near(t, "sent", float64(s.Requests.Sent), float64(tt.sent), 0)
				near(t, "dropped", float64(s.Requests.Dropped), float64(tt.dropped), 0)
				near(t, "seconds", s.Seconds, tt.seconds, 1e-6)
				near(t, "at the server", float64(server.seen.Load()), float64(tt.atServer), 0)
				near(t, "opened", float64(s.ConnectionsOpened), float64(tt.opened), 0)
			})
		})
	}
}

func TestUsersWhoseTurnNeverComesEndWithTheLastIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		loadPipes(t, t.Context(), profile(Profile{Executor: SharedIterations, VUs: 2, Iterations: 10, RampUp: time.Hour}), &pipes{script: afterDelay(time.Second)})
		near(t, "seconds", time.Since(begin).Seconds(), 10, 0)
	})
}

// A user whose place in the ramp-up lies beyond the end is not awaited.
func TestUsersWhoseTurnNeverComesEndWithTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := profile(Profile{Executor: SharedIterations, VUs: 2, Iterations: 1000, RampUp: 20 * time.Second, Duration: 2 * time.Second})
		_, s := loadPipes(t, t.Context(), p, &pipes{script: afterDelay(100 * time.Millisecond)})
		near(t, "seconds taken", time.Since(begin).Seconds(), 2, 0)
		if diff := cmp.Diff(Requests{Planned: 1000, Sent: 20, Completed: 20, OK: 20, Dropped: 980}, s.Requests); diff != "" {
			t.Error(diff)
		}
	})
}

func TestArrivalsKeepTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: afterDelay(35 * time.Millisecond)}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(100), Warmup: time.Second, Duration: 10 * time.Second}), server)
		want := Requests{Planned: 1000, Sent: 1000, Completed: 1000, OK: 1000}
		if diff := cmp.Diff(want, s.Requests); diff != "" {
			t.Error(diff)
		}
		near(t, "at the server, warm-up too", float64(server.seen.Load()), 1100, 0)
		near(t, "throughput", s.Throughput, 100, 0)
		near(t, "lag p99", s.Generator.LagP99, 0, 0)
		// 100/s of 35 ms keep four users busy, and the engine makes no more.
		near(t, "opened", float64(s.ConnectionsOpened), 4, 0)
		if !s.Valid {
			t.Errorf("not valid: %q", s.Warnings)
		}
	})
}

// LD02: five users carry 50/s of the 500/s that are due, then 5000/s.
func TestTooFewUsersIsSaidAndNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var firstHalf atomic.Int64
		server := &pipes{script: func(int64) string {
			if time.Since(begin) < 5*time.Second {
				firstHalf.Add(1)
				time.Sleep(100 * time.Millisecond)
			} else {
				time.Sleep(time.Millisecond)
			}
			return answer200
		}}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(500), VUs: 5, Duration: 10 * time.Second}), server)
		near(t, "planned", float64(s.Requests.Planned), 5000, 0)
		near(t, "offered", s.Offered, 500, 0)
		near(t, "sent in the first half", float64(firstHalf.Load()), 250, 0)
		near(t, "sent", float64(s.Requests.Sent), 5000, 0)
		near(t, "waited", float64(s.Generator.Waited), 2800, 100)
		near(t, "lag p99, ms", s.Generator.LagP99, 4400, 200)
		if s.Valid || !strings.Contains(strings.Join(s.Warnings, "\n"), "waited for one of 5 users") {
			t.Errorf("valid = %v, warnings %q", s.Valid, s.Warnings)
		}
	})
}

// Two users of 1 s carry 2/s of the 10/s that are due for 10 s. What waited does not
// have less time for its answer: the target is not to blame for our line.
func TestArrivalsThatCannotStartAreDropped(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		longest float64 // s, of any response: waiting for a user, then the answer
	}{
		{"at their timeout", 3 * time.Second, 3.5},
		{"at the window's end", time.Hour, 8.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				server := &pipes{script: afterDelay(time.Second)}
				_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(10), VUs: 2, Duration: 10 * time.Second, Timeout: tt.timeout}), server)
				if diff := cmp.Diff(Requests{Planned: 100, Sent: 20, Completed: 20, OK: 20, Dropped: 80}, s.Requests); diff != "" {
					t.Error(diff)
				}
				near(t, "at the server", float64(server.seen.Load()), 20, 0)
				near(t, "seconds taken", time.Since(begin).Seconds(), 10.1, 0)
				near(t, "longest, s", s.ResponseTime.Max/1000, tt.longest, .5)
				if s.Valid {
					t.Error("valid, although most of the load was dropped")
				}
			})
		})
	}
}

func TestWarmupArrivalsThatAreDroppedCountNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := loadPipes(t, t.Context(), profile(Profile{
			Executor: ConstantArrivalRate, Rate: perSecond(10), VUs: 2, Warmup: 5 * time.Second, Duration: 5 * time.Second, Timeout: time.Second,
		}), &pipes{script: afterDelay(time.Second)})
		near(t, "planned", float64(s.Requests.Planned), 50, 0)
		near(t, "dropped", float64(s.Requests.Dropped), 40, 2)
	})
}

// lateWaker is a pacer on a machine that has no time for it.
type lateWaker struct {
	sleepWaker
	late time.Duration
}

func (w lateWaker) wait(t time.Duration) { w.sleepWaker.wait(t + w.late) }

func TestNothingStartsAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Target{URL: "http://pipe/"}.prepare(profile(Profile{}))
		if err != nil {
			t.Fatal(err)
		}
		server := &pipes{script: afterDelay(time.Millisecond)}
		t.Cleanup(server.running.Wait)
		e := newEngine(m, profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(1), Duration: 3200 * time.Millisecond}), server.dial)
		err = e.run(t.Context(), func(e *engine) (waker, error) { return lateWaker{sleepWaker{e}, 2500 * time.Millisecond}, nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Due at 0, 1, 2 and 3 s; the pacer comes at 0 and at 3.5 s.
		s := e.summary()
		balanced(t, s)
		if diff := cmp.Diff(Requests{Planned: 4, Sent: 1, Completed: 1, OK: 1, Dropped: 3}, s.Requests); diff != "" {
			t.Error(diff)
		}
	})
}

// What comes in the window counts, whenever it was due, and nothing else: twenty users
// who wait a second each cannot see more than twenty answers a second.
func TestRatesCountTheAnswersOfTheirTime(t *testing.T) {
	bad := func(d time.Duration) script {
		return func(i int64) string {
			time.Sleep(d)
			if i%2 == 0 {
				return answer503
			}
			return answer200
		}
	}
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name                         string
		p                            Profile
		server                       script
		seconds, throughput, goodput float64
	}{
		{"closed, the last of three rounds late", Profile{Executor: ConstantVUs, VUs: 20, Duration: 2500 * ms}, afterDelay(s), 2.5, 16, 16},
		{"closed, the second of two late", Profile{Executor: ConstantVUs, VUs: 10, Duration: 4 * s}, afterDelay(3 * s), 4, 2.5, 2.5},
		{"closed, the only one late", Profile{Executor: ConstantVUs, VUs: 10, Duration: 2 * s}, afterDelay(3 * s), 3, 10. / 3, 10. / 3},
		{"closed, behind a warm-up", Profile{Executor: ConstantVUs, VUs: 20, Warmup: 1500 * ms, Duration: 4 * s}, afterDelay(s), 4, 20, 20},
		{"closed, half bad", Profile{Executor: ConstantVUs, VUs: 20, Duration: 2500 * ms}, bad(s), 2.5, 16, 8},
		{"shared and bounded", Profile{Executor: SharedIterations, VUs: 20, Iterations: 1000, Duration: 2500 * ms}, afterDelay(s), 2.5, 16, 16},
		{"shared to the end", Profile{Executor: SharedIterations, VUs: 20, Iterations: 60}, afterDelay(s), 3, 20, 20},
		{"ramping", Profile{Executor: RampingVUs, Start: users(20), Stages: []Stage{{users(20), 2500 * ms}}}, afterDelay(s), 2.5, 16, 16},
		{"ramping, behind a warm-up", Profile{Executor: RampingVUs, Start: users(20), Warmup: 1500 * ms, Stages: []Stage{{users(20), 4 * s}}}, afterDelay(s), 4, 20, 20},
		{"open, the last late", Profile{Executor: ConstantArrivalRate, Rate: perSecond(100), VUs: 1000, Timeout: 60 * s, Duration: 4 * s}, afterDelay(1900 * ms), 4, 52.75, 52.75},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, got := loadPipes(t, t.Context(), profile(tt.p), &pipes{script: tt.server})
				near(t, "seconds", got.Seconds, tt.seconds, 1e-9)
				near(t, "throughput", got.Throughput, tt.throughput, 1e-9)
				near(t, "goodput", got.Goodput, tt.goodput, 1e-9)
				for _, step := range got.Steps { // the only one there is
					near(t, "throughput of the stage", step.Throughput, tt.throughput, 1e-9)
					near(t, "goodput of the stage", step.Goodput, tt.goodput, 1e-9)
				}
			})
		})
	}
}

// LD03.
func TestRunEndsWithinItsTimeout(t *testing.T) {
	for _, tt := range []struct {
		timeout   time.Duration
		want      Requests
		errors    map[string]int64
		ends      float64 // s
		perSecond float64
	}{
		// Three rounds of ten: two time out within the window, one is cut.
		{time.Second, Requests{Planned: 30, Sent: 30, Failed: 30}, map[string]int64{"timeout": 20, "cut": 10}, 4, 0},
		{15 * time.Second, Requests{Planned: 10, Sent: 10, Completed: 10, OK: 10}, map[string]int64{}, 10, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			// A hair more than a second, so that the third round is in flight at
			// the end and not about to start.
			server := &pipes{script: afterDelay(10 * time.Second)}
			p := profile(Profile{Executor: ConstantVUs, VUs: 10, Duration: 3*time.Second - time.Millisecond, Timeout: tt.timeout})
			_, s := loadPipes(t, t.Context(), p, server)
			near(t, "seconds taken", time.Since(begin).Seconds(), tt.ends, 1)
			if time.Since(begin) > p.Duration+p.Timeout {
				t.Errorf("took %v", time.Since(begin))
			}
			if diff := cmp.Diff(tt.want, s.Requests); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.errors, s.Errors); diff != "" {
				t.Error(diff)
			}
			near(t, "throughput", s.Throughput, tt.perSecond, 0)
			if s.Requests.Failed > 0 {
				near(t, "age of the cut, ms", s.ResponseTime.Max, 1000, 0)
			}
		})
	}
}

// LD06: 60 % refuse in 1 ms, 20 % answer in 300 ms, 20 % never.
func TestQuickErrorsAndTimeoutsBendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: func(i int64) string {
			switch i % 5 {
			case 0:
				time.Sleep(300 * time.Millisecond)
				return answer200
			case 1:
				return ""
			}
			time.Sleep(time.Millisecond)
			return answer503
		}}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: SharedIterations, VUs: 10, Iterations: 500, Timeout: time.Second}), server)
		if diff := cmp.Diff(Requests{Planned: 500, Sent: 500, Completed: 400, OK: 100, Failed: 400}, s.Requests); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"status": 300, "timeout": 100}, s.Errors); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"200": 100, "503": 300}, s.Statuses); diff != "" {
			t.Error(diff)
		}
		near(t, "p50 of ok, ms", *s.OKResponseTime.P50, 300, .3)
		// 20 % have a time, 20 % are longer than a second, 60 % have none ever.
		near(t, "p50, ms", *s.ResponseTime.P50, 1000, 0)
		near(t, "p99, ms", *s.ResponseTime.P99, 1000, 0)
		if diff := cmp.Diff([]string{"mean", "max", "p50", "p90", "p95", "p99"}, s.ResponseTime.AtLeast); diff != "" {
			t.Error(diff)
		}
		near(t, "censored", float64(s.Censored), 100, 0)
		near(t, "goodput / throughput", s.Goodput/s.Throughput, .25, 1e-9)
	})
}

// What is turned away by a 503 with Retry-After is counted apart and is no part of the
// times; a 503 without it is an error like any other, and one that was asked for is ok.
func TestRejectedRequestsStandApart(t *testing.T) {
	const turnedAway = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: func(i int64) string {
			if i%2 == 0 {
				return turnedAway
			}
			time.Sleep(10 * time.Millisecond)
			return answer200
		}}
		p := profile(Profile{Executor: SharedIterations, VUs: 1, Iterations: 100})
		_, s := loadPipes(t, t.Context(), p, server)
		if diff := cmp.Diff(Requests{Planned: 100, Sent: 100, Completed: 100, OK: 50, Failed: 50, Rejected: 50}, s.Requests); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"rejected": 50}, s.Errors); diff != "" {
			t.Error(diff)
		}
		near(t, "p99, ms", *s.ResponseTime.P99, 10, .01)
		near(t, "mean, ms", s.ResponseTime.Mean, 10, .01)
		near(t, "mean service time, ms", s.ServiceTime.Mean, 10, .01)
		near(t, "goodput / throughput", s.Goodput/s.Throughput, .5, .01)
		if len(s.ResponseTime.AtLeast) > 0 {
			t.Errorf("bounds %v", s.ResponseTime.AtLeast)
		}

		server.script = func(int64) string { return answer503 }
		if _, s = loadPipes(t, t.Context(), p, server); s.Requests.Rejected != 0 || s.Errors["status"] != 100 {
			t.Errorf("503 alone: %+v, %v", s.Requests, s.Errors)
		}
	})
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	for _, p := range []Profile{
		{Executor: ConstantVUs, VUs: 10, Duration: time.Hour},
		{Executor: SharedIterations, VUs: 10, Iterations: 1e9},
		{Executor: ConstantArrivalRate, Rate: perSecond(10), VUs: 10, Duration: time.Hour},
	} {
		t.Run(p.Executor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5450*time.Millisecond)
				defer cancel()
				_, s := loadPipes(t, ctx, profile(p), &pipes{script: afterDelay(time.Second)})
				near(t, "seconds taken", time.Since(begin).Seconds(), 5.45, 0)
				near(t, "seconds", s.Seconds, 5.45, 0)
				near(t, "ok", float64(s.Requests.OK), 50, 5)
				near(t, "cut", float64(s.Errors["cut"]), 10, 0)
				near(t, "dropped", float64(s.Requests.Dropped), 0, 0)
				if !s.Interrupted {
					t.Error("it does not say that it was interrupted")
				}
			})
		})
	}
}

func TestInterruptDuringWarmupMeasuresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, s := loadPipes(t, ctx, profile(Profile{Executor: ConstantVUs, VUs: 2, Warmup: time.Minute, Duration: time.Minute}), &pipes{script: afterDelay(time.Second / 3)})
		if s.Valid || s.Requests.Sent != 0 || s.Seconds != 0 || s.ResponseTime != nil {
			t.Errorf("%+v", s)
		}
	})
}

func TestDeadTargetIsAResult(t *testing.T) {
	for _, p := range []Profile{
		{Executor: ConstantVUs, VUs: 3, Duration: time.Second},
		{Executor: ConstantArrivalRate, Rate: perSecond(300), Duration: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, err := Target{URL: "http://pipe/"}.prepare(profile(Profile{}))
			if err != nil {
				t.Fatal(err)
			}
			e := newEngine(m, profile(p), func(context.Context) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			})
			if err := e.run(t.Context(), sleepy, nil); err != nil {
				t.Fatal(err)
			}
			s := e.summary()
			balanced(t, s)
			// A closed user asks a hundred times a second, not a million.
			near(t, "refused", float64(s.Errors["refused"]), 300, 0)
			near(t, "failed", float64(s.Requests.Failed), 300, 0)
			if s.ErrorExamples["refused"] == "" {
				t.Error("no example of what was refused")
			}
		})
	}
}

func TestWithoutKeepAliveEachRequestConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: afterDelay(time.Millisecond)}
		p := profile(Profile{Executor: SharedIterations, VUs: 4, Iterations: 100})
		p.KeepAlive = false
		_, s := loadPipes(t, t.Context(), p, server)
		near(t, "ok", float64(s.Requests.OK), 100, 0)
		near(t, "opened", float64(s.ConnectionsOpened), 100, 0)
	})
}

// A slow answer inside a longer timeout lives through the deadline of the request
// before it on the same connection, and a timeout is exact all the same.
func TestDeadlinesAreThoseOfTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: func(i int64) string {
			if i == 3 {
				return ""
			}
			time.Sleep(700 * time.Millisecond)
			return answer200
		}}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: SharedIterations, VUs: 1, Iterations: 5, Timeout: time.Second}), server)
		near(t, "ok", float64(s.Requests.OK), 4, 0)
		near(t, "timeout", float64(s.Errors["timeout"]), 1, 0)
		near(t, "its age, ms", s.ResponseTime.Max, 1000, 0)
	})
}

func TestProgressIsReportedFourTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Target{URL: "http://pipe/"}.prepare(profile(Profile{}))
		if err != nil {
			t.Fatal(err)
		}
		server := &pipes{script: afterDelay(100 * time.Millisecond)}
		t.Cleanup(server.running.Wait)
		e := newEngine(m, profile(Profile{Executor: ConstantVUs, VUs: 1, Warmup: time.Second, Duration: time.Second}), server.dial)
		var seen []Progress
		err = e.run(t.Context(), sleepy, func(p Progress) { seen = append(seen, p) })
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) < 7 || len(seen) > 8 {
			t.Fatalf("%d reports in two seconds", len(seen))
		}
		first, last := seen[0], seen[6]
		if diff := cmp.Diff(Progress{Elapsed: 250 * time.Millisecond, Total: 2 * time.Second, Warmup: true}, first); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(Progress{Elapsed: 1750 * time.Millisecond, Total: 2 * time.Second, Done: 7, P99: 100 * time.Millisecond}, last); diff != "" {
			t.Error(diff)
		}
	})
}

func TestProfileRefusesWhatItsExecutorIgnores(t *testing.T) {
	whole := profile(Profile{
		VUs: 1, RampUp: time.Second, Iterations: 1, Rate: perSecond(1), Duration: time.Minute, Warmup: time.Second, Timeout: time.Second,
		Start: Level{Users: 1}, Stages: []Stage{{Level{Users: 2}, time.Second}}, Arrivals: Poisson, Objective: Objective{"p99": bound(t, "< 1s")},
		ThinkTime: time.Second,
	})
	for _, tt := range []struct {
		executor string
		p        Profile
		bad      []string
	}{
		{ConstantVUs, whole, []string{"start", "stages", "iterations", "rate", "arrivals", "objective"}},
		{RampingVUs, whole, []string{"vus", "ramp_up", "iterations", "rate", "arrivals", "objective", "duration"}},
		{SharedIterations, whole, []string{"start", "stages", "rate", "arrivals", "objective"}},
		{ConstantArrivalRate, whole, []string{"ramp_up", "start", "stages", "iterations", "objective", "think_time"}},
		{RampingArrivalRate, whole, []string{"ramp_up", "iterations", "rate", "objective", "duration", "think_time", "start", "stages[0].target"}},
		{MaxRateSearch, whole, []string{"ramp_up", "start", "stages", "iterations", "think_time"}},
		{ConstantVUs, DefaultProfile(), []string{"vus", "duration"}},
		{RampingVUs, DefaultProfile(), []string{"stages"}},
		{SharedIterations, DefaultProfile(), []string{"vus", "iterations"}},
		{ConstantArrivalRate, DefaultProfile(), []string{"rate", "duration"}},
		{RampingArrivalRate, DefaultProfile(), []string{"stages"}},
		{MaxRateSearch, DefaultProfile(), []string{"objective", "duration"}},
		{"constant-users", DefaultProfile(), []string{"executor"}},
		{ConstantArrivalRate, profile(Profile{Rate: perSecond(2e6), Duration: -1, Warmup: -1, Timeout: -1, VUs: -1}), []string{"timeout", "vus", "duration", "warmup", "rate"}},
		{ConstantVUs, profile(Profile{VUs: 2e6, Duration: 1, RampUp: 1}), []string{"vus", "ramp_up"}},
		{ConstantVUs, profile(Profile{VUs: 1, Duration: 1, ThinkDistribution: Exponential}), []string{"think_distribution"}},
		{ConstantArrivalRate, profile(Profile{Rate: perSecond(1e5), Duration: time.Hour, Arrivals: Poisson}), []string{"arrivals"}},
		{RampingVUs, profile(Profile{Stages: []Stage{{Level{Rate: perSecond(1)}, 0}, {Level{Users: -1}, -1}}, Warmup: 1}),
			[]string{"stages[0].target", "stages[1].target", "stages[1].duration", "stages", "warmup"}},
	} {
		tt.p.Executor = tt.executor
		var bad []string
		for _, p := range conf.Problems(tt.p.Validate()) {
			bad = append(bad, p.Path)
		}
		if diff := cmp.Diff(tt.bad, bad); diff != "" {
			t.Errorf("%s: %s", tt.executor, diff)
		}
	}
}

func TestRunRefusesAShareOfSaturation(t *testing.T) {
	p := profile(Profile{Executor: ConstantArrivalRate, Rate: conf.Rate{OfSaturation: .45}, Duration: time.Second})
	_, err := Run(t.Context(), Target{URL: "http://127.0.0.1:1/"}, p, nil)
	if ps := conf.Problems(err); len(ps) != 1 || ps[0].Path != "rate" {
		t.Errorf("%v", err)
	}
}

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want class
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, refused},
		{&net.OpError{Op: "dial", Err: syscall.EADDRNOTAVAIL}, ports},
		{&net.OpError{Op: "dial", Err: syscall.EMFILE}, descriptors},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, reset},
		{context.DeadlineExceeded, timeout},
		{handshakeError{context.DeadlineExceeded}, timeout},
		{handshakeError{errors.New("unknown authority")}, tlsFailure},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, otherwise},
		{errInterrupted, cut},
		{protocolError("x"), protocol},
	} {
		if got := classify(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func bound(t *testing.T, text string) (b Bound) {
	t.Helper()
	if err := b.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return b
}
