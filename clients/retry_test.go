package clients_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// retry is a policy with everything on, no waits and no budget to speak of.
func retry(change ...func(*clients.Retry)) *clients.RetryPolicy {
	r := clients.Retry{
		MaxAttempts: 3,
		RetryOn:     []string{"connect", "reset", "timeout", "5xx", "429"},
		Budget:      1,
	}
	for _, f := range change {
		f(&r)
	}
	return clients.NewRetryPolicy(r)
}

func TestReplayableIsIdempotentWithoutBody(t *testing.T) {
	p := retry()
	for method, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "BREW": false, "get": false,
	} {
		if got := p.Replayable(&clients.Request{Method: method}); got != want {
			t.Errorf("%s without a body: %v, want %v", method, got, want)
		}
		if p.Replayable(&clients.Request{Method: method, Body: strings.NewReader("x"), ContentLength: 1}) {
			t.Errorf("%s with a body may be sent twice", method)
		}
	}
}

func TestAgainFollowsRetryOn(t *testing.T) {
	outcomes := map[string]struct {
		status int
		err    error
		on     string // the one word that covers it
	}{
		"refused":           {0, &clients.Error{Kind: clients.Dial}, "connect"},
		"no connection":     {0, &clients.Error{Kind: clients.TimeoutConnect}, "connect"},
		"bad certificate":   {0, &clients.Error{Kind: clients.TLS}, ""},
		"reset":             {0, &clients.Error{Kind: clients.Reset}, "reset"},
		"no head":           {0, &clients.Error{Kind: clients.TimeoutHeader}, "timeout"},
		"silent body":       {0, &clients.Error{Kind: clients.TimeoutBody}, ""},
		"malformed":         {0, &clients.Error{Kind: clients.Protocol}, ""},
		"downstream left":   {0, &clients.Error{Kind: clients.Canceled}, ""},
		"unclassified":      {0, errors.New("?"), ""},
		"OK":                {200, nil, ""},
		"not found":         {404, nil, ""},
		"too many requests": {429, nil, "429"},
		"internal":          {500, nil, "5xx"},
		"last of its class": {599, nil, "5xx"},
		"no status class":   {600, nil, ""},
	}
	for name, o := range outcomes {
		for _, word := range []string{"connect", "reset", "timeout", "5xx", "429"} {
			p := retry(func(r *clients.Retry) { r.RetryOn = []string{word} })
			got := p.Again(&clients.Request{Method: "GET"}, 1, o.status, o.err)
			if want := word == o.on; got != want {
				t.Errorf("%s with retry_on [%s]: %v, want %v", name, word, got, want)
			}
		}
	}
}

func TestAgainStopsAtMaxAttempts(t *testing.T) {
	p, req := retry(), &clients.Request{Method: "GET"}
	for tried, want := range map[int]bool{1: true, 2: true, 3: false, 4: false} {
		if got := p.Again(req, tried, 503, nil); got != want {
			t.Errorf("after attempt %d of 3: %v, want %v", tried, got, want)
		}
	}
	if off := clients.NewRetryPolicy(clients.DefaultSettings().Retry); off.Enabled() || off.Again(req, 1, 0, &clients.Error{Kind: clients.Dial}) {
		t.Error("the default retries")
	}
}

// The wait before attempt n is uniform over [0, min(base·2ⁿ⁻², max)].
func TestWaitIsFullJitter(t *testing.T) {
	p := retry(func(r *clients.Retry) {
		r.Backoff = clients.Backoff{Base: 20 * time.Millisecond, Max: 200 * time.Millisecond}
	})
	const draws = 2000
	for tried, ceiling := range map[int]time.Duration{
		1: 20 * time.Millisecond, 2: 40 * time.Millisecond, 3: 80 * time.Millisecond,
		4: 160 * time.Millisecond, 5: 200 * time.Millisecond, 1000: 200 * time.Millisecond,
	} {
		var least, most, sum time.Duration = math.MaxInt64, 0, 0
		for range draws {
			d := p.Wait(tried, "")
			least, most, sum = min(least, d), max(most, d), sum+d
		}
		if least < 0 || most > ceiling {
			t.Errorf("after attempt %d: waits from %v to %v, want 0 to %v", tried, least, most, ceiling)
		}
		// Five standard errors of a uniform mean: ceiling/√12/√draws.
		off := math.Abs(float64(sum)/draws - float64(ceiling)/2)
		if bound := 5 * float64(ceiling) / math.Sqrt(12*draws); off > bound {
			t.Errorf("after attempt %d: mean %v, want %v", tried, sum/draws, ceiling/2)
		}
	}
	if d := retry().Wait(1, ""); d != 0 {
		t.Errorf("without backoff: waits %v", d)
	}
}

func TestWaitHonoursRetryAfterUpToMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a fixed clock for dates
		p := retry(func(r *clients.Retry) { r.Backoff.Max = 2 * time.Second })
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "2": 2 * time.Second, "3600": 2 * time.Second,
			"99999999999999999": 2 * time.Second,
			in(time.Second):     time.Second,
			in(24 * time.Hour):  2 * time.Second,
			in(-time.Hour):      0,
			// Malformed: the backoff, which is none here.
			"-5": 0, "abc": 0, "1.5": 0, "99999999999999999999999": 0, " 1": 0,
		} {
			if got := p.Wait(1, value); got != want {
				t.Errorf("Retry-After %q: %v, want %v", value, got, want)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "0", "120", "-1", "18446744073709551615", "Fri, 31 Dec 1999 23:59:59 GMT"} {
		f.Add(v)
	}
	p := retry(func(r *clients.Retry) { r.Backoff = clients.Backoff{Base: time.Second, Max: 3 * time.Second} })
	f.Fuzz(func(t *testing.T, value string) {
		if d := p.Wait(2, value); d < 0 || d > 3*time.Second {
			t.Errorf("Retry-After %q: waits %v", value, d)
		}
	})
}

// granted counts how many of n retries the budget allows.
func granted(p *clients.RetryPolicy, n int) (granted int) {
	for range n {
		if p.Again(&clients.Request{Method: "GET"}, 1, 503, nil) {
			granted++
		}
	}
	return granted
}

func TestBudget(t *testing.T) {
	share := func(s float64) *clients.RetryPolicy {
		return retry(func(r *clients.Retry) { r.Budget = conf.Ratio(s) })
	}
	begin := func(p *clients.RetryPolicy, n int) {
		for range n {
			p.Begin()
		}
	}
	t.Run("is a share of requests", func(t *testing.T) {
		p := share(0.2)
		begin(p, 1000)
		if got := granted(p, 1000); got != 200 {
			t.Errorf("%d retries on 1000 requests at 20%%, want 200", got)
		}
	})
	t.Run("has a floor for little traffic", func(t *testing.T) {
		p := share(0.2)
		begin(p, 1)
		if got := granted(p, 100); got != 10 {
			t.Errorf("%d retries, want the floor of 10", got)
		}
	})
	t.Run("of nothing allows nothing", func(t *testing.T) {
		p := share(0)
		begin(p, 1000)
		if got := granted(p, 100); got != 0 {
			t.Errorf("%d retries at 0%%", got)
		}
	})
	t.Run("forgets after ten seconds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := share(0.2)
			begin(p, 1000)
			granted(p, 1000)
			time.Sleep(9 * time.Second)
			if got := granted(p, 100); got != 0 {
				t.Errorf("%d more retries within the window, want 0", got)
			}
			time.Sleep(2 * time.Second)
			if got := granted(p, 100); got != 10 {
				t.Errorf("%d retries in a new window without requests, want the floor of 10", got)
			}
		})
	})
	t.Run("slides", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := share(0.5)
			for range 30 { // 100 requests a second
				begin(p, 100)
				granted(p, 1000)
				time.Sleep(time.Second)
			}
			// Nine full seconds of requests and retries are still in the
			// window; the tenth has just begun.
			begin(p, 100)
			if got := granted(p, 1000); got != 50 {
				t.Errorf("%d retries in a second of 100 requests at 50%%, want 50", got)
			}
		})
	})
}

