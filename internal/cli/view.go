package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"

	"gatebench/loadtest/experiment"
	"gatebench/loadtest/result"
)

// view redraws a few lines on a terminal while an experiment runs: which blocks of which
// arm are done, what the last trials of each measured, and the load of the moment.
//
// The figures are there to see that all is well. They are no verdict: whoever stops a run
// when they please finds differences that are not there.
type view struct {
	w    io.Writer
	size func() (columns, rows int)
	now  func() time.Time

	// What the run tells, in a moment and without a look at the terminal: one that
	// is stopped (Ctrl-S) or slow holds the drawing up, and never the run.
	mu    sync.Mutex
	plan  experiment.Plan
	event experiment.Event
	rows  map[string]*viewRow
	stale bool

	shown []string // on the screen now; of the goroutine that draws
	done  chan struct{}
	drawn chan struct{} // closed when nothing more is drawn
}

const (
	// frameEvery bounds what drawing costs: four frames a second.
	frameEvery = 250 * time.Millisecond
	// patience is how long a terminal may take over the last frame. One that takes
	// longer keeps it.
	patience = time.Second
)

// narrow is a terminal on which the lines above the arms are put more briefly.
const narrow = 70

// viewRow is what is known of an arm.
type viewRow struct {
	blocks   map[int]cell
	cpu, p99 *float64 // of the last trial that measured them
	errors   int64

	// The load of the moment, and the look before it.
	live, before experiment.Live
	seen, then   time.Time
	rate, share  float64
}

// cell is one block of an arm.
type cell struct {
	trials int
	void   bool
}

func newView(w io.Writer, plan experiment.Plan, size func() (columns, rows int)) *view {
	v := &view{w: w, size: size, now: time.Now, plan: plan, rows: map[string]*viewRow{}, done: make(chan struct{}), drawn: make(chan struct{})}
	for _, a := range plan.Arms {
		v.rows[a.Name] = &viewRow{blocks: map[int]cell{}}
	}
	return v
}

// start draws from now on, where something has changed.
func (v *view) start() {
	go func() {
		defer close(v.drawn)
		ticker := time.NewTicker(frameEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				v.draw()
			case <-v.done:
				columns, _ := v.size()
				_, _ = io.WriteString(v.w, v.erase(columns))
				v.shown = nil
				return
			}
		}
	}()
}

// end takes the frame off the screen, if the terminal takes that.
func (v *view) end() {
	close(v.done)
	await(v.drawn)
}

func (v *view) step(e experiment.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range e.Ended {
		if r := v.rows[t.Arm]; r != nil {
			r.take(t)
		}
	}
	for _, r := range v.rows {
		r.rate, r.share, r.live, r.before = 0, 0, experiment.Live{}, experiment.Live{}
	}
	v.event, v.stale = e, true
}

func (r *viewRow) take(t result.Trial) {
	c := r.blocks[t.Block]
	c.trials, c.void = c.trials+1, c.void || !t.Valid
	r.blocks[t.Block] = c
	if x, ok := t.Metrics["cpu_us_per_request"]; ok {
		r.cpu = &x
	}
	if x, ok := t.Metrics["response_time_p99"]; ok {
		r.p99 = &x
	}
	r.errors += t.Errors
}

func (v *view) load(l experiment.Live) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.rows[l.Arm]
	if r == nil {
		return
	}
	r.before, r.then, r.live, r.seen = r.live, r.seen, l, v.now()
	if wall := (l.Elapsed - r.before.Elapsed).Seconds(); wall > 0 && l.Done >= r.before.Done {
		r.rate = float64(l.Done-r.before.Done) / wall
	}
	if wall := r.seen.Sub(r.then).Seconds(); r.before.GatewayCPU > 0 && wall > 0 {
		r.share = (l.GatewayCPU - r.before.GatewayCPU).Seconds() / wall
	}
	v.stale = true
}

// draw replaces the frame, if there is anything new.
func (v *view) draw() {
	columns, rows := v.size()
	lines, ok := v.news(columns)
	if !ok {
		return
	}
	if rows > 1 && len(lines) > rows-1 {
		lines = lines[:rows-1]
	}
	_, _ = io.WriteString(v.w, v.erase(columns)+strings.Join(lines, "\n")+"\n") // a terminal that is gone is no reason to stop
	v.shown = lines
}

// news is the next frame; ok is false where it would be the last one again.
func (v *view) news(columns int) (lines []string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		return nil, false
	}
	v.stale = false
	return v.frame(columns), true
}

// erase takes off what is shown, on a terminal that may be narrower by now and have
// wrapped it.
func (v *view) erase(columns int) string {
	up := 0
	for _, l := range v.shown {
		up += max(1, (runewidth.StringWidth(l)+columns-1)/max(1, columns))
	}
	if up == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}

