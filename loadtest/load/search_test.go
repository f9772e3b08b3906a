package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestHuntFindsTheEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.Float64Range(1.2, 100_000).Draw(t, "edge")
		guess := rapid.Float64Range(1, 100_000).Draw(t, "guess")
		top := 0.0
		if rapid.Bool().Draw(t, "bounded") {
			top = rapid.Float64Range(guess, 200_000).Draw(t, "top")
		}
		tries := 0
		at := map[float64]int{}
		b, err := hunt(guess, top, func(rate float64) (bool, error) {
			if tries++; tries > 200 || top > 0 && rate > top || rate < searchFloor {
				t.Fatalf("try %d at %v", tries, rate)
			}
			at[rate]++
			return rate <= edge, nil
		})
		for _, end := range []float64{b.lo, b.hi} {
			if end > 0 && at[end] < confirmations-1 {
				t.Fatalf("the end at %v was tried %d times", end, at[end])
			}
		}
		if err != nil || !b.confirmed {
			t.Fatalf("%+v, %v", b, err)
		}
		if top > 0 && top <= edge {
			if b.lo != top || b.hi != 0 {
				t.Fatalf("%+v, and all of it up to %v is met", b, top)
			}
			return
		}
		if b.lo > edge || b.hi <= edge || b.hi > b.lo*searchInterval+1e-9 {
			t.Fatalf("%+v, and the edge is %v", b, edge)
		}
	})
}

func TestHuntMeetsNothing(t *testing.T) {
	b, err := hunt(100, 0, func(float64) (bool, error) { return false, nil })
	if err != nil || b.lo != 0 || b.hi != searchFloor {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestHuntEndsWhenTold(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	b, err := hunt(100, 0, func(rate float64) (bool, error) {
		if n++; n > 4 {
			return false, stop
		}
		return rate < 150, nil
	})
	if !errors.Is(err, stop) || b.lo != 100 || b.hi != 200 || b.confirmed {
		t.Errorf("%+v, %v", b, err)
	}
}

// A target whose limit is seen with 5 % of noise: the interval holds the true limit
// to within that noise, nearly always.
func TestHuntBearsNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 7))
	off := 0
	for range 200 {
		b, err := hunt(400, 0, func(rate float64) (bool, error) { return rate <= 1000*(1+.05*rng.NormFloat64()), nil })
		if err != nil {
			t.Fatal(err)
		}
		if b.lo > 1100 || b.hi < 900 || b.hi > b.lo*1.1 {
			off++
		}
	}
	if off > 10 {
		t.Errorf("%d of 200 searches are off by more than two standard deviations", off)
	}
}

// Four workers of 10 ms carry 400/s. A queue that grows for a second and a half
// makes the p99 miss 50 ms a little above that.
func TestMaxRateSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := queue(4, 10*time.Millisecond)
		p := profile(Profile{Executor: MaxRateSearch, Duration: 10 * time.Second, Objective: Objective{"p99": bound(t, "< 50ms"), "errors": bound(t, "<= 0%")}})
		s, err := searchRun(t.Context(), p, func(ctx context.Context, p Profile) (*Summary, error) {
			_, s := loadPipes(t, ctx, p, server)
			return s, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f := s.Search
		near(t, "saturation", *f.Saturation, 400, 5)
		if *f.Lo < 385 || *f.Lo > 405 || *f.Hi < 400 || *f.Hi > *f.Lo*searchInterval+.01 || !f.Confirmed {
			t.Errorf("[%v, %v], confirmed %v", *f.Lo, *f.Hi, f.Confirmed)
		}
		near(t, "offered", s.Offered, *f.Lo, .2)
		if s.Executor != MaxRateSearch || !s.Valid || len(f.Probes) < 10 {
			t.Errorf("%s, %v, %d probes", s.Executor, s.Warnings, len(f.Probes))
		}
	})
}

func TestSearchOfADeadTarget(t *testing.T) {
	p := profile(Profile{Executor: MaxRateSearch, Duration: time.Second, Objective: Objective{"p99": bound(t, "< 50ms")}})
	s, err := searchRun(t.Context(), p, func(context.Context, Profile) (*Summary, error) { return &Summary{Valid: true}, nil })
	if err != nil || s.Valid || s.Search.Lo != nil || s.Search.Hi != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestInterruptedSearchKeepsWhatItKnows(t *testing.T) {
	p := profile(Profile{Executor: MaxRateSearch, Duration: time.Second, Rate: perSecond(1000), Objective: Objective{"errors": bound(t, "< 1%")}})
	n := 0
	s, err := searchRun(t.Context(), p, func(_ context.Context, p Profile) (*Summary, error) {
		n++
		return &Summary{Valid: true, Interrupted: n > 3, Offered: p.Rate.PerSecond, Requests: Requests{Sent: 10, OK: 10}, Series: Series{Interval: 1}}, nil
	})
	if err != nil || !s.Interrupted || s.Offered != 500 || *s.Search.Lo != 500 || s.Search.Hi != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// Twenty workers of 100 ms carry 200/s exactly. At a tenth more the p99 stays below
// 400 ms for seconds: it is the growing that gives it away, in short probes too.
func TestShortSearchOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := profile(Profile{Executor: MaxRateSearch, Duration: 2 * time.Second, Objective: Objective{"p99": bound(t, "< 400ms")}})
		s, err := searchRun(t.Context(), p, func(ctx context.Context, p Profile) (*Summary, error) {
			_, s := loadPipes(t, ctx, p, queue(20, 100*time.Millisecond))
			return s, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f := s.Search
		if f.Lo == nil || f.Hi == nil || *f.Lo > 202 || *f.Lo < 190 || *f.Hi < 200 || !f.Confirmed || !s.Valid {
			t.Errorf("[%v, %v], confirmed %v, valid %v", f.Lo, f.Hi, f.Confirmed, s.Valid)
		}
	})
}

// queue answers by so many workers, each for so long.
func queue(workers int, each time.Duration) *pipes {
	busy := make(chan struct{}, workers)
	return &pipes{script: func(int64) string {
		busy <- struct{}{}
		time.Sleep(each)
		<-busy
		return answer200
	}}
}
