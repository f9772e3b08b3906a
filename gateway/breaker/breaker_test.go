package breaker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"gatebench/clients"
	"gatebench/gateway/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream is the client behind the breaker.
type upstream func(context.Context, *clients.Request) (*clients.Response, error)

func (u upstream) Do(ctx context.Context, r *clients.Request) (*clients.Response, error) {
	return u(ctx, r)
}
func (upstream) Close() error { return nil }

var policy = breaker.Settings{
	FailureRate: 0.5, FailureOn: breaker.DefaultFailures(), MinimumCalls: 4, Window: 10 * time.Second,
	OpenFor: 2 * time.Second, HalfOpenCalls: 2, ProbeLimit: 15 * time.Second,
}

// rig is a breaker around an upstream that is told what to answer.
type rig struct {
	*breaker.Breaker
	t      *testing.T
	answer upstream
}

func newRig(t *testing.T, s breaker.Settings) *rig {
	r := &rig{t: t}
	r.Breaker = breaker.New(s, upstream(func(ctx context.Context, req *clients.Request) (*clients.Response, error) {
		return r.answer(ctx, req)
	}))
	return r
}

// send sends a request that upstream answers with status, or fails with kind, and
// ends it with end. It returns the error of Do.
func (r *rig) send(status int, kind clients.Kind, end error) error {
	r.t.Helper()
	r.answer = gives(status, kind)
	resp, err := r.Do(r.t.Context(), &clients.Request{Method: "GET", Target: "/"})
	if err == nil {
		resp.End(end)
	}
	return err
}

func gives(status int, kind clients.Kind) upstream {
	return func(context.Context, *clients.Request) (*clients.Response, error) {
		if kind != 0 {
			return nil, of(kind)
		}
		return clients.NewResponse(status, nil, nil), nil
	}
}

func of(k clients.Kind) error {
	if k == 0 {
		return nil
	}
	return &clients.Error{Kind: k, Err: errors.New("made for the test")}
}

func (r *rig) ok()   { r.t.Helper(); _ = r.send(200, 0, nil) }
func (r *rig) fail() { r.t.Helper(); _ = r.send(0, clients.Dial, nil) }

func (r *rig) want(s breaker.State) {
	r.t.Helper()
	if got := r.State(); got != s {
		r.t.Fatalf("state %v, want %v", got, s)
	}
}

// trip opens the breaker.
func (r *rig) trip() {
	r.t.Helper()
	for range policy.MinimumCalls {
		r.fail()
	}
	r.want(breaker.Open)
}

// start sends a request that stays in flight; the function ends it.
func (r *rig) start(status int) func(error) {
	r.t.Helper()
	r.answer = gives(status, 0)
	resp, err := r.Do(r.t.Context(), &clients.Request{Method: "GET", Target: "/"})
	if err != nil {
		r.t.Fatalf("not let through: %v", err)
	}
	return resp.End
}

func TestOpensAtTheRateOnceThereAreEnoughCalls(t *testing.T) {
	for _, tc := range []struct {
		name     string
		outcomes string // o success, x failure, . neutral
		want     breaker.State
	}{
		{"too few calls", "xxx", breaker.Closed},
		{"enough calls", "xxxx", breaker.Open},
		{"exactly the rate", "ooxx", breaker.Open},
		{"below the rate", "oooxx", breaker.Closed},
		{"reached later", "oooxxx", breaker.Open},
		{"neutral ones are not calls", "xx.....x", breaker.Closed},
		{"neutral ones do not dilute", "....xx....xx", breaker.Open},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, policy)
				for _, o := range tc.outcomes {
					switch o {
					case 'o':
						r.ok()
					case 'x':
						r.fail()
					default:
						_ = r.send(0, clients.Canceled, nil)
					}
				}
				r.want(tc.want)
			})
		})
	}
}