// frame is what there is to see, a line each, none longer than the width.
func (v *view) frame(columns int) []string {
	lines := []string{v.stage(), v.moment(columns), v.left(columns)}
	name := 8
	for _, a := range v.plan.Arms {
		name = max(name, runewidth.StringWidth(clean(a.Name)))
	}
	name = min(name, max(10, columns/3))
	blocks := max(v.plan.Blocks, v.event.Blocks)
	figures := columns >= name+blocks+3+34
	if figures {
		lines = append(lines, pad("arm", name)+"  "+pad("blocks", max(6, blocks))+"  "+fmt.Sprintf("%9s %9s %9s", "CPU µs", "p99 ms", "errors"))
	}
	for _, a := range v.plan.Arms {
		r := v.rows[a.Name]
		line := pad(a.Name, name) + "  " + r.cells(blocks, max(1, columns-name-3), len(v.parts()))
		if figures {
			line = pad(line, name+2+max(6, blocks)) + "  " + fmt.Sprintf("%9s %9s %9d", shortFigure(r.cpu), shortFigure(r.p99), r.errors)
		}
		lines = append(lines, line)
	}
	for i, l := range lines {
		lines[i] = cut(l, columns-1)
	}
	return lines
}

// parts are the phases of a block: the duet, and each profile.
func (v *view) parts() []string {
	var ps []string
	if v.plan.Duet.Duration > 0 {
		ps = append(ps, string(result.Duet))
	}
	for _, p := range v.plan.Profiles {
		ps = append(ps, p.Name)
	}
	return ps
}

// cells has a mark a block: done, begun, void, or to come; or a number where there is no
// room for them.
func (r *viewRow) cells(blocks, room, parts int) string {
	if blocks > room {
		done := 0
		for _, c := range r.blocks {
			if c.trials >= parts {
				done++
			}
		}
		return fmt.Sprintf("%d/%d", done, blocks)
	}
	var b strings.Builder
	for i := range blocks {
		switch c := r.blocks[i]; {
		case c.void:
			b.WriteString("x")
		case c.trials >= parts:
			b.WriteString("█")
		case c.trials > 0:
			b.WriteString("▄")
		default:
			b.WriteString("·")
		}
	}
	return b.String()
}

// stage says what runs.
func (v *view) stage() string {
	e := v.event
	what := e.Phase
	switch {
	case e.Phase == "":
		what = "starting"
	case e.Profile != "":
		what = e.Profile
	}
	if e.Arm != "" {
		what += " " + e.Arm
	}
	switch e.Phase {
	case string(result.Duet), string(result.Solo):
		return fmt.Sprintf("%s: block %d of %d, %s", v.plan.Name, e.Block+1, e.Blocks, what)
	}
	return v.plan.Name + ": " + what
}

// moment sums up the loads that run now.
func (v *view) moment(columns int) string {
	var rate, share float64
	var failed int64
	var p99 time.Duration
	loads := 0
	for _, r := range v.rows {
		if r.live.Elapsed > 0 {
			loads++
			rate, share, failed, p99 = rate+r.rate, share+r.share, failed+r.live.Failed, max(p99, r.live.P99)
		}
	}
	if loads == 0 {
		return "now: –"
	}
	if columns < narrow {
		return fmt.Sprintf("%.0f/s, CPU %.0f %%, p99 %.3g ms, %d failed", rate, 100*share, float64(p99)/float64(time.Millisecond), failed)
	}
	return fmt.Sprintf("now: %.0f/s, gateways %.0f %% of a core; so far p99 %.2f ms, %d failed", rate, 100*share, float64(p99)/float64(time.Millisecond), failed)
}

func (v *view) left(columns int) string {
	e := v.event
	if e.End.IsZero() {
		return ""
	}
	if columns < narrow {
		return fmt.Sprintf("%d of %d trials, %s left", e.Done, e.Total, max(0, e.End.Sub(v.now())).Round(time.Second))
	}
	return fmt.Sprintf("%d of %d trials, %s left, ends %s", e.Done, e.Total, max(0, e.End.Sub(v.now())).Round(time.Second), e.End.Format("15:04:05"))
}

func shortFigure(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.3g", *x)
}

// pad fills up with blanks, or cuts.
func pad(s string, width int) string {
	return runewidth.FillRight(cut(s, width), width)
}

// cut keeps to a number of columns, of which a wide character takes two.
func cut(s string, width int) string {
	if s = clean(s); width <= 0 {
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// clean leaves nothing that moves the cursor or turns the direction of writing: names
// are anybody's.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
