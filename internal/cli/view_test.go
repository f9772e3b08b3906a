package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
				if n := len([]rune(l)); n >= columns {
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
		v, out := viewed(func() (int, int) { return sc.columns, 50 })
		see := func() {
			sc.write(t, out.String())
			out.Reset()
		}
		halfway(v)
		see()
		for _, columns := range []int{40, 120, 60} {
			sc.resize(t, columns)
			time.Sleep(frameEvery)
			v.step(v.event)
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
			v.mu.Lock()
			if out.Len() > 0 {
				frames++
			}
			out.Reset()
			v.mu.Unlock()
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
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines on a terminal of 4", n)
	}
}
