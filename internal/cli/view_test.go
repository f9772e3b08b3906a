package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"gatebench/loadtest/experiment"
	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
)

var updateFrames = flag.Bool("update-frames", false, "rewrite the frames of the live view")

func viewed(size func() (int, int)) (*view, *strings.Builder) {
	p := experiment.Plan{Name: "quick", Blocks: 8, Duet: experiment.Duet{Duration: time.Second}, Profiles: []experiment.Profile{{Name: "steady"}}}
	for _, name := range []string{"net/http", "resty", "an arm of a name that is far too long", "net/http (sentinel)"} {
		p.Arms = append(p.Arms, experiment.Arm{Name: name})
	}
	var b strings.Builder
	v := newView(&b, p, size)
	return v, &b
}

// halfway lets the view see two blocks and a half.
func halfway(v *view) {
	var ended []result.Trial
	for block := range 3 {
		for i, a := range v.plan.Arms {
			duet := result.Trial{Arm: a.Name, Block: block, Phase: result.Duet, Valid: true, Metrics: map[string]float64{"cpu_us_per_request": 79.412}}
			solo := result.Trial{Arm: a.Name, Block: block, Phase: result.Solo, Valid: block != 1 || i != 1, Errors: int64(i), Metrics: map[string]float64{"response_time_p99": 2.172}}
			ended = append(ended, duet)
			if block < 2 || i == 0 {
				ended = append(ended, solo)
			}
		}
	}
	v.step(experiment.Event{Phase: "solo", Profile: "steady", Arm: "resty", Block: 2, Blocks: 8, Done: 21, Total: 64, End: v.now().Add(72 * time.Second), Ended: ended})
	v.load(experiment.Live{Arm: "resty", Progress: load.Progress{Elapsed: time.Second, Done: 6000}, GatewayCPU: time.Second})
	time.Sleep(250 * time.Millisecond)
	v.load(experiment.Live{Arm: "resty", Progress: load.Progress{Elapsed: 1250 * time.Millisecond, Done: 7550, Failed: 3, P99: 2310 * time.Microsecond}, GatewayCPU: 1095 * time.Millisecond})
}

func TestFramesFitTheTerminal(t *testing.T) {
	for _, columns := range []int{20, 40, 80, 120} {
		synctest.Test(t, func(t *testing.T) {
			v, _ := viewed(func() (int, int) { return columns, 50 })
			halfway(v)
			got := strings.Join(v.frame(columns), "\n") + "\n"
			for _, l := range strings.Split(got, "\n") {
				if n := runewidth.StringWidth(l); n >= columns {
					t.Errorf("a line of %d in %d columns: %q", n, columns, l)
				}
			}
			file := filepath.Join("testdata", fmt.Sprintf("frame-%d.txt", columns))
			if *updateFrames {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%d columns, -want +got:\n%s", columns, diff)
			}
		})
	}
}

// screen is as much of a terminal as the view uses: lines that wrap, the cursor going up,
// and the screen cleared from there on.
type screen struct {
	columns int
	lines   []string
}

func (s *screen) write(t *testing.T, out string) {
	for out != "" {
		if rest, ok := strings.CutPrefix(out, "\r\x1b["); ok {
			var up int
			if _, err := fmt.Sscanf(rest, "%dA", &up); err != nil {
				t.Fatalf("not understood: %q", rest)
			}
			s.lines = s.lines[:max(0, len(s.lines)-up)]
			_, out, _ = strings.Cut(rest, "\x1b[J")
			continue
		}
		line, rest, _ := strings.Cut(out, "\n")
		for rs := []rune(line); ; rs = rs[s.columns:] {
			s.lines = append(s.lines, string(rs[:min(len(rs), s.columns)]))
			if len(rs) <= s.columns {
				break
			}
		}
		out = rest
	}
}

// resize wraps what is there anew, as terminals do.
func (s *screen) resize(t *testing.T, columns int) {
	old := strings.Join(s.lines, "\n") + "\n"
	s.columns, s.lines = columns, nil
	s.write(t, old)
}

func TestTheViewSurvivesAResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &screen{columns: 100, lines: []string{"$ gatebench run quick"}}
		var width atomic.Int64 // as the drawing asks for it, from its own goroutine
		width.Store(int64(sc.columns))
		v, out := viewed(func() (int, int) { return int(width.Load()), 50 })
		see := func() {
			sc.write(t, out.String())
			out.Reset()
		}
		v.start()
		halfway(v)
		time.Sleep(frameEvery)
		synctest.Wait()
		see()
		for _, columns := range []int{40, 120, 60} {
			sc.resize(t, columns)
			width.Store(int64(columns))
			v.step(v.event)
			time.Sleep(frameEvery)
			synctest.Wait()
			see()
			want := append([]string{"$ gatebench run quick"}, v.frame(columns)...)
			if diff := cmp.Diff(want, sc.lines); diff != "" {
				t.Errorf("%d columns, -want +got:\n%s", columns, diff)
			}
		}
		v.end()
		see()
		if len(sc.lines) != 1 {
			t.Errorf("it left %q", sc.lines)
		}
	})
}

func TestAtMostFourFramesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, out := viewed(func() (int, int) { return 80, 24 })
		v.start()
		frames := 0
		for range 1000 { // two seconds of news
			v.load(experiment.Live{Arm: "resty"})
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if out.Len() > 0 {
				frames++
			}
			out.Reset()
		}
		v.end()
		if frames < 4 || frames > 9 {
			t.Errorf("%d frames in two seconds", frames)
		}
	})
}

func TestAShortTerminalShowsTheTop(t *testing.T) {
	v, out := viewed(func() (int, int) { return 80, 4 })
	v.step(experiment.Event{Phase: "duet", Blocks: 8})
	v.draw()
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines on a terminal of 4", n)
	}
}

// A terminal that is stopped, or gone slow, holds up the drawing and nothing else: the
// run's own calls return, and so does its end.
func TestAStoppedTerminalStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		v, _ := viewed(func() (int, int) { return 80, 24 })
		v.w = writerFunc(func(b []byte) (int, error) {
			<-stopped
			return len(b), nil
		})
		v.start()
		halfway(v)
		time.Sleep(10 * frameEvery) // a frame is on its way, and stays there
		begin := time.Now()
		halfway(v)
		if took := time.Since(begin) - frameEvery; took > 0 { // halfway itself takes one
			t.Errorf("the run waited %v for the terminal", took)
		}
		v.end()
		if took := time.Since(begin) - frameEvery; took > patience {
			t.Errorf("the end waited %v", took)
		}
		close(stopped)
		<-v.drawn
	})
}

// Nor does a pipe that nobody reads.
func TestAFullPipeStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{})
		l := newLines(writerFunc(func(b []byte) (int, error) {
			<-full
			return len(b), nil
		}))
		begin := time.Now()
		for range 2 * waitingLines {
			l.add("a line")
		}
		l.end()
		if took := time.Since(begin); took > patience {
			t.Errorf("%v for lines that nobody reads", took)
		}
		close(full)
		<-l.written
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// Wide characters take two columns, combining ones none, and what would move the cursor
// or turn the line round is a blank.
func TestCutCountsColumns(t *testing.T) {
	for _, tt := range []struct {
		in    string
		width int
		want  string
	}{
		{"fasthttp", 8, "fasthttp"},
		{"fasthttp", 5, "fast…"},
		{"客户端甲", 8, "客户端甲"},
		{"客户端甲", 7, "客户端…"},
		{"客户端甲", 6, "客户…"},
		{"e\u0301te\u0301", 3, "e\u0301te\u0301"},
		{"a\u202eb\x1b[2Jc", 20, "a b [2Jc"},
	} {
		if got := cut(tt.in, tt.width); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.in, tt.width, got, tt.want)
		}
		if got := runewidth.StringWidth(pad(tt.in, 10)); got != 10 {
			t.Errorf("%q padded to 10 takes %d", tt.in, got)
		}
	}
}

// BenchmarkFrame is a frame of a large experiment: four of them a second may cost a
// hundredth of a core, 2.5 ms each.
func BenchmarkFrame(b *testing.B) {
	p := experiment.Plan{Name: "large", Blocks: 20, Duet: experiment.Duet{Duration: time.Second}, Profiles: []experiment.Profile{{Name: "steady"}}}
	p.Arms = append(p.Arms, experiment.Arm{Name: "resty"}) // whose load halfway tells of
	for i := range 11 {
		p.Arms = append(p.Arms, experiment.Arm{Name: fmt.Sprintf("an arm with a name, %d", i)})
	}
	v := newView(io.Discard, p, func() (int, int) { return 120, 50 })
	halfway(v)
	for b.Loop() {
		v.stale = true
		v.draw()
	}
	b.ReportMetric(100*4*b.Elapsed().Seconds()/float64(b.N), "%-of-a-core")
}
