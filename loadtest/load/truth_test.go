package load

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stalling holds whatever arrives in the fifth second of each ten until that second
// is over, and takes 1 ms otherwise.
func stalling(begin time.Time) script {
	const period, from, to = 10 * time.Second, 4 * time.Second, 5 * time.Second
	return func(int64) string {
		if at := time.Since(begin) % period; from <= at && at < to {
			time.Sleep(to - at)
		}
		time.Sleep(time.Millisecond)
		return answer200
	}
}

// A server that stalls for a second in every ten must show as one. Whoever
// measures from the moment of sending with few connections sees a p99 of 1 ms
// where it is 901.
func TestResponseTimeOmitsNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		vus  int
		// The service time is the naive figure: with ten users it is what a
		// tool with ten connections would report.
		p95                     float64 // later with few users: they need 10 ms to catch up
		serviceMean, serviceP95 float64
		valid                   bool
	}{
		{"users enough", 0, 501, 51.5, 501, true},
		{"ten users", 10, 506, 10.5, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s := loadPipes(t, t.Context(), profile(Profile{
					Executor: ConstantArrivalRate, Rate: perSecond(100), VUs: tt.vus, Duration: 100 * time.Second,
				}), &pipes{script: stalling(time.Now())})

				near(t, "planned", float64(s.Requests.Planned), 10_000, 0)
				near(t, "ok", float64(s.Requests.OK), 10_000, 0)
				near(t, "mean", s.ResponseTime.Mean, 51.5, 1)
				near(t, "p50", *s.ResponseTime.P50, 1, .05)
				near(t, "p95", *s.ResponseTime.P95, tt.p95, 5)
				near(t, "p99", *s.ResponseTime.P99, 901, 9)
				near(t, "share above 10 ms", shareAbove(e, 10*time.Millisecond), .10, .002)
				near(t, "service mean", s.ServiceTime.Mean, tt.serviceMean, 1)
				near(t, "service p95", *s.ServiceTime.P95, tt.serviceP95, 5)
				if s.Valid != tt.valid {
					t.Errorf("valid = %v, warnings %q", s.Valid, s.Warnings)
				}
			})
		})
	}
}

func shareAbove(e *engine, limit time.Duration) float64 {
	var above, all int64
	for _, s := range e.shards {
		for _, d := range []*distribution{&s.response.ok, &s.response.censored} {
			if d.h == nil {
				continue
			}
			for _, bar := range d.h.Distribution() {
				all += bar.Count
				if bar.From > int64(limit) {
					above += bar.Count
				}
			}
		}
	}
	return float64(above) / float64(all)
}

// With m workers of S each and N ≥ m users that never think, throughput is m/S and
// the mean response time N·S/m, whatever the order of service.
func TestClosedUsersObeyTheQueueingLaw(t *testing.T) {
	const workers, service = 200, 100 * time.Millisecond
	for _, tt := range []struct {
		users      int
		bounded    bool
		throughput float64
		mean       float64 // ms
	}{
		{200, true, 2000, 100},
		{500, true, 2000, 250},
		{1000, true, 2000, 500},
		{500, false, 5000, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			tokens := make(chan struct{}, workers)
			server := &pipes{script: func(int64) string {
				if tt.bounded {
					tokens <- struct{}{}
					defer func() { <-tokens }()
				}
				time.Sleep(service)
				return answer200
			}}
			_, s := loadPipes(t, t.Context(), profile(Profile{
				Executor: ConstantVUs, VUs: tt.users, Warmup: time.Second, Duration: 2 * time.Second,
			}), server)
			near(t, "throughput", s.Throughput, tt.throughput, tt.throughput/100)
			near(t, "mean", s.ResponseTime.Mean, tt.mean, tt.mean/100)
			near(t, "seconds", s.Seconds, 2, 0)
			near(t, "connections", float64(s.ConnectionsOpened), float64(tt.users), 0)
		})
	}
}

// One worker of 10 ms under open load. Constant arrivals below saturation never
// queue; Poisson arrivals at a load of r wait for r/(2(1−r)) of a service time on
// average (M/D/1). Three standard errors.
func TestOpenLoadObeysTheQueueingLaw(t *testing.T) {
	for _, tt := range []struct {
		name           string
		arrivals       string
		rate, duration float64 // per second, s
		mean, within   float64 // ms
	}{
		{"constant, half load", Constant, 50, 60, 10, 1e-6},
		{"poisson, half load", Poisson, 50, 60, 15, 3 * .021 * 15},
		{"poisson, 80 % load", Poisson, 80, 375, 30, 3 * .033 * 30},
	} {
		synctest.Test(t, func(t *testing.T) {
			worker := make(chan struct{}, 1)
			server := &pipes{script: func(int64) string {
				worker <- struct{}{}
				time.Sleep(10 * time.Millisecond)
				<-worker
				return answer200
			}}
			p := profile(Profile{
				Executor: ConstantArrivalRate, Rate: perSecond(tt.rate), Arrivals: tt.arrivals, Seed: 42,
				Warmup: 10 * time.Second, Duration: time.Duration(tt.duration * float64(time.Second)),
			})
			_, s := loadPipes(t, t.Context(), p, server)
			near(t, tt.name+": mean", s.ResponseTime.Mean, tt.mean, tt.within)
			near(t, tt.name+": ok", float64(s.Requests.OK), tt.rate*tt.duration, 0)
		})
	}
}

