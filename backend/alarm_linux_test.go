package backend

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newTestAlarm(t *testing.T) *alarm {
	t.Helper()
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

func TestAlarmNeverRingsEarlyAndAlwaysRings(t *testing.T) {
	a := newTestAlarm(t)
	var wg sync.WaitGroup
	for i := range 500 {
		d := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
		if i%10 == 0 {
			d = 0
		}
		wg.Go(func() {
			start := time.Now()
			if err := a.wait(t.Context(), d); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took < d {
				t.Errorf("%v were over after %v", d, took)
			}
		})
	}
	wg.Wait()
}

// The descriptor alone, without Go's timer behind it, rings for all: also for one
// whose time is before that of those who wait already, and after some have left.
func TestAlarmRingsByTheDescriptor(t *testing.T) {
	a := newTestAlarm(t)
	var wg sync.WaitGroup
	for i, d := range ms(30, 20, 10, 15, 0, 25, 20) {
		s := &sleeper{at: time.Now().Add(d), wake: make(chan struct{})}
		if err := a.add(s); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			a.remove(s)
			a.remove(s) // twice does nothing
			continue
		}
		wg.Go(func() {
			select {
			case <-s.wake:
			case <-time.After(10 * time.Second):
				t.Errorf("number %d was not woken", i)
			}
			if now := time.Now(); now.Before(s.at) {
				t.Errorf("number %d was woken %v early", i, s.at.Sub(now))
			}
		})
	}
	wg.Wait()
}

// The timer is always set to the first: for one that is before those who wait
// already, and not for one that is after.
func TestAlarmIsSetToTheFirst(t *testing.T) {
	a := newTestAlarm(t)
	for _, tc := range []struct{ add, left time.Duration }{
		{3 * time.Hour, 3 * time.Hour}, {time.Hour, time.Hour}, {2 * time.Hour, time.Hour},
	} {
		if err := a.add(&sleeper{at: time.Now().Add(tc.add), wake: make(chan struct{})}); err != nil {
			t.Fatal(err)
		}
		var set unix.ItimerSpec
		if err := unix.TimerfdGettime(a.fd, &set); err != nil {
			t.Fatal(err)
		}
		if left := time.Duration(set.Value.Nano()); left > tc.left || left < tc.left-time.Minute {
			t.Errorf("after adding %v it rings in %v, want %v", tc.add, left, tc.left)
		}
	}
}

func TestAlarmEndsWithTheContext(t *testing.T) {
	a := newTestAlarm(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.wait(ctx, time.Hour) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAlarmEndsWhenItCloses(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- a.wait(t.Context(), time.Hour) }()
	a.close()
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := a.wait(t.Context(), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// BenchmarkWait shows how late a wait of 2.5 ms ends in an idle process.
func BenchmarkWait(b *testing.B) {
	a, err := newAlarm()
	if err != nil {
		b.Fatal(err)
	}
	defer a.close()
	for name, wait := range map[string]func(context.Context, time.Duration) error{"alarm": a.wait, "timer": sleep} {
		b.Run(name, func(b *testing.B) {
			const d = 2500 * time.Microsecond
			for b.Loop() {
				_ = wait(b.Context(), d)
			}
			late := b.Elapsed()/time.Duration(b.N) - d
			b.ReportMetric(float64(late.Microseconds()), "µs-late")
		})
	}
}
