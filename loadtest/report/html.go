package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatebench/loadtest/result"
)

// The page: what it looks like and the little that a script adds. It is complete
// without the script.
//
//go:embed page/page.html page/page.css page/page.js
var pageFiles embed.FS

// HTML writes one page that needs nothing but itself: no network, no script. Several
// results stand one after the other, oldest first, under a table of what each of them
// says; a script, where it runs, makes tabs of them.
//
// The trap: names come from configuration, and errors from whoever sent them. All text
// goes through html/template or through [svg.text], which escape it; only this package's
// own drawings are put in as they are.
func HTML(w io.Writer, docs ...*result.Document) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"join": func(words []string) string { return strings.Join(words, ", ") },
		"table": func(label string, rows [][]string, caption string) any {
			return struct {
				Label, Caption string
				Head           []string
				Body           [][]string
			}{label, caption, rows[0], rows[1:]}
		},
	}).ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return err
	}
	css, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return err
	}
	js, err := pageFiles.ReadFile("page/page.js")
	if err != nil {
		return err
	}
	p := htmlPage{CSS: template.CSS(css), JS: template.JS(js)} //nolint:gosec // both are our own files
	docs = slices.Clone(docs)
	slices.SortStableFunc(docs, func(a, b *result.Document) int { return a.Started.Compare(b.Started) })
	for i, doc := range docs {
		p.Runs = append(p.Runs, newHTMLRun(doc, fmt.Sprintf("r%d", i+1)))
	}
	p.Title = "gatebench"
	if len(docs) == 1 {
		p.Title = p.Runs[0].Title
	}
	p.Dates = overDates(docs)
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Map(visible, b.String()))
	return err
}

