package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"gatebench/loadtest/experiment"
)

// progress shows how far an experiment is: a view that is redrawn on a terminal, plain
// lines elsewhere.
type progress struct {
	view  *view  // nil where lines are written
	lines *lines // nil where there is a view
}

func newProgress(w *world, plan experiment.Plan) *progress {
	p := &progress{}
	if env := w.env(); isTerminal(w.stderr, env) && env["CI"] == "" {
		p.view = newView(w.stderr, plan, func() (columns, rows int) { return terminalSize(w) })
		p.view.start()
		return p
	}
	p.lines = newLines(w.stderr)
	return p
}

// lines are written aside, so that whoever reads them slowly or not at all (a full pipe)
// holds up nothing.
type lines struct {
	queue   chan string
	written chan struct{} // closed when all are
}

// waitingLines is how many lines may wait for their reader; more are lost to it.
const waitingLines = 256

func newLines(w io.Writer) *lines {
	l := &lines{queue: make(chan string, waitingLines), written: make(chan struct{})}
	go func() {
		defer close(l.written)
		for line := range l.queue {
			fmt.Fprintln(w, line)
		}
	}()
	return l
}

func (l *lines) add(line string) {
	select {
	case l.queue <- line:
	default:
	}
}

func (l *lines) end() {
	close(l.queue)
	await(l.written)
}

// await waits for a terminal or pipe to take what was written, and no longer than its
// patience lasts.
func await(done <-chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// terminalSize is asked for every frame: terminals are resized.
func terminalSize(w *world) (columns, rows int) {
	if f, ok := w.stderr.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

func (p *progress) event(e experiment.Event) {
	if p.view != nil {
		p.view.step(e)
		return
	}
	p.lines.add(describe(e))
}

// live is nil where nobody looks: then loads are not asked.
func (p *progress) live() func(experiment.Live) {
	if p.view == nil {
		return nil
	}
	return p.view.load
}

// describe says what runs, how many trials are done and when all will be.
func describe(e experiment.Event) string {
	if e.Phase == "" {
		return fmt.Sprintf("done: %d of %d trials", e.Done, e.Total)
	}
	what := []string{e.Phase}
	if e.Profile != "" {
		what = append(what, e.Profile)
	}
	if e.Arm != "" {
		what = append(what, e.Arm)
	} else {
		what = append(what, "all arms")
	}
	where := fmt.Sprintf("block %d/%d", e.Block+1, e.Blocks)
	switch e.Phase {
	case "pilot", "ceiling":
		where = "before the first block"
	case "pprof":
		where = "after the last block"
	}
	return fmt.Sprintf("%s: %s; %d of %d trials done, ends about %s (in %s)", where, strings.Join(what, " "),
		e.Done, e.Total, e.End.Format("15:04:05"), time.Until(e.End).Round(time.Second))
}

// end leaves the terminal clean.
func (p *progress) end() {
	if p.view != nil {
		p.view.end()
		return
	}
	p.lines.end()
}
