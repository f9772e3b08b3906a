package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gatebench/loadtest/result"
)

// ChangesText writes c for a terminal or a pipe of that width in columns, at least
// 40.
func ChangesText(w io.Writer, c *Changes, width int) error {
	p := &page{width: max(width, 40)}
	p.prose("gatebench compare: old %s, new %s", c.Old.words(), c.New.words())
	for _, sentence := range c.answer() {
		p.prose("%s", sentence)
	}
	for from := 0; from < len(c.Changes); {
		to := from
		for to < len(c.Changes) && c.Changes[to].sameFigure(c.Changes[from]) {
			to++
		}
		p.changes(c.Changes[from:to], c.Old.Baseline)
		from = to
	}
	p.absolutes(c)
	if len(c.Versions)+len(c.Warnings) > 0 {
		p.section("What else differs")
		for _, d := range c.Versions {
			p.line("  ", "%s", d)
		}
		for _, warning := range c.Warnings {
			p.line("  ", "warning: %s", warning)
		}
	}
	p.section("How")
	p.line("  ", "method: %s", c.Method)
	p.line("  ", "old: %s", c.Old.Command)
	p.line("  ", "new: %s", c.New.Command)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (r Run) words() string {
	words := "plan " + r.Plan
	if !r.Started.IsZero() {
		words += " of " + r.Started.UTC().Format("2006-01-02 15:04 MST")
	}
	if r.Version != "" {
		words += " by " + r.Version
	}
	return words
}

// answer says what a reader asks first: is anything worse now.
func (c *Changes) answer() []string {
	if !c.Valid {
		return []string{"NOT VALID: " + strings.Join(c.InvalidReasons, "; ") + "."}
	}
	var sure, other, better []string
	undecided, judged := 0, 0
	for _, ch := range slices.Concat(c.Changes, c.Absolutes) {
		if ch.Verdict == NotJudged {
			continue
		}
		judged++
		words := ch.Arm + " in " + ch.title() + " " + ch.difference()
		switch ch.Verdict {
		case Regression:
			if ch.Beyond {
				sure = append(sure, words)
			} else {
				other = append(other, words)
			}
		case Improvement:
			better = append(better, words)
		case CannotTellChange, ChangeNotValid:
			undecided++
		case NoChange, NotJudged:
		}
	}
	if judged == 0 {
		return []string{"No data: neither run measured anything that is judged."}
	}
	var out []string
	say := func(arms []string, format string) {
		if len(arms) > 0 {
			out = append(out, fmt.Sprintf(format, strings.Join(arms, ", ")))
		}
	}
	say(sure, "REGRESSION: %s.")
	if len(sure) == 0 {
		out = append(out, "No regression is shown that surely exceeds its margin.")
	}
	say(other, "Regression, but not surely beyond the margin: %s.")
	say(better, "Improvement: %s.")
	if undecided > 0 {
		out = append(out, fmt.Sprintf("Of %d of %d the data do not say whether they changed.", undecided, judged))
	}
	return out
}

func (c Change) sameFigure(other Change) bool {
	return c.Metric == other.Metric && c.Profile == other.Profile
}

func (c Change) title() string {
	m, _ := result.MetricNamed(c.Metric)
	return m.Title + " [" + c.Profile + "]"
}

func (c Change) difference() string {
	return difference(&result.Comparison{Ratio: c.Ratio, Lo: c.Lo, Hi: c.Hi})
}

// changes lays out one metric.
func (p *page) changes(cs []Change, baseline string) {
	m, _ := result.MetricNamed(cs[0].Metric)
	better := "higher is better"
	if m.LowerIsBetter {
		better = "lower is better"
	}
	p.section(fmt.Sprintf("%s against %s (%s, margin %s)", cs[0].title(), baseline, better, percent(cs[0].Margin)))
	rows := [][]string{{"arm", "old", "new", "change", "verdict"}}
	for _, c := range cs {
		rows = append(rows, []string{c.Arm, share(c.Old), share(c.New), c.difference(), c.verdict()})
	}
	p.table(rows, 1, 2, 3)
}

func share(ratio *float64) string {
	if ratio == nil {
		return "–"
	}
	return signed(*ratio-1) + " %"
}

func (c Change) verdict() string {
	v := string(c.Verdict)
	switch {
	case c.Verdict == Regression && !c.Beyond:
		v += ", not surely beyond the margin"
	case c.Verdict == CannotTellChange && c.OldBlocks > 0 && c.NewBlocks > 0:
		v += fmt.Sprintf(" (~%s each)", plural(c.BlocksNeeded, "block"))
	case c.Why != "" && (c.Verdict == CannotTellChange || c.Verdict == ChangeNotValid):
		v += ": " + c.Why
	}
	return v
}

// absolutes shows the figures themselves, a table a metric.
func (p *page) absolutes(c *Changes) {
	if len(c.Absolutes) == 0 {
		return
	}
	p.section("The figures themselves (medians over blocks)")
	p.line("  ", "%s", c.Floor)
	var rows [][]string
	for i, a := range c.Absolutes {
		if i == 0 || !a.sameFigure(c.Absolutes[i-1]) {
			m, _ := result.MetricNamed(a.Metric)
			title := a.title()
			if m.Unit != "" {
				title += ", " + m.Unit
			}
			rows = [][]string{{title, "old", "new", "change", "verdict"}}
		}
		rows = append(rows, []string{a.Arm, figureOrDash(a.Old), figureOrDash(a.New), a.difference(), a.verdict()})
		if i == len(c.Absolutes)-1 || !a.sameFigure(c.Absolutes[i+1]) {
			p.table(rows, 1, 2, 3)
		}
	}
}