// TestWhatCounts goes through everything that an exchange can come to, at its head
// and in its body.
func TestWhatCounts(t *testing.T) {
	type verdict int
	const (
		success verdict = iota
		failure
		neutral
	)
	byKind := map[clients.Kind]verdict{
		clients.Dial: failure, clients.TLS: failure, clients.Reset: failure, clients.Protocol: failure,
		clients.TimeoutConnect: failure, clients.TimeoutHeader: failure, clients.TimeoutBody: failure,
		clients.ResponseTooLarge: neutral, clients.PoolExhausted: neutral, clients.BreakerOpen: neutral,
		clients.RequestTooLarge: neutral, clients.BadRequest: neutral, clients.Unsupported: neutral, clients.Canceled: neutral,
	}
	judge := func(status int, kind clients.Kind, end error) (got verdict) {
		synctest.Test(t, func(t *testing.T) {
			// One failure opens this breaker; one success keeps it closed
			// through one failure.
			s := policy
			s.MinimumCalls, s.FailureRate = 1, 0.6
			r := newRig(t, s)
			_ = r.send(status, kind, end)
			if r.State() == breaker.Open {
				got = failure
				return
			}
			r.fail()
			if r.State() == breaker.Open {
				got = neutral
			}
		})
		return got
	}
	for status, want := range map[int]verdict{
		200: success, 301: success, 304: success, 404: success, 429: success, 499: success,
		500: failure, 502: failure, 503: failure, 599: failure, 999: failure,
	} {
		if got := judge(status, 0, nil); got != want {
			t.Errorf("status %d: verdict %v, want %v", status, got, want)
		}
	}
	for _, kind := range clients.Kinds() {
		want, known := byKind[kind]
		if !known {
			t.Errorf("%v has no verdict in this test", kind)
		}
		if got := judge(0, kind, nil); got != want {
			t.Errorf("%v before the head: verdict %v, want %v", kind, got, want)
		}
		if got := judge(200, 0, of(kind)); got != want {
			t.Errorf("%v in the body: verdict %v, want %v", kind, got, want)
		}
		if got := judge(503, 0, of(kind)); got != failure {
			t.Errorf("%v in the body of a 503: verdict %v, want a failure", kind, got)
		}
	}
	if got := judge(200, 0, io.ErrClosedPipe); got != neutral {
		t.Errorf("an error without a kind: verdict %v, want neutral", got)
	}
}

// What is a failure is a setting, word by word: what it names opens the breaker, and
// nothing else does.
func TestFailureOn(t *testing.T) {
	type event struct {
		status int
		kind   clients.Kind
		end    error // of the body
	}
	events := map[string][]event{
		"connect":  {{kind: clients.Dial}, {kind: clients.TLS}, {kind: clients.TimeoutConnect}},
		"reset":    {{kind: clients.Reset}, {status: 200, end: of(clients.Reset)}},
		"timeout":  {{kind: clients.TimeoutHeader}, {status: 200, end: of(clients.TimeoutBody)}},
		"protocol": {{kind: clients.Protocol}, {status: 200, end: of(clients.Protocol)}},
		"5xx":      {{status: 500}, {status: 503}, {status: 599}},
		"429":      {{status: 429}},
		"":         {{status: 404}, {kind: clients.Canceled}, {kind: clients.PoolExhausted}},
	}
	for _, word := range breaker.FailureWords() {
		for name, list := range events {
			for _, e := range list {
				synctest.Test(t, func(t *testing.T) {
					s := policy
					s.FailureOn, s.FailureRate, s.MinimumCalls = []string{word}, 1, 1
					r := newRig(t, s)
					_ = r.send(e.status, e.kind, e.end)
					if opened := r.State() == breaker.Open; opened != (name == word) {
						t.Errorf("failure_on %s, %+v: opened %v", word, e, opened)
					}
				})
			}
		}
	}
}

