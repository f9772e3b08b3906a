package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func stagesOf(start Level, stages ...Stage) Profile {
	p := DefaultProfile()
	p.Executor, p.Start, p.Stages = RampingArrivalRate, start, stages
	return p
}

func at(rate float64) Level { return Level{Rate: perSecond(rate)} }

func TestRampIsExact(t *testing.T) {
	up := stagesOf(Level{}, Stage{at(10), 10 * time.Second})
	ladder := stagesOf(Level{}, Stage{at(10), 0}, Stage{at(10), time.Second}, Stage{at(20), 0}, Stage{at(20), time.Second})
	gap := stagesOf(at(1), Stage{at(1), 2 * time.Second}, Stage{Level{}, 0}, Stage{Level{}, 5 * time.Second}, Stage{at(1), 0}, Stage{at(1), time.Second})
	down := stagesOf(at(10), Stage{Level{}, 10 * time.Second})
	warm := stagesOf(at(5), Stage{at(15), 10 * time.Second})
	warm.Warmup = 2 * time.Second
	for _, tt := range []struct {
		name string
		p    Profile
		i    int64
		want time.Duration
	}{
		// N(t) = t²/2.
		{"up", up, 0, 0},
		{"up", up, 2, 2 * time.Second},
		{"up", up, 50, forever}, // N(10 s) = 50: those are 0 … 49
		{"up", up, 8, 4 * time.Second},
		{"ladder", ladder, 10, time.Second},
		{"ladder", ladder, 12, 1100 * time.Millisecond},
		{"ladder", ladder, 30, forever},
		{"gap", gap, 1, time.Second},
		{"gap", gap, 2, 7 * time.Second},
		// N(t) = 10t − t²/2.
		{"down", down, 18, 2 * time.Second},
		{"down", down, 48, 8 * time.Second},
		{"warm-up", warm, 10, 2 * time.Second},
		// N(t) = 10 + 5s + s²/2.
		{"warm-up", warm, 22, 4 * time.Second},
	} {
		got := tt.p.schedule().due(tt.i)
		if tt.want == forever && got < tt.p.Warmup+tt.p.Window() || tt.want != forever && (got-tt.want).Abs() > 2 {
			t.Errorf("%s: due(%d) = %v, want %v", tt.name, tt.i, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		p    Profile
		t    time.Duration
		want int64
	}{
		{"up", up, 10 * time.Second, 50},
		{"up", up, 2*time.Second + 100, 3},
		{"ladder", ladder, 2 * time.Second, 30},
		{"gap", gap, 6 * time.Second, 2},
		{"gap", gap, 8 * time.Second, 3},
		{"down", down, 10 * time.Second, 50},
		{"warm-up", warm, 12 * time.Second, 110},
	} {
		if got := tt.p.schedule().before(tt.t); got != tt.want {
			t.Errorf("%s: before(%v) = %d, want %d", tt.name, tt.t, got, tt.want)
		}
	}
}

// The rate in every small window is that of the line in its middle, and before is
// the inverse of due, whatever the stages.
func TestRampKeepsItsLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Custom(func(t *rapid.T) Level {
			return at(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(.01, 10_000)).Draw(t, "rate"))
		})
		stage := rapid.Custom(func(t *rapid.T) Stage {
			return Stage{level.Draw(t, "target"), time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, int64(time.Minute))).Draw(t, "duration"))}
		})
		p := stagesOf(level.Draw(t, "start"), rapid.SliceOfN(stage, 1, 5).Draw(t, "stages")...)
		if p.Window() == 0 {
			t.Skip()
		}
		r := p.schedule()
		end := p.Window()
		from := time.Duration(rapid.Int64Range(0, int64(end)-1).Draw(t, "from"))
		n := r.before(from)
		if n > 0 && r.due(n-1) >= from || r.due(n) < from {
			t.Fatalf("before(%v) = %d, but due(%d) = %v and due(%d) = %v", from, n, n-1, r.due(n-1), n, r.due(n))
		}
		if r.due(n) > r.due(n+1) {
			t.Fatalf("due steps back at %d: %v, %v", n, r.due(n), r.due(n+1))
		}
		area := 0.0
		for _, s := range p.stretches() {
			area += (s.start + s.end) / 2 * (s.to - s.from).Seconds()
		}
		if got := float64(r.before(end)); got < area-1.001 || got > area+1.001 {
			t.Fatalf("%v arrivals, and the area below the line is %v", got, area)
		}
	})
}