func TestLoopReturnsTheLastAnswer(t *testing.T) {
	p := retry()
	var ended []int
	calls := 0
	resp, err := p.Do(t.Context(), &clients.Request{Method: "GET"}, func(context.Context, *clients.Request) (*clients.Response, error) {
		calls++
		n := calls
		r := clients.NewResponse(503, clients.Fields{{Name: "X-Reason", Value: "down"}}, []byte("body"))
		r.OnEnd(func(error) { ended = append(ended, n) })
		return r, nil
	})
	if err != nil {
		t.Fatalf("503 after the last attempt became an error: %v", err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.Status != 503 || resp.Fields.Get("x-reason") != "down" || string(body) != "body" {
		t.Errorf("got %d %v %q, want the last answer whole", resp.Status, resp.Fields, body)
	}
	if calls != 3 || resp.Attempts != 3 {
		t.Errorf("%d attempts, counted as %d, want 3", calls, resp.Attempts)
	}
	if len(ended) != 2 {
		t.Errorf("responses %v were ended, want the two that were tried again", ended)
	}
}

// A request that found no place in the pool has not even dialed.
func TestNoPlaceInThePoolIsNoAttempt(t *testing.T) {
	for tries, kinds := range [][]clients.Kind{{clients.PoolExhausted}, {clients.Reset, clients.PoolExhausted}} {
		tried := 0
		_, err := retry().Do(t.Context(), &clients.Request{Method: "GET"}, func(context.Context, *clients.Request) (*clients.Response, error) {
			tried++
			return nil, &clients.Error{Kind: kinds[tried-1]}
		})
		if e, ok := errors.AsType[*clients.Error](err); !ok || e.Kind != clients.PoolExhausted || e.Attempts != tries {
			t.Errorf("%v: got %#v, want %d attempts", kinds, err, tries)
		}
	}
}

func TestLoopCountsAttemptsOfAnError(t *testing.T) {
	shared := &clients.Error{Kind: clients.Reset, Err: io.EOF}
	_, err := retry().Do(t.Context(), &clients.Request{Method: "GET"}, func(context.Context, *clients.Request) (*clients.Response, error) {
		return nil, shared
	})
	e, ok := errors.AsType[*clients.Error](err)
	if !ok || e.Kind != clients.Reset || e.Attempts != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("got %#v, want a reset after 3 attempts", err)
	}
	if shared.Attempts != 0 {
		t.Error("the attempt's own error was written to")
	}
}

func TestLoopSendsAPostOnce(t *testing.T) {
	calls := 0
	_, err := retry().Do(t.Context(), &clients.Request{Method: "POST"}, func(context.Context, *clients.Request) (*clients.Response, error) {
		calls++
		return nil, &clients.Error{Kind: clients.Reset}
	})
	if calls != 1 || clients.KindOf(err) != clients.Reset {
		t.Errorf("%d attempts, %v", calls, err)
	}
}

func TestLoopDrainsWhatItTriesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		length int64
		want   int // bytes read
	}{
		"short":          {1 << 10, 1 << 10},
		"long":           {1 << 20, 0},
		"unknown length": {-1, clients.DrainLimit},
	} {
		t.Run(name, func(t *testing.T) {
			body := &countedBody{left: 1 << 20}
			if c.length >= 0 {
				body.left = int(c.length)
			}
			calls := 0
			_, err := retry().Do(t.Context(), &clients.Request{Method: "GET"}, func(context.Context, *clients.Request) (*clients.Response, error) {
				if calls++; calls > 1 {
					return clients.NewResponse(200, nil, nil), nil
				}
				return &clients.Response{Status: 500, Body: body, ContentLength: c.length}, nil
			})
			if err != nil || body.read != c.want || !body.closed {
				t.Errorf("read %d bytes, want %d; closed: %v; %v", body.read, c.want, body.closed, err)
			}
		})
	}
}

func TestLoopWaitEndsWithTheContext(t *testing.T) {
	cause := &clients.Error{Kind: clients.TimeoutHeader, Err: errors.New("enough")}
	for name, c := range map[string]struct {
		cancel func(context.Context) context.Context
		want   clients.Kind
	}{
		"downstream left": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx
		}, clients.Canceled},
		"deadline": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			_ = cancel
			return ctx
		}, clients.TimeoutHeader},
		"a cause of ours": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(cause) })
			return ctx
		}, clients.TimeoutHeader},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := retry(func(r *clients.Retry) { r.Backoff.Max = time.Hour })
				start := time.Now()
				_, err := p.Do(c.cancel(t.Context()), &clients.Request{Method: "GET"}, func(context.Context, *clients.Request) (*clients.Response, error) {
					return clients.NewResponse(503, clients.Fields{{Name: "Retry-After", Value: "600"}}, nil), nil
				})
				if took := time.Since(start); took != time.Second || clients.KindOf(err) != c.want {
					t.Errorf("after %v: %v, want %v after 1s", took, err, c.want)
				}
			})
		})
	}
}

// countedBody gives bytes until left is used up.
type countedBody struct {
	left, read int
	closed     bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), b.left)
	b.left -= n
	b.read += n
	return n, nil
}

func (b *countedBody) Close() error { b.closed = true; return nil }