// So many failures in a row open it whatever the rate; a success begins anew, what is
// neither does not, and what is out of the window is forgotten.
func TestConsecutiveFailures(t *testing.T) {
	for _, tc := range []struct {
		outcomes string // o success, x failure, . neutral, _ a pause of two seconds
		want     breaker.State
	}{
		{"oooooooooooooooxxx", breaker.Open},
		{"oooooooooooooooxx", breaker.Closed},
		{"oooooooooooooooxxoxx", breaker.Closed},
		{"oooooooooooooooxx..x", breaker.Open},
		{"oooooooooooooooxx__x", breaker.Open},
		{"oooooooooooooooxx______x", breaker.Closed},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := policy
			s.ConsecutiveFailures, s.MinimumCalls = 3, 100
			r := newRig(t, s)
			for _, o := range tc.outcomes {
				switch o {
				case 'o':
					r.ok()
				case 'x':
					r.fail()
				case '_':
					time.Sleep(2 * time.Second)
				default:
					_ = r.send(0, clients.Canceled, nil)
				}
			}
			if got := r.State(); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.outcomes, got, tc.want)
			}
		})
	}
}

func TestABadStatusPassesThroughUntouched(t *testing.T) {
	r := newRig(t, policy)
	want := clients.NewResponse(503, nil, []byte("sorry"))
	r.answer = func(context.Context, *clients.Request) (*clients.Response, error) { return want, nil }
	got, err := r.Do(t.Context(), &clients.Request{})
	if got != want || err != nil {
		t.Fatalf("got %v, %v", got, err)
	}
	if body, _ := io.ReadAll(got.Body); string(body) != "sorry" {
		t.Errorf("body %q", body)
	}
	got.End(nil)
}

// The window rolls; gobreaker's own fixed window would forget all at once.
func TestOldOutcomesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		for range 3 {
			r.fail()
			time.Sleep(2 * time.Second)
		}
		time.Sleep(5 * time.Second) // the first failure is 11 s old
		r.fail()
		r.want(breaker.Closed)
		r.fail() // three in the window, and now four
		r.want(breaker.Open)
	})
}

// gobreaker attributes an outcome to the moment its request began, and drops it if
// that is out of the window: with timeouts longer than the window a dead upstream
// would never open the breaker.
func TestFailuresSlowerThanTheWindowCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := policy
		s.Window = time.Second
		r := newRig(t, s)
		r.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
			time.Sleep(3 * time.Second)
			return nil, of(clients.TimeoutHeader)
		}
		var wg sync.WaitGroup
		for range s.MinimumCalls {
			wg.Go(func() { _, _ = r.Do(t.Context(), &clients.Request{}) })
		}
		wg.Wait()
		r.want(breaker.Open)
	})
}

// gobreaker's Counts.Requests holds what is still on its way: a rate over it would
// not see a burst of slow failures (sony/gobreaker#91).
func TestRequestsInFlightDoNotDiluteTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		var ends []func(error)
		for range 100 {
			ends = append(ends, r.start(200))
		}
		for range policy.MinimumCalls {
			r.fail()
		}
		r.want(breaker.Open)
		for _, end := range ends {
			end(nil) // they began when it was closed: no say any more
		}
		r.want(breaker.Open)
	})
}

func TestRejectsAtOnceAndSaysForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		r.trip()
		r.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
			t.Error("a rejected request reached upstream")
			return clients.NewResponse(200, nil, nil), nil
		}
		for _, left := range []time.Duration{2 * time.Second, 1500 * time.Millisecond} {
			_, err := r.Do(t.Context(), &clients.Request{})
			if clients.KindOf(err) != clients.BreakerOpen {
				t.Fatalf("error %v, want kind breaker_open", err)
			}
			if e, ok := errors.AsType[*breaker.Rejection](err); !ok || e.RetryAfter != left {
				t.Errorf("rejection %v, want %v left", e, left)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}

func TestProbesCloseItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		r.trip()
		time.Sleep(policy.OpenFor + 1)
		one, two := r.start(200), r.start(200)
		r.want(breaker.HalfOpen)
		err := r.send(200, 0, nil)
		if e, ok := errors.AsType[*breaker.Rejection](err); !ok || e.RetryAfter != 0 {
			t.Errorf("a third probe: %v, want a rejection without a wait", err)
		}
		one(nil)
		r.want(breaker.HalfOpen)
		two(nil)
		r.want(breaker.Closed)
		for _, c := range []struct {
			t    breaker.Transition
			want int64
		}{
			{breaker.Transition{From: breaker.Closed, To: breaker.Open}, 1},
			{breaker.Transition{From: breaker.Open, To: breaker.HalfOpen}, 1},
			{breaker.Transition{From: breaker.HalfOpen, To: breaker.Closed}, 1},
			{breaker.Transition{From: breaker.HalfOpen, To: breaker.Open}, 0},
		} {
			if got := r.Count(c.t); got != c.want {
				t.Errorf("%v: %d times, want %d", c.t, got, c.want)
			}
		}
	})
}