// A server that deals its latencies from a shuffled deck has known quantiles: those
// of the deck.
func TestQuantilesAreThoseOfTheDeck(t *testing.T) {
	const cards = 10_000
	exponential := make([]time.Duration, cards)
	for i := range exponential {
		u := (float64(i) + .5) / cards
		exponential[i] = time.Duration(-math.Log(1-u) * 50 * float64(time.Millisecond))
	}
	var atoms []time.Duration
	for _, a := range []struct{ ms, n int }{{10, 5000}, {20, 4000}, {100, 900}, {200, 90}, {400, 10}} {
		atoms = append(atoms, slices.Repeat([]time.Duration{time.Duration(a.ms) * time.Millisecond}, a.n)...)
	}
	for _, tt := range []struct {
		name                      string
		deck                      []time.Duration
		p50, p90, p99, p999, mean float64
	}{
		{"exponential of mean 50 ms", exponential, 34.65, 115.1, 230.1, 344.9, 50},
		{"atoms", atoms, 10, 20, 100, 200, 24.2},
	} {
		synctest.Test(t, func(t *testing.T) {
			deck := slices.Clone(tt.deck)
			rand.New(rand.NewPCG(42, 7)).Shuffle(cards, func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			server := &pipes{script: func(i int64) string { time.Sleep(deck[i%cards]); return answer200 }}
			_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(1000), Duration: 10 * time.Second}), server)
			x := s.ResponseTime
			near(t, tt.name+": ok", float64(s.Requests.OK), cards, 0)
			near(t, tt.name+": mean", x.Mean, tt.mean, tt.mean/1000)
			for _, q := range []struct {
				name      string
				got, want float64
			}{{"p50", *x.P50, tt.p50}, {"p90", *x.P90, tt.p90}, {"p99", *x.P99, tt.p99}, {"p99.9", *x.P999, tt.p999}} {
				near(t, tt.name+": "+q.name, q.got, q.want, q.want/100)
			}
		})
	}
}

// One request in a hundred vanishes and one in twenty is refused: the counts are
// exact, and what is not known of the quantiles is said.
func TestFaultsAreCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: func(i int64) string {
			switch {
			case i%100 == 50:
				return ""
			case i%20 == 7:
				return answer503
			}
			time.Sleep(20 * time.Millisecond)
			return answer200
		}}
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(500), Duration: 20 * time.Second, Timeout: time.Second}), server)
		if diff := cmp.Diff(Requests{Planned: 10_000, Sent: 10_000, Completed: 9900, OK: 9400, Failed: 600}, s.Requests); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"timeout": 95, "cut": 5, "status": 500}, s.Errors); diff != "" {
			t.Error(diff)
		}
		x := s.ResponseTime
		near(t, "p90", *x.P90, 20, .02)
		near(t, "p95, a bound", *x.P95, 1000, 1) // 94 % have a time
		if diff := cmp.Diff([]string{"mean", "max", "p95", "p99", "p99.9"}, x.AtLeast); diff != "" {
			t.Error(diff)
		}
		near(t, "p99 of ok", *s.OKResponseTime.P99, 20, .02)
	})
}

// A server that dies halfway and comes back: what was in flight and what came
// meanwhile failed, nothing else did, and the run ends on time.
func TestKilledServerIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		const died, back = 4*time.Second + 500*time.Microsecond, 6 * time.Second
		server := &pipes{script: afterDelay(10 * time.Millisecond)}
		p := profile(Profile{Executor: ConstantVUs, VUs: 10, Duration: 10 * time.Second})
		m, err := Target{URL: "http://pipe/"}.prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.running.Wait)
		e := newEngine(m, p, func(ctx context.Context) (net.Conn, error) {
			if at := time.Since(begin); died <= at && at < back {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return server.dial(ctx)
		})
		time.AfterFunc(died, server.kill)
		if err := e.run(t.Context(), sleepy, nil); err != nil {
			t.Fatal(err)
		}
		s := e.summary()
		balanced(t, s)
		// Ten were in flight, and then each user asked every 10 ms.
		if diff := cmp.Diff(map[string]int64{"reset": 10, "refused": 10 * 200}, s.Errors); diff != "" {
			t.Error(diff)
		}
		near(t, "ok", float64(s.Requests.OK), 10*(400+400), 0)
		near(t, "seconds taken", time.Since(begin).Seconds(), 10, .02)
	})
}