// The number of arrivals is exact, their gaps are exponential, and the seed decides.
func TestPoissonArrivals(t *testing.T) {
	p := profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(1000), Warmup: 10 * time.Second, Duration: 90 * time.Second, Arrivals: Poisson, Seed: 7})
	d := p.schedule().(drawn)
	if n := d.before(p.Warmup); n != 10_000 || len(d) != 100_000 || d.before(p.Warmup+p.Duration) != 100_000 {
		t.Errorf("%d arrivals in the warm-up, %d in all", n, len(d))
	}
	// Of exponential gaps of mean m, a share of 1/e is longer than m, and the
	// standard deviation is m. Four standard errors.
	var longer int
	var squares float64
	for i := 1; i < len(d); i++ {
		gap := d.due(int64(i)) - d.due(int64(i-1))
		if gap < 0 {
			t.Fatalf("due steps back at %d", i)
		}
		if gap > time.Millisecond {
			longer++
		}
		squares += (gap.Seconds() - .001) * (gap.Seconds() - .001)
	}
	n := float64(len(d))
	near(t, "share longer than the mean", float64(longer)/n, 1/math.E, 4*math.Sqrt(.2325/n))
	near(t, "standard deviation, ms", 1000*math.Sqrt(squares/n), 1, 4*math.Sqrt(8/n)/2)
	if again := p.schedule().(drawn); !slices.Equal(d, again) {
		t.Error("the same seed drew other arrivals")
	}
	p.Seed++
	if other := p.schedule().(drawn); slices.Equal(d, other) {
		t.Error("another seed drew the same arrivals")
	}
	if d.due(int64(len(d))) != forever {
		t.Error("there are more arrivals than were drawn")
	}
}

// Where a ramp is steeper there are more Poisson arrivals, too.
func TestPoissonFollowsTheRamp(t *testing.T) {
	p := stagesOf(Level{}, Stage{at(20_000), 10 * time.Second})
	p.Arrivals = Poisson
	n := p.schedule().before(5 * time.Second) // a quarter of the area
	near(t, "in the first half", float64(n), 25_000, 4*math.Sqrt(100_000*.25*.75))
}

func users(n int) Level { return Level{Users: n} }

func TestShifts(t *testing.T) {
	const s = time.Second
	hill := []Stage{{users(4), 4 * s}, {users(4), 2 * s}, {users(0), 4 * s}}
	for _, tt := range []struct {
		name   string
		start  int
		stages []Stage
		user   int
		want   []shift
	}{
		{"first up the hill", 0, hill, 0, []shift{{0, 10 * s}}},
		{"second", 0, hill, 1, []shift{{1 * s, 9 * s}}},
		{"last", 0, hill, 3, []shift{{3 * s, 7 * s}}},
		{"not asked for", 0, hill, 4, nil},
		{"jump", 0, []Stage{{users(2), 0}, {users(2), 5 * s}}, 1, []shift{{0, 5 * s}}},
		{"there from the start", 3, []Stage{{users(3), s}, {users(1), 2 * s}, {users(1), s}}, 1, []shift{{0, 3 * s}}},
		{"to the end", 3, []Stage{{users(3), s}, {users(1), 2 * s}, {users(1), s}}, 0, []shift{{0, 4 * s}}},
		{"leaves and comes back", 0, []Stage{{users(2), 0}, {users(2), s}, {users(0), 0}, {users(0), s}, {users(2), 0}, {users(2), s}}, 0, []shift{{0, s}, {2 * s, 3 * s}}},
		{"touches and stays", 2, []Stage{{users(1), s}, {users(2), s}}, 0, []shift{{0, 2 * s}}},
	} {
		p := Profile{Executor: RampingVUs, Start: users(tt.start), Stages: tt.stages}
		if diff := cmp.Diff(tt.want, shiftsOf(p.stretches(), tt.user), cmp.AllowUnexported(shift{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// At any moment as many users are at work as the line says, rounded up.
func TestShiftsAddUpToTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stage := rapid.Custom(func(t *rapid.T) Stage {
			return Stage{users(rapid.IntRange(0, 20).Draw(t, "users")), time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "duration"))}
		})
		p := Profile{Executor: RampingVUs, Stages: rapid.SliceOfN(stage, 1, 6).Draw(t, "stages")}
		ss := p.stretches()
		if len(ss) == 0 {
			t.Skip()
		}
		when := time.Duration(rapid.Int64Range(0, int64(p.Window())-1).Draw(t, "at"))
		atWork := 0
		for i := range int(peak(ss)) {
			for _, sh := range shiftsOf(ss, i) {
				if sh.on <= when && when < sh.off {
					atWork++
				}
			}
		}
		for _, s := range ss {
			if s.from <= when && when < s.to {
				level := s.start + (s.end-s.start)*float64(when-s.from)/float64(s.to-s.from)
				// A nanosecond off the crossing is rounding.
				slack := 1e-9 + math.Abs(s.end-s.start)/float64(s.to-s.from)*2
				if float64(atWork) < math.Ceil(level-slack) || float64(atWork) > math.Ceil(level+slack)+boolToFloat(math.Abs(level-math.Round(level)) < slack) {
					t.Fatalf("%d users at %v, want %v", atWork, when, level)
				}
			}
		}
	})
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func TestStagesAreReadAsWritten(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{"10s:200", "200"}, {"0s:500/s", "500/s"}, {"1m:45%", "45%"}, {"1s:0", "0"},
	} {
		s, err := ParseStage(tt.in)
		if err != nil || s.Target.String() != tt.out {
			t.Errorf("%s: %v, %v", tt.in, s, err)
		}
	}
	for _, bad := range []string{"10s", "200:10s", "10s:", "10s:many", "-1s:3", "10:5"} {
		if s, err := ParseStage(bad); err == nil {
			t.Errorf("%q became %v", bad, s)
		}
	}
}