// What came before is not held against an upstream that is back.
func TestClosesWithAnEmptyWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		r.trip()
		time.Sleep(policy.OpenFor + 1)
		r.ok()
		r.ok()
		r.want(breaker.Closed)
		for range policy.MinimumCalls - 1 {
			r.start(200)(of(clients.Protocol))
		}
		r.want(breaker.Closed)
		r.start(200)(of(clients.Protocol))
		r.want(breaker.Open)
	})
}

func TestAFailedProbeOpensItAgain(t *testing.T) {
	for name, fail := range map[string]func(*rig){
		"error":  func(r *rig) { r.fail() },
		"status": func(r *rig) { _ = r.send(500, 0, nil) },
		"body":   func(r *rig) { r.start(200)(of(clients.Protocol)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, policy)
				r.trip()
				time.Sleep(policy.OpenFor + 1)
				fail(r)
				r.want(breaker.Open)
				time.Sleep(policy.OpenFor - 1)
				if err := r.send(200, 0, nil); clients.KindOf(err) != clients.BreakerOpen {
					t.Errorf("open_for starts anew: got %v", err)
				}
			})
		})
	}
}

// A probe that upstream has no part in gives its place to the next one, whichever
// way it ends: otherwise some hung-up callers would hold the breaker half-open for
// ever.
func TestANeutralProbeFreesItsPlace(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"pool exhausted": func(r *rig) { _ = r.send(0, clients.PoolExhausted, nil) },
		"canceled":       func(r *rig) { _ = r.send(0, clients.Canceled, nil) },
		"hung up":        func(r *rig) { r.start(200)(of(clients.Canceled)) },
		"panic": func(r *rig) {
			r.answer = func(context.Context, *clients.Request) (*clients.Response, error) { panic("made for the test") }
			defer func() {
				if recover() == nil {
					r.t.Error("the panic was swallowed")
				}
			}()
			_, _ = r.Do(r.t.Context(), &clients.Request{})
		},
		"goroutine exit": func(r *rig) {
			r.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
				runtime.Goexit()
				return nil, nil
			}
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = r.Do(r.t.Context(), &clients.Request{}) })
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, policy)
				r.trip()
				time.Sleep(policy.OpenFor + 1)
				for range 3 * policy.HalfOpenCalls {
					end(r)
					r.want(breaker.HalfOpen)
				}
				r.ok()
				r.ok()
				r.want(breaker.Closed)
			})
		})
	}
}

// gobreaker's half-open state has no end of its own.
func TestAnEndlessProbeDoesNotHoldItHalfOpen(t *testing.T) {
	t.Run("body that flows", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, policy)
			r.trip()
			time.Sleep(policy.OpenFor + 1)
			one, two := r.start(200), r.start(200)
			time.Sleep(policy.ProbeLimit + 1)
			r.want(breaker.Closed)
			one(of(clients.Protocol)) // its word has been taken already
			two(nil)
			r.want(breaker.Closed)
		})
	})
	t.Run("upload that trickles", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, policy)
			r.trip()
			time.Sleep(policy.OpenFor + 1)
			release := make(chan struct{})
			r.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
				<-release
				return nil, of(clients.Reset)
			}
			var wg sync.WaitGroup
			for range policy.HalfOpenCalls {
				wg.Go(func() { _, _ = r.Do(t.Context(), &clients.Request{}) })
			}
			time.Sleep(policy.ProbeLimit + 1)
			r.want(breaker.HalfOpen)
			close(release)
			wg.Wait()
			r.want(breaker.HalfOpen) // too late to say anything
			r.ok()
			r.ok()
			r.want(breaker.Closed)
		})
	})
}

