package report

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes s for a pull request or an issue: the answer and the judged
// tables in the open, what explains and documents them folded away. It is GitHub's
// dialect: tables, and <details> around plain Markdown.
func Markdown(w io.Writer, s Summary) error {
	d := &markdown{}
	d.line("## %s", s.Title)
	d.paragraph("**%s**", s.validity())
	for _, sentence := range s.Answer {
		d.paragraph("%s", sentence)
	}
	if len(s.Bounds) > 0 {
		d.paragraph("### Thresholds")
		for _, b := range s.Bounds {
			d.line("- %s", b.sentence())
		}
	}
	for _, j := range s.Judged {
		d.paragraph("### %s", j.title())
		d.table(j.table(), 1, 2)
		for _, n := range j.notes() {
			d.paragraph("%s", n)
		}
		if rows := j.aboveTable(); rows != nil {
			d.paragraph("#### %s", j.aboveTitle())
			d.table(rows, 1)
		}
	}
	for _, o := range s.Outages {
		d.paragraph("### %s", o.title())
		for _, w := range o.Windows {
			d.line("- %s", w)
		}
		d.line("")
		d.table(o.table(), 1, 2, 3, 4)
		if rows := o.courses(); rows != nil {
			d.paragraph("%s", coursesTitle)
			d.line("")
			d.table(rows)
		}
	}
	if len(s.Why) > 0 {
		d.paragraph("### %s", whyTitle)
		for _, e := range s.Why {
			d.line("- %s", e.sentence())
		}
		d.paragraph("%s", unknowable)
	}
	if len(s.Causes.Metrics) > 0 {
		d.fold(causesTitle, func() {
			right := make([]int, len(s.Causes.Rows))
			for i := range right {
				right[i] = i + 1
			}
			d.table(s.Causes.table(), right...)
		})
	}
	d.paragraph("### What failed")
	for _, line := range s.failed() {
		d.line("- %s", line)
	}
	if len(s.GivenUp) > 0 {
		d.paragraph("### What you give up")
		for _, g := range s.GivenUp {
			d.line("- %s: %s", g.Arm, strings.Join(g.Deviations, ", "))
		}
	}
	d.fold("How", func() {
		for _, f := range s.Facts {
			d.line("- %s: %s", f.Name, f.Value)
		}
	})
	_, err := io.WriteString(w, d.b.String())
	return err
}

type markdown struct{ b strings.Builder }

// line writes one line; what is put into the format shows as it is.
func (d *markdown) line(format string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, t := range texts {
		escaped[i] = literal(t)
	}
	fmt.Fprintf(&d.b, format+"\n", escaped...)
}

// paragraph is a line with empty ones around.
func (d *markdown) paragraph(format string, texts ...string) {
	d.b.WriteString("\n")
	d.line(format, texts...)
	if strings.HasPrefix(format, "#") {
		d.b.WriteString("\n")
	}
}

func (d *markdown) fold(title string, body func()) {
	d.b.WriteString("\n<details><summary>" + literal(title) + "</summary>\n\n")
	body()
	d.b.WriteString("\n</details>\n")
}

// table writes rows, the first being the head, with those columns to the right.
func (d *markdown) table(rows [][]string, right ...int) {
	for i, row := range rows {
		for _, cell := range row {
			d.b.WriteString("| " + literal(cell) + " ")
		}
		d.b.WriteString("|\n")
		if i > 0 {
			continue
		}
		rule := make([]string, len(row))
		for c := range rule {
			rule[c] = "---"
		}
		for _, c := range right {
			rule[c] = "---:"
		}
		d.b.WriteString("| " + strings.Join(rule, " | ") + " |\n")
	}
}

// literal makes a text inert: no control character, no markup, no cell's end. Names
// of arms and words of dying processes may hold anything.
func literal(s string) string {
	var b strings.Builder
	for _, r := range clean(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~&@$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