// visible drops what no text of ours holds: control characters from names and errors,
// and those that turn the direction of writing.
func visible(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

type htmlPage struct {
	Title string
	CSS   template.CSS
	JS    template.JS
	Runs  []htmlRun
	Dates [][]string // nil of a single run
}

// htmlRun is one result as the template wants it: text, tables with the head first, and
// drawings.
type htmlRun struct {
	ID, Title, When string
	Valid           bool
	Badge, Validity string
	Answer          []string
	Decision        [][]string
	Bounds          []string
	Judged          []htmlJudged
	Why             []string
	Unknowable      string
	Causes          [][]string
	Above           []htmlTable
	Profiles        []htmlProfile
	Outages         []htmlOutage
	Failed          []string
	Errors          [][]string
	GivenUp         []GivenUp
	Keys            [][]string
	Gates           [][]string
	Facts           []Fact
	Unsaid          []string
}

type htmlTable struct {
	Title string
	Rows  [][]string
}

// htmlJudged is one metric: its table, and how sure it is.
type htmlJudged struct {
	Title, Profile string
	Rows           [][]string
	Notes          []string
	Forest         template.HTML
}

// htmlProfile is what was drawn of one load.
type htmlProfile struct {
	Name                                string
	Distribution, Ladder, Time, Failing template.HTML
	Spent                               template.HTML // under Why
	Quantiles                           [][]string
}

type htmlOutage struct {
	Title   string
	Windows []string
	Rows    [][]string
	Course  template.HTML
}

func newHTMLRun(doc *result.Document, id string) htmlRun {
	s := Summarize(doc)
	r := htmlRun{
		ID: id, Title: s.Title, Valid: s.Valid, Badge: "valid", Validity: s.validityWords(), Answer: s.Answer,
		Unknowable: unknowable, Failed: s.failed(), GivenUp: s.GivenUp, Facts: s.Facts,
		Decision: s.decision(), Errors: errorTable(doc), Keys: keyTable(doc), Gates: gateTable(doc), Unsaid: unsaid(doc),
	}
	if !s.Valid {
		r.Badge = "not valid"
	}
	if !doc.Started.IsZero() {
		r.When = doc.Started.UTC().Format("2006-01-02 15:04 MST")
	}
	for _, b := range s.Bounds {
		r.Bounds = append(r.Bounds, b.sentence())
	}
	for _, j := range s.Judged {
		h := htmlJudged{Title: j.title(), Profile: j.Profile, Rows: j.table(), Notes: j.notes(), Forest: forest(doc, j)}
		r.Judged = append(r.Judged, h)
		if rows := j.aboveTable(); rows != nil {
			r.Above = append(r.Above, htmlTable{j.aboveTitle(), rows})
		}
	}
	for _, e := range s.Why {
		r.Why = append(r.Why, e.sentence())
	}
	if len(s.Causes.Metrics) > 0 {
		r.Causes = s.Causes.table()
	}
	for _, profile := range profiles(doc, result.Solo) {
		p := htmlProfile{Name: profile, Distribution: distribution(doc, profile), Quantiles: quantileTable(doc, profile), Ladder: ladder(doc, profile), Time: overTime(doc, profile), Failing: failing(doc, profile), Spent: timeSpent(doc, profile)}
		r.Profiles = append(r.Profiles, p)
	}
	for _, o := range s.Outages {
		r.Outages = append(r.Outages, htmlOutage{o.title(), o.Windows, o.table(), faultCourse(doc, o.Profile)})
	}
	return r
}

// decision has an arm a line and a metric a column: the figure, the difference and what
// it means, in one cell each.
func (s Summary) decision() [][]string {
	if len(s.Judged) == 0 {
		return nil
	}
	head := []string{"arm"}
	for _, j := range s.Judged {
		name := describe(j, s.Judged)
		if j.Metric.Unit != "" {
			name += ", " + j.Metric.Unit
		}
		head = append(head, name)
	}
	rows := [][]string{head}
	for i, first := range s.Judged[0].Rows {
		row := []string{first.Arm}
		for _, j := range s.Judged {
			cells := slices.DeleteFunc(j.table()[i+1][1:], func(cell string) bool { return cell == "" })
			row = append(row, strings.Join(cells, "\n"))
		}
		rows = append(rows, row)
	}
	return rows
}

// errorTable has a line for every class of failed request and every reason that a
// gateway gave, by the side that saw it.
func errorTable(doc *result.Document) [][]string {
	rows := [][]string{{"arm", "seen by", "class", "requests", "of"}}
	for _, a := range doc.Arms {
		for _, f := range failures(doc, a.Name) {
			side := "the caller"
			if f.Class == "descriptors" || f.Class == "ports" {
				side = "the load generator itself"
			}
			rows = append(rows, []string{a.Name, side, f.Class, fmt.Sprint(f.Errors), fmt.Sprint(f.Requests)})
		}
		requests, _ := counts(doc, a.Name, func(result.Trial) bool { return true })
		reasons := map[string]int64{}
		for _, t := range doc.Trials {
			if t.Arm == a.Name {
				for reason, n := range t.Reasons {
					reasons[reason] += n
				}
			}
		}
		for _, reason := range sorted(reasons) {
			rows = append(rows, []string{a.Name, "the gateway", reason, fmt.Sprint(reasons[reason]), fmt.Sprint(requests)})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// keyTable has a line for every configuration key that is not the same for all arms.
func keyTable(doc *result.Document) [][]string {
	head := []string{"key"}
	byArm := map[string]map[string]string{}
	keys := map[string]string{}
	for _, a := range doc.Arms {
		if a.SentinelOf != "" {
			continue
		}
		head = append(head, a.Name)
		byArm[a.Name] = map[string]string{}
		for key, value := range flatten(doc.Config) {
			if rest, ok := strings.CutPrefix(key, "arms."+a.Name+"."); ok && rest != "name" {
				byArm[a.Name][rest], keys[rest] = value, ""
			}
		}
	}
	rows := [][]string{head}
	for _, key := range sorted(keys) {
		row := []string{key}
		for _, arm := range head[1:] {
			row = append(row, strings.Trim(byArm[arm][key], `"`))
		}
		if slices.ContainsFunc(row[2:], func(v string) bool { return v != row[1] }) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// gateTable has a line for every gate that read something.
func gateTable(doc *result.Document) [][]string {
	rows := [][]string{{"condition", "phase", "warns", "voids", "worst reading", "trials read", "warned", "voided"}}
	for _, g := range doc.Gates {
		if g.Readings == 0 {
			continue
		}
		beyond := "above "
		if g.Below {
			beyond = "below "
		}
		limit := func(x *float64) string {
			if x == nil {
				return "–"
			}
			return beyond + reading(*x, g.Unit)
		}
		worst := "–"
		if g.Worst != nil {
			worst = reading(*g.Worst, g.Unit)
		}
		rows = append(rows, []string{g.Title, string(g.Phase), limit(g.Warn), limit(g.Void), worst, fmt.Sprint(g.Readings), fmt.Sprint(g.Warned), fmt.Sprint(g.Voided)})
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

func reading(x float64, unit string) string {
	switch unit {
	case "share":
		return figure(x*100) + " %"
	case "":
		return figure(x)
	}
	return figure(x) + " " + unit
}

// unsaid is what a reader may take the page to say, and it does not.
func unsaid(doc *result.Document) []string {
	us := []string{
		fmt.Sprintf("It is %s: other machines have other ratios, and a network between the processes adds time that no client saves.", scope(doc)),
		"TLS, HTTP/2 and several upstreams were not measured.",
		"CPU per request stands on a saturated gateway; below saturation a request costs more, for every client.",
		"Arms are held against the baseline alone: two that are both better than it were not compared with each other.",
	}
	if blocks(doc) < minClaim {
		us = append(us, fmt.Sprintf("%s cannot carry a claim; %d are the least.", plural(blocks(doc), "block"), minClaim))
	}
	return us
}

// overDates has a line for every arm and primary metric, a run a column.
func overDates(docs []*result.Document) [][]string {
	if len(docs) < 2 {
		return nil
	}
	head := []string{"arm", "figure"}
	cells := map[[2]string][]string{}
	var order [][2]string
	for i, doc := range docs {
		head = append(head, fmt.Sprintf("%s, %s", doc.Plan, doc.Started.UTC().Format(time.DateTime)))
		for _, j := range judged(doc) {
			for _, row := range j.Rows {
				if row.Comparison == nil || row.Sentinel {
					continue
				}
				key := [2]string{row.Arm, fmt.Sprintf("%s [%s]", j.Metric.Title, j.Profile)}
				if cells[key] == nil {
					cells[key] = make([]string, len(docs))
					order = append(order, key)
				}
				cells[key][i] = difference(row.Comparison) + "\n" + string(row.Comparison.Verdict)
			}
		}
	}
	rows := [][]string{head}
	for _, key := range order {
		row := []string{key[0], key[1]}
		for _, cell := range cells[key] {
			if cell == "" {
				cell = "–"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows
}