// slow sends an upload whose caller owes the rest until it is released; do is what
// upstream has to do with it, and gets the body.
func (r *rig) slow(wg *sync.WaitGroup, body *silent, do func(io.Reader) error) {
	r.answer = func(_ context.Context, req *clients.Request) (*clients.Response, error) {
		return nil, do(req.Body)
	}
	wg.Go(func() {
		_, _ = r.Do(r.t.Context(), &clients.Request{Method: http.MethodPost, Body: body, ContentLength: -1})
	})
	synctest.Wait()
}

func TestSlowUploadsDoNotHoldItHalfOpen(t *testing.T) {
	takes := func(body io.Reader) error {
		_, _ = body.Read(make([]byte, 1))
		return of(clients.Reset)
	}
	rejects := func(r *rig) {
		r.t.Helper()
		if err := r.send(200, 0, nil); clients.KindOf(err) != clients.BreakerOpen {
			r.t.Fatalf("got %v, want a rejection", err)
		}
	}
	// halfOpen is a breaker whose places are all taken by such uploads.
	halfOpen := func(t *testing.T, do func(io.Reader) error) (r *rig, release func()) {
		r = newRig(t, policy)
		r.trip()
		time.Sleep(policy.OpenFor + 1)
		body := &silent{unblocked: make(chan struct{})}
		var wg sync.WaitGroup
		for range policy.HalfOpenCalls {
			r.slow(&wg, body, do)
		}
		rejects(r) // each of them may still be whole in a moment
		time.Sleep(200 * time.Millisecond)
		return r, func() { body.Unblock(); wg.Wait() }
	}

	t.Run("their places are for others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, release := halfOpen(t, takes)
			one, two := r.start(200), r.start(200)
			rejects(r) // and for no more than that
			one(nil)
			two(nil)
			r.want(breaker.Closed)
			release()
			r.want(breaker.Closed)
		})
	})
	t.Run("they have no say any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, release := halfOpen(t, takes)
			one, two := r.start(200), r.start(200)
			release()
			r.want(breaker.HalfOpen)
			one(nil)
			two(of(clients.Protocol))
			r.want(breaker.Open)
		})
	})
	t.Run("for uploads too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, release := halfOpen(t, takes)
			defer release()
			for range policy.HalfOpenCalls {
				r.answer = gives(200, 0)
				resp, err := r.Do(t.Context(), &clients.Request{Method: http.MethodPost, Body: http.NoBody})
				if err != nil {
					t.Fatal(err)
				}
				resp.End(nil)
			}
			r.want(breaker.Closed)
		})
	})
	t.Run("no place is given away unasked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, release := halfOpen(t, takes)
			release() // nobody came: they are probes like others
			r.want(breaker.Open)
		})
	})
	t.Run("one that upstream does not take keeps its place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck := make(chan struct{})
			r, release := halfOpen(t, func(io.Reader) error { <-stuck; return of(clients.TimeoutBody) })
			rejects(r)
			close(stuck)
			release()
			r.want(breaker.Open)
		})
	})
	t.Run("one that is answered before its end is a success", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, policy)
			r.trip()
			time.Sleep(policy.OpenFor + 1)
			body := &silent{unblocked: make(chan struct{})}
			for range policy.HalfOpenCalls {
				r.answer = func(_ context.Context, req *clients.Request) (*clients.Response, error) {
					upload := req.Body
					go func() { _, _ = upload.Read(make([]byte, 1)) }()
					synctest.Wait()
					return clients.NewResponse(200, nil, nil), nil
				}
				resp, err := r.Do(t.Context(), &clients.Request{Method: http.MethodPost, Body: body, ContentLength: -1})
				if err != nil {
					t.Fatal(err)
				}
				defer resp.End(nil)
			}
			defer body.Unblock()
			time.Sleep(200 * time.Millisecond)
			r.ok()
			r.want(breaker.Closed)
		})
	})
}

