package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"gatebench/clients"
	"gatebench/gateway/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type upstream func(context.Context, *clients.Request) (*clients.Response, error)

func (u upstream) Do(ctx context.Context, r *clients.Request) (*clients.Response, error) {
	return u(ctx, r)
}
func (upstream) Close() error { return nil }

func good(context.Context, *clients.Request) (*clients.Response, error) {
	return clients.NewResponse(200, nil, nil), nil
}

// take sends a request that keeps its place until the function is called.
func take(t *testing.T, g *admission.Gate) func(error) {
	t.Helper()
	resp, err := g.Do(t.Context(), &clients.Request{})
	if err != nil {
		t.Fatalf("no place: %v", err)
	}
	return resp.End
}

func wantGauges(t *testing.T, g *admission.Gate, inUse int, pending int64) {
	t.Helper()
	if g.InUse() != inUse || g.Pending() != pending {
		t.Errorf("in use %d, pending %d; want %d, %d", g.InUse(), g.Pending(), inUse, pending)
	}
}

var size = admission.Settings{MaxConns: 2, MaxPending: 3, PendingTimeout: time.Second}

func TestAPlaceIsHeldUntilTheExchangeEnds(t *testing.T) {
	g := admission.New(size, upstream(good))
	one, two := take(t, g), take(t, g)
	wantGauges(t, g, 2, 0)
	one(nil)
	one(nil) // ending twice gives back one place
	wantGauges(t, g, 1, 0)
	two(errors.New("broke off"))
	wantGauges(t, g, 0, 0)
}

func TestNoPlaceIsLostOnAnErrorOrAPanic(t *testing.T) {
	fail := errors.New("made for the test")
	g := admission.New(size, upstream(func(_ context.Context, r *clients.Request) (*clients.Response, error) {
		if r.Method == "PANIC" {
			panic(fail)
		}
		return nil, fail
	}))
	if _, err := g.Do(t.Context(), &clients.Request{}); !errors.Is(err, fail) {
		t.Errorf("error %v, want the client's own", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = g.Do(t.Context(), &clients.Request{Method: "PANIC"})
	}()
	wantGauges(t, g, 0, 0)
}

func TestWaitersAreServedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		g := admission.New(admission.Settings{MaxConns: 1, MaxPending: 100, PendingTimeout: time.Minute},
			upstream(func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
				order = append(order, r.Target)
				return good(ctx, r)
			}))
		end := take(t, g)
		var wg sync.WaitGroup
		want := []string{""}
		for i := range 50 {
			target := string(rune('A' + i))
			want = append(want, target)
			wg.Go(func() {
				resp, err := g.Do(t.Context(), &clients.Request{Target: target})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				resp.End(nil)
			})
			synctest.Wait()
		}
		wantGauges(t, g, 1, 50)
		end(nil)
		wg.Wait()
		if !slices.Equal(order, want) {
			t.Errorf("served %q, want %q", order, want)
		}
		wantGauges(t, g, 0, 0)
	})
}

// A place that comes free belongs to who has waited longest, not to who happens to
// come by.
func TestANewcomerCannotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Settings{MaxConns: 1, MaxPending: 1, PendingTimeout: time.Minute}, upstream(good))
		end := take(t, g)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.Do(t.Context(), &clients.Request{}); err != nil {
				t.Errorf("the waiter: %v", err)
			}
		})
		synctest.Wait()
		end(nil)
		if _, err := g.Do(t.Context(), &clients.Request{}); err == nil {
			t.Error("a newcomer took the place")
		}
		wg.Wait()
	})
}

func TestExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(size, upstream(good))
		one, two := take(t, g), take(t, g)
		var waiters sync.WaitGroup
		start := time.Now()
		for range size.MaxPending {
			waiters.Go(func() {
				_, err := g.Do(t.Context(), &clients.Request{})
				if clients.KindOf(err) != clients.PoolExhausted || time.Since(start) != size.PendingTimeout {
					t.Errorf("after %v: %v; want pool_exhausted after %v", time.Since(start), err, size.PendingTimeout)
				}
			})
		}
		synctest.Wait()
		wantGauges(t, g, 2, 3)
		if _, err := g.Do(t.Context(), &clients.Request{}); clients.KindOf(err) != clients.PoolExhausted || time.Since(start) != 0 {
			t.Errorf("one too many: after %v: %v; want pool_exhausted at once", time.Since(start), err)
		}
		waiters.Wait()
		wantGauges(t, g, 2, 0)
		one(nil)
		two(nil)
		wantGauges(t, g, 0, 0)
	})
}

func TestNobodyWaitsWhereNobodyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Settings{MaxConns: 1}, upstream(good))
		end := take(t, g)
		if _, err := g.Do(t.Context(), &clients.Request{}); clients.KindOf(err) != clients.PoolExhausted {
			t.Errorf("error %v, want pool_exhausted", err)
		}
		end(nil)
		take(t, g)(nil)
	})
}

func TestAWaiterWhoGoesAwayLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Settings{MaxConns: 1, MaxPending: 2, PendingTimeout: time.Minute}, upstream(good))
		end := take(t, g)
		gone, hangUp := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.Do(gone, &clients.Request{}); clients.KindOf(err) != clients.Canceled {
				t.Errorf("the one who went away: %v, want canceled", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if resp, err := g.Do(t.Context(), &clients.Request{}); err != nil {
				t.Errorf("the next one: %v", err)
			} else {
				resp.End(nil)
			}
		})
		synctest.Wait()
		wantGauges(t, g, 1, 2)
		hangUp()
		synctest.Wait()
		wantGauges(t, g, 1, 1)
		end(nil)
		wg.Wait()
		wantGauges(t, g, 0, 0)
	})
}

// TestNeitherLostNorDoubled lets callers take, wait, give up and fail at random,
// around the very moments at which places come free. Never are more places taken
// than there are, and none is missing in the end.
func TestNeitherLostNorDoubled(t *testing.T) {
	const places = 3
	var busy, most atomic.Int64
	g := admission.New(admission.Settings{MaxConns: places, MaxPending: 8, PendingTimeout: 200 * time.Microsecond},
		upstream(func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
			now := busy.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if r.Method == "FAIL" {
				busy.Add(-1)
				return nil, errors.New("made for the test")
			}
			return good(ctx, r) // counted down by the caller
		}))
	var wg sync.WaitGroup
	kinds := make([]atomic.Int64, len(clients.Kinds())+1)
	for range 16 {
		wg.Go(func() {
			for range 600 {
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(400*time.Microsecond))
				req := &clients.Request{}
				if rand.N(4) == 0 {
					req.Method = "FAIL"
				}
				resp, err := g.Do(ctx, req)
				if err == nil {
					time.Sleep(rand.N(100 * time.Microsecond))
					busy.Add(-1)
					resp.End(nil)
				}
				kinds[clients.KindOf(err)].Add(1)
				cancel()
			}
		})
	}
	wg.Wait()
	wantGauges(t, g, 0, 0)
	if most.Load() != places {
		t.Errorf("%d places taken at most, want %d", most.Load(), places)
	}
	if kinds[clients.PoolExhausted].Load() == 0 || kinds[clients.Canceled].Load() == 0 {
		t.Error("the test saw no overflow or no cancellation: it races with nothing")
	}
	for range places {
		take(t, g)
	}
}

func BenchmarkDo(b *testing.B) {
	resp := &clients.Response{}
	g := admission.New(admission.Settings{MaxConns: 256, MaxPending: 1024, PendingTimeout: time.Second},
		upstream(func(context.Context, *clients.Request) (*clients.Response, error) {
			*resp = clients.Response{Status: 200, Body: clients.NoBody}
			return resp, nil
		}))
	req := &clients.Request{}
	b.ReportAllocs()
	for b.Loop() {
		r, _ := g.Do(context.Background(), req)
		r.End(nil)
	}
}
