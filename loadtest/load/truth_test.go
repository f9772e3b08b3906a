package load

import (
	"testing"
	"testing/synctest"
	"time"
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