// A change of protocol is upstream's answer. What becomes of the tunnel is not.
func TestAnUpgradeCountsAtOnce(t *testing.T) {
	switching := func(r *rig) *clients.Response {
		r.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
			return &clients.Response{Status: 101, Body: clients.NoBody, Upgraded: nobody{}}, nil
		}
		resp, err := r.Do(r.t.Context(), &clients.Request{Method: "GET", Target: "/"})
		if err != nil {
			r.t.Fatal(err)
		}
		return resp
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		r.trip()
		time.Sleep(policy.OpenFor + 1)
		for range policy.HalfOpenCalls {
			defer switching(r).End(nil) // still open when the breaker closes
		}
		r.want(breaker.Closed)
		tunnels := []*clients.Response{switching(r), switching(r), switching(r), switching(r)}
		for _, tunnel := range tunnels {
			tunnel.End(of(clients.Protocol))
		}
		r.want(breaker.Closed)
		for range policy.MinimumCalls - 1 {
			r.fail()
		}
		r.want(breaker.Closed) // 3 of 7: those tunnels were successes
	})
}

// nobody is a connection.
type nobody struct{}

func (nobody) Read([]byte) (int, error)    { return 0, io.EOF }
func (nobody) Write(p []byte) (int, error) { return len(p), nil }
func (nobody) Close() error                { return nil }

func TestOutcomesOfAnEarlierPeriodDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, policy)
		late := r.start(200)
		r.trip()
		time.Sleep(policy.OpenFor + 1)
		probe := r.start(200)
		late(of(clients.Reset)) // would be a failed probe
		r.want(breaker.HalfOpen)
		probe(nil)
		r.ok()
		r.want(breaker.Closed)
	})
}

// Silence in a body is timeout_body on both sides. Only upstream's counts.
func TestACallerWhoStallsInAnUploadIsNotAFailure(t *testing.T) {
	s := policy
	s.MinimumCalls = 1
	for _, tc := range []struct {
		name string
		do   upstream
		want breaker.State
	}{
		{"the caller is silent", func(_ context.Context, req *clients.Request) (*clients.Response, error) {
			go func() { _, _ = req.Body.Read(make([]byte, 1)) }()
			synctest.Wait()
			return nil, of(clients.TimeoutBody)
		}, breaker.Closed},
		{"the caller's silence is the body's error", func(_ context.Context, req *clients.Request) (*clients.Response, error) {
			req.Body.(interface{ Unblock() }).Unblock()
			_, err := req.Body.Read(make([]byte, 1))
			return nil, err
		}, breaker.Closed},
		{"upstream does not read", func(context.Context, *clients.Request) (*clients.Response, error) {
			return nil, of(clients.TimeoutBody)
		}, breaker.Open},
		{"upstream resets while the caller is slow", func(_ context.Context, req *clients.Request) (*clients.Response, error) {
			go func() { _, _ = req.Body.Read(make([]byte, 1)) }()
			synctest.Wait()
			return nil, of(clients.Reset)
		}, breaker.Open},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &silent{unblocked: make(chan struct{})}
				r := newRig(t, s)
				r.answer = func(ctx context.Context, req *clients.Request) (*clients.Response, error) {
					req.Body = unblocker{req.Body, body}
					return tc.do(ctx, req)
				}
				req := &clients.Request{Method: http.MethodPost, Body: body, ContentLength: -1}
				_, _ = r.Do(t.Context(), req)
				r.want(tc.want)
				if req.Body != body {
					t.Errorf("the request's body is %T afterwards", req.Body)
				}
				body.Unblock()
			})
		})
	}
}

// silent is a body whose reads end with timeout_body once it is unblocked.
type silent struct {
	unblocked chan struct{}
	once      sync.Once
}

