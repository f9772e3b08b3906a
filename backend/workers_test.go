package backend

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/internal/conf"
)

// serveAt sends one request to s for each arrival and returns when each was
// answered, all from now.
func serveAt(t *testing.T, s *service, arrivals ...time.Duration) []time.Duration {
	t.Helper()
	start := time.Now()
	done := make([]time.Duration, len(arrivals))
	var wg sync.WaitGroup
	for i, at := range arrivals {
		wg.Go(func() {
			time.Sleep(at)
			ask(t, s, newInbound("GET", "/product", "", ""))
			done[i] = time.Since(start)
		})
	}
	wg.Wait()
	return done
}

// ms gives times in milliseconds.
func ms(ns ...int) []time.Duration {
	ds := make([]time.Duration, len(ns))
	for i, n := range ns {
		ds[i] = time.Duration(n) * time.Millisecond
	}
	return ds
}

// One millisecond between arrivals makes their order certain.
func TestQueueingLaw(t *testing.T) {
	for _, tc := range []struct {
		name           string
		workers        int
		latency        int
		arrivals, want []time.Duration
	}{
		{"two workers, six requests", 2, 100, ms(0, 1, 2, 3, 4, 5), ms(100, 101, 200, 201, 300, 301)},
		{"one worker serves in order of arrival", 1, 10, ms(3, 2, 1, 0), ms(40, 30, 20, 10)},
		{"as many workers as requests", 3, 100, ms(0, 1, 2), ms(100, 101, 102)},
		{"unbounded", 0, 100, ms(0, 0, 0, 0, 0, 0, 0, 0), ms(100, 100, 100, 100, 100, 100, 100, 100)},
		{"a worker that was idle", 1, 10, ms(0, 50), ms(10, 60)},
		{"no latency", 1, 0, ms(0, 1, 2), ms(0, 1, 2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestService(t, func(c *Config) {
					c.MaxWorkers, c.Latency = tc.workers, constantly(time.Duration(tc.latency)*time.Millisecond)
				})
				if got := serveAt(t, s, tc.arrivals...); !slices.Equal(got, tc.want) {
					t.Errorf("arrivals %v: answered at %v, want %v", tc.arrivals, got, tc.want)
				}
			})
		})
	}
}

// N closed users of k workers with service time S wait N/k·S each, once the queue
// has formed, and get k/S together.
func TestQueueingLawClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, workers, rounds = 60, 20, 20
		const service, response = 100 * time.Millisecond, 300 * time.Millisecond
		s := newTestService(t, func(c *Config) { c.MaxWorkers, c.Latency = workers, constantly(service) })
		start := time.Now()
		var wg sync.WaitGroup
		for range users {
			wg.Go(func() {
				for round := range rounds {
					sent := time.Now()
					ask(t, s, newInbound("GET", "/product", "", ""))
					if took := time.Since(sent); round > 0 && took != response {
						t.Errorf("round %d took %v, want %v", round, took, response)
					}
				}
			})
		}
		wg.Wait()
		if took, want := time.Since(start), users*rounds*service/workers; took != want {
			t.Errorf("all took %v, want %v", took, want)
		}
	})
}

func TestWorkerIsHeldUntilTheAnswerIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.MaxWorkers = 1 })
		first := s.Serve(t.Context(), newInbound("GET", "/product", "", ""))
		answered := make(chan struct{})
		go func() {
			ask(t, s, newInbound("GET", "/product", "", ""))
			close(answered)
		}()
		synctest.Wait()
		if busy, queued := s.workers.load(); busy != 1 || queued != 1 {
			t.Errorf("busy %d, queued %d; want 1, 1", busy, queued)
		}
		select {
		case <-answered:
			t.Error("the second request was answered while the first one's answer was being written")
		default:
		}
		first.End(nil)
		first.End(nil) // twice gives back one worker
		<-answered
		if busy, queued := s.workers.load(); busy != 0 || queued != 0 {
			t.Errorf("at the end: busy %d, queued %d", busy, queued)
		}
	})
}

func TestWhoGivesUpLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.MaxWorkers, c.Latency = 1, "100ms" })
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { ask(t, s, newInbound("GET", "/product", "", "")) })
		synctest.Wait()
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			if resp := s.Serve(ctx, newInbound("GET", "/product", "", "")); resp != nil || time.Since(start) != 30*time.Millisecond {
				t.Errorf("the one who gave up got %v after %v", resp, time.Since(start))
			}
			if busy, queued := s.workers.load(); busy != 1 || queued != 1 {
				t.Errorf("busy %d, queued %d; want 1, 1", busy, queued)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			ask(t, s, newInbound("GET", "/product", "", ""))
			if took := time.Since(start); took != 200*time.Millisecond {
				t.Errorf("the next one was answered after %v, want 200ms", took)
			}
		})
		wg.Wait()
		if busy, queued := s.workers.load(); busy != 0 || queued != 0 || s.metrics.inFlight.Load() != 0 {
			t.Errorf("at the end: busy %d, queued %d, in flight %d", busy, queued, s.metrics.inFlight.Load())
		}
	})
}

// A worker handed to somebody who gives up at that very moment must go on to the
// next: the two cases of enter's select are equally ready.
func TestWorkerHandedToOneWhoLeavesGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			w := workers{limit: 1}
			if err := w.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if w.enter(ctx) == nil {
					w.leave()
				}
			})
			synctest.Wait()
			w.mu.Lock() // both happen before the waiter can run
			cancel()
			w.pass()
			w.mu.Unlock()
			wg.Wait()
			if busy, queued := w.load(); busy != 0 || queued != 0 {
				t.Fatalf("busy %d, queued %d", busy, queued)
			}
		}
	})
}

func TestCallerWhoLeavesDuringTheLatencyFreesTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.MaxWorkers, c.Latency = 1, "1h" })
		for _, target := range []string{"/product", "/hello/60"} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			resp := s.Serve(ctx, newInbound("GET", target, "", ""))
			cancel()
			if resp != nil || time.Since(start) != time.Second {
				t.Errorf("%s: %v after %v", target, resp, time.Since(start))
			}
			if busy, _ := s.workers.load(); busy != 0 {
				t.Errorf("%s: the worker is still busy", target)
			}
		}
	})
}

func TestLatencyIsForProductEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 70 * time.Millisecond
		s := newTestService(t, func(c *Config) { c.Latency, c.MaxUpload = constantly(latency), conf.MiB })
		for _, tc := range []struct {
			method, target, body string
			want                 time.Duration
		}{
			{"GET", "/product", "", latency},
			{"GET", "/products", "", latency},
			{"GET", "/product/1?price=1", "", latency},
			{"GET", "/product/1", "", latency}, // a refusal takes as long
			{"POST", "/postProduct?price=1", "", latency},
			{"POST", "/postProduct2", "{}", latency},
			{"POST", "/bookTickets", "[]", latency},
			{"GET", "/hello/20ms", "", 20 * time.Millisecond},
			{"GET", "/hello/2", "", 2 * time.Second},
			{"GET", "/healthz", "", 0},
			{"GET", "/metrics", "", 0},
			{"GET", "/nowhere", "", 0},
		} {
			start := time.Now()
			ask(t, s, newInbound(tc.method, tc.target, "", tc.body))
			if took := time.Since(start); took != tc.want {
				t.Errorf("%s %s took %v, want %v", tc.method, tc.target, took, tc.want)
			}
		}
		start := time.Now()
		if _, a := upload(t, s, newForm(t, filePart("a", "x"))); a.Status != 200 || time.Since(start) != latency {
			t.Errorf("upload: %d after %v", a.Status, time.Since(start))
		}
	})
}

// Watching works while all workers are stuck.
func TestOwnEndpointsNeedNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.MaxWorkers = 1 })
		stuck := s.Serve(t.Context(), newInbound("GET", "/product", "", ""))
		for _, target := range []string{"/healthz", "/metrics"} {
			if got := ask(t, s, newInbound("GET", target, "", "")); got.Status != 200 {
				t.Errorf("%s: %d", target, got.Status)
			}
		}
		stuck.End(nil)
	})
}
