package load

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestArrivalsAreExact(t *testing.T) {
	for _, tt := range []struct {
		rate arrivals
		i    int64
		want time.Duration
	}{
		{1, 0, 0},
		{1, 1, time.Second},
		{4, 1, 250 * time.Millisecond},
		{3, 3, time.Second},
		{3, 36_000 * 3, 10 * time.Hour}, // ten hours on, no rounding has added up
		{7, 7_000_000, 1_000_000 * time.Second},
		{.5, 3, 6 * time.Second},
		{1e6, 1, time.Microsecond},
	} {
		if got := tt.rate.due(tt.i); got != tt.want {
			t.Errorf("due(%d) at %v/s = %v, want %v", tt.i, float64(tt.rate), got, tt.want)
		}
	}
}

func TestArrivalsBefore(t *testing.T) {
	for _, tt := range []struct {
		rate arrivals
		t    time.Duration
		want int64
	}{
		{500, 10 * time.Second, 5000},
		{500, 0, 0},
		{500, 1, 1}, // the first is due at 0
		{500, 2 * time.Millisecond, 1},
		{500, 2*time.Millisecond + 1, 2},
		{.1, time.Second, 1},
		{1.0 / 60, time.Hour, 60},
		{1000.0 / 3, 3 * time.Second, 1000},
	} {
		if got := tt.rate.before(tt.t); got != tt.want {
			t.Errorf("before(%v) at %v/s = %d, want %d", tt.t, float64(tt.rate), got, tt.want)
		}
	}
}

// Between any two moments there are rate × length arrivals, within one, and before
// is the inverse of due.
func TestArrivalsKeepTheRateEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := arrivals(rapid.Float64Range(.001, maxRate).Draw(t, "rate"))
		from := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "from"))
		length := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "length"))

		n := a.before(from)
		if n > 0 && a.due(n-1) >= from || a.due(n) < from {
			t.Fatalf("before(%v) = %d, but due(%d) = %v and due(%d) = %v", from, n, n-1, a.due(n-1), n, a.due(n))
		}
		if a.due(n) > a.due(n+1) {
			t.Fatalf("due steps back at %d", n)
		}
		got := float64(a.before(from+length) - n)
		// One for the edges, and one arrival in 10^9 for the nanosecond grid.
		if want := length.Seconds() * float64(a); got < want-1-want/1e9 || got > want+1+want/1e9 {
			t.Fatalf("%v arrivals within %v, want %v", got, length, want)
		}
	})
}