func (s *silent) Unblock() { s.once.Do(func() { close(s.unblocked) }) }
func (s *silent) Read([]byte) (int, error) {
	<-s.unblocked
	return 0, of(clients.TimeoutBody)
}

type unblocker struct {
	io.Reader
	*silent
}

func (u unblocker) Read(p []byte) (int, error) { return u.Reader.Read(p) }

// A flight is a request that has not ended.
type flight struct {
	period int64 // how many times the breaker had become half-open
	began  time.Time
	end    func(error)
}

// TestNeverWedged plays random sequences of requests, endings and time. Whatever
// happened, never are there more probes than allowed, and as many good requests
// close the breaker in the end.
func TestNeverWedged(t *testing.T) {
	becameHalfOpen := breaker.Transition{From: breaker.Open, To: breaker.HalfOpen}
	kinds := append([]clients.Kind{0, 0, 0}, clients.Kinds()...)
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, policy)
			var flying []flight
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				switch rapid.IntRange(0, 3).Draw(rt, "step") {
				case 0:
					time.Sleep(time.Duration(rapid.IntRange(1, 5000).Draw(rt, "ms")) * time.Millisecond)
				case 1:
					kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
					_ = r.send(rapid.SampledFrom([]int{200, 404, 500}).Draw(rt, "status"), kind, nil)
				case 2:
					r.answer = gives(200, 0)
					if resp, err := r.Do(t.Context(), &clients.Request{}); err == nil {
						flying = append(flying, flight{r.Count(becameHalfOpen), time.Now(), resp.End})
					}
				case 3:
					if len(flying) > 0 {
						i := rapid.IntRange(0, len(flying)-1).Draw(rt, "which")
						flying[i].end(of(rapid.SampledFrom(kinds).Draw(rt, "end")))
						flying = slices.Delete(flying, i, i+1)
					}
				}
				probes := 0
				for _, f := range flying {
					if f.period == r.Count(becameHalfOpen) && time.Since(f.began) < policy.ProbeLimit {
						probes++
					}
				}
				if r.State() == breaker.HalfOpen && probes > policy.HalfOpenCalls {
					rt.Fatalf("%d probes in flight, want %d at most", probes, policy.HalfOpenCalls)
				}
			}
			for _, f := range flying {
				f.end(of(clients.Canceled))
			}
			time.Sleep(policy.OpenFor + policy.ProbeLimit + 1)
			for range policy.HalfOpenCalls {
				r.ok()
			}
			r.want(breaker.Closed)
		})
	})
}

// TestConcurrently is for the race detector, and for a probe lost in a race.
func TestConcurrently(t *testing.T) {
	s := policy
	s.OpenFor, s.Window = time.Millisecond, breaker.MinimumWindow
	var (
		n      atomic.Int64
		healed atomic.Bool
	)
	b := breaker.New(s, upstream(func(context.Context, *clients.Request) (*clients.Response, error) {
		switch i := n.Add(1); {
		case healed.Load() || i%3 == 0:
			return clients.NewResponse(200, nil, nil), nil
		case i%7 == 0:
			return nil, of(clients.Canceled)
		}
		return nil, of(clients.Reset)
	}))
	send := func() {
		if resp, err := b.Do(context.Background(), &clients.Request{}); err == nil {
			resp.End(nil)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				send()
			}
		})
	}
	wg.Wait()
	healed.Store(true)
	for deadline := time.Now().Add(10 * time.Second); b.State() != breaker.Closed; send() {
		if time.Now().After(deadline) {
			t.Fatalf("still %v", b.State())
		}
	}
}

func BenchmarkDo(b *testing.B) {
	resp := &clients.Response{}
	brk := breaker.New(policy, upstream(func(context.Context, *clients.Request) (*clients.Response, error) {
		*resp = clients.Response{Status: 200, Body: clients.NoBody}
		return resp, nil
	}))
	req := &clients.Request{}
	b.ReportAllocs()
	for b.Loop() {
		r, _ := brk.Do(context.Background(), req)
		r.End(nil)
	}
}
