package cli

import (
	"fmt"
	"strings"
	"time"

	"gatebench/loadtest/experiment"
)

// progress shows how far an experiment is: one line that is redrawn on a terminal,
// plain lines elsewhere.
type progress struct {
	w      *world
	redraw bool
}

func newProgress(w *world) *progress {
	return &progress{w: w, redraw: isTerminal(w.stderr, w.env())}
}

func (p *progress) event(e experiment.Event) {
	line := describe(e)
	if p.redraw {
		width := terminalWidth(p.w.stderr, 80)
		if len(line) >= width {
			line = line[:width-1]
		}
		fmt.Fprintf(p.w.stderr, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.w.stderr, line)
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

// end leaves the terminal's line clean.
func (p *progress) end() {
	if p.redraw {
		fmt.Fprint(p.w.stderr, "\r\x1b[K")
	}
}
