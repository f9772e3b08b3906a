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
		workers := make(chan struct{}, 4)
		server := &pipes{script: func(int64) string {
			workers <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-workers
			return answer200
		}}
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

// What is in flight grows by rate − capacity every second from the start on, so that
// it never doubles between middle and end of a window that had a warm-up.
func TestGrowing(t *testing.T) {
	run := func(seconds int, rate, capacity, inFlight int64) *Summary {
		s := &Summary{Seconds: float64(seconds), Offered: float64(rate), Series: Series{Interval: 1}}
		s.Generator.InFlight = float64(inFlight)
		for range seconds {
			s.Series.Points = append(s.Series.Points, Point{Sent: rate, OK: min(rate, capacity)})
		}
		return s
	}
	for _, c := range []struct {
		what string
		s    *Summary
		want bool
	}{
		{"keeps up", run(10, 1000, 1000, 50), false},
		{"half as much again as it can do", run(10, 1500, 1000, 6000), true},
		{"2 % more than it can do", run(10, 1020, 1000, 300), true},
		{"half a hundredth more", run(10, 1005, 1000, 75), false},
		{"too short to tell", run(1, 1500, 1000, 500), false},
		{"few requests, of which one more is in flight", run(4, 2, 1, 2), false},
	} {
		if got := growing(c.s); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	burst := run(10, 1000, 1000, 900)
	burst.Series.Points[9].OK -= 60 // at its end, as chance would have it
	if growing(burst) {
		t.Error("60 more beside 900 in flight: chance does that")
	}
	if burst.Generator.InFlight = 9; !growing(burst) {
		t.Error("60 more beside 9, and more than a hundredth of 5,000")
	}
}
