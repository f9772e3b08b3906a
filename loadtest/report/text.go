package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"gatebench/loadtest/result"
)

// Text writes s for a terminal or a pipe of that width in columns, at least 40.
// Nothing is said by colour: there is none.
func Text(w io.Writer, s Summary, width int) error {
	p := &page{width: max(width, 40)}
	p.head(s)
	p.bounds(s.Bounds)
	for _, j := range s.Judged {
		p.judged(j)
	}
	for _, o := range s.Outages {
		p.outage(o)
	}
	p.why(s.Why)
	p.causes(s.Causes)
	p.failed(s)
	p.givenUp(s.GivenUp)
	p.facts(s.Facts)
	_, err := io.WriteString(w, p.b.String())
	return err
}

type page struct {
	b     strings.Builder
	width int
}

// line writes words wrapped to the width behind the indent, lines after the first
// four columns further in.
func (p *page) line(indent string, format string, args ...any) {
	p.wrapped(indent, indent+"    ", format, args...)
}

// prose is line without hanging.
func (p *page) prose(format string, args ...any) { p.wrapped("", "", format, args...) }

func (p *page) wrapped(first, rest, format string, args ...any) {
	words := clean(fmt.Sprintf(format, args...))
	for _, l := range strings.Split(text.WrapSoft(words, p.width-len(rest)), "\n") {
		p.b.WriteString(strings.TrimRight(first+l, " ") + "\n")
		first = rest
	}
}

func (p *page) section(title string) {
	p.b.WriteString("\n")
	p.prose("%s", title)
}

// clean makes text from configuration or from upstream inert on a terminal: no
// control character passes, and none that turns the direction of writing.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func (p *page) head(s Summary) {
	p.prose("%s", s.Title)
	p.prose("%s", s.validity())
	p.b.WriteString("\n")
	for _, sentence := range s.Answer {
		p.prose("%s", sentence)
	}
}

func (p *page) bounds(bs []Bound) {
	if len(bs) == 0 {
		return
	}
	p.section("Thresholds")
	for _, b := range bs {
		p.line("  ", "%s", b.sentence())
	}
}

// judged lays out one metric: by how much and how sure.
func (p *page) judged(j Judged) {
	p.section(j.title())
	p.table(j.table(), 1, 2)
	for _, n := range j.notes() {
		p.line("  ", "%s", n)
	}
	if rows := j.aboveTable(); rows != nil {
		p.section(j.aboveTitle())
		p.table(rows, 1)
	}
}

// verdict words a row, whose doubts are in notes; where it stands on fewer blocks than the others it says so.
func verdict(r JudgedRow, blocks int) string {
	c := r.Comparison
	v := string(c.Verdict)
	switch {
	case r.Sentinel && c.Verdict != result.NotValid:
		v = "shows the noise"
	case c.Verdict == result.CannotTell && c.Blocks > 0:
		v += fmt.Sprintf(" (~%s)", plural(c.BlocksNeeded, "block"))
	case c.Why != "" && claimed(c.Verdict):
		v += ", see below"
	}
	if c.Blocks != blocks {
		v += fmt.Sprintf(", n = %d", c.Blocks)
	}
	return v
}

func figureOrDash(x *float64) string {
	if x == nil {
		return "–"
	}
	return figure(*x)
}

func (p *page) why(es []Explanation) {
	if len(es) == 0 {
		return
	}
	p.section(whyTitle)
	for _, e := range es {
		p.line("  ", "%s", e.sentence())
	}
	p.wrapped("  ", "  ", "%s", unknowable)
}

// causes lays out a metric a line, an arm a column.
func (p *page) causes(c Causes) {
	if len(c.Metrics) == 0 {
		return
	}
	p.section(causesTitle)
	rows := c.table()
	right := make([]int, len(c.Rows))
	for i := range right {
		right[i] = i + 1
	}
	p.table(rows, right...)
}

func (p *page) failed(s Summary) {
	p.section("What failed")
	for _, line := range s.failed() {
		p.line("  ", "%s", line)
	}
}

// listBlocks counts from 1, as people do.
func listBlocks(blocks []int) string {
	words := make([]string, len(blocks))
	for i, b := range blocks {
		words[i] = strconv.Itoa(b + 1)
	}
	if len(words) == 1 {
		return "block " + words[0]
	}
	return "blocks " + strings.Join(words, ", ")
}

func (p *page) givenUp(gs []GivenUp) {
	if len(gs) == 0 {
		return
	}
	p.section("What you give up (reasons: gatebench clients)")
	for _, g := range gs {
		p.line("  ", "%s: %s", g.Arm, strings.Join(g.Deviations, ", "))
	}
}

func (p *page) facts(fs []Fact) {
	p.section("How")
	for _, f := range fs {
		p.line("  ", "%s: %s", f.Name, f.Value)
	}
}

// table writes rows, the first being the head, with those columns to the right. A
// table wider than the page is written a row a paragraph instead.
func (p *page) table(rows [][]string, right ...int) {
	for _, r := range rows {
		for i := range r {
			r[i] = clean(r[i])
		}
	}
	t := table.NewWriter()
	t.SetStyle(table.Style{Box: table.BoxStyle{PaddingLeft: "  ", PaddingRight: ""}})
	var configs []table.ColumnConfig
	for i := range rows[0] {
		c := table.ColumnConfig{Number: i + 1}
		if slices.Contains(right, i) {
			c.Align = text.AlignRight
		}
		configs = append(configs, c)
	}
	t.SetColumnConfigs(configs)
	for _, r := range rows {
		cells := make(table.Row, len(r))
		for i := range r {
			cells[i] = r[i]
		}
		t.AppendRow(cells)
	}
	lines := strings.Split(t.Render(), "\n")
	if slices.ContainsFunc(lines, func(l string) bool { return text.StringWidthWithoutEscSequences(strings.TrimRight(l, " ")) > p.width }) {
		p.paragraphs(rows)
		return
	}
	for _, l := range lines {
		p.b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
}

func (p *page) paragraphs(rows [][]string) {
	head := rows[0]
	for _, r := range rows[1:] {
		p.line("  ", "%s", r[0])
		for i, cell := range r[1:] {
			if cell != "" {
				p.line("    ", "%s %s", head[i+1], cell)
			}
		}
	}
}
