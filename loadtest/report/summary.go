package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// Summary is what a reader wants to know, in the order of asking: data, for any
// renderer.
type Summary struct {
	Title string
	Valid bool
	// Reasons say why it is not valid.
	Reasons []string

	// Answer is the finding in plain sentences, its doubt last.
	Answer []string

	// Judged are the metrics compared, primary ones first.
	Judged []Judged

	// Outages are the profiles in which something was wrong on purpose.
	Outages []Outage

	// Bounds are the thresholds, one entry per bound and profile.
	Bounds []Bound

	// Why has what was measured beside every difference that is claimed.
	Why []Explanation

	// Causes are figures that explain, one row an arm.
	Causes Causes

	// Failures and Voids are what went wrong, of so many trials.
	Trials   int
	Sentinel bool // whether there was one
	Failures []Failure
	Voids    []Void
	Warnings []string

	// GivenUp are the declared deviations of each arm's client that has any.
	GivenUp []GivenUp

	// Facts are name and value: machine, blocks, seed, rate, how to repeat it.
	Facts []Fact
}

// Judged is one metric in one profile.
type Judged struct {
	Metric  result.Metric
	Profile string
	Blocks  int // in which the baseline was measured
	Rows    []JudgedRow
}

// JudgedRow is one arm's figure and what it means against the baseline.
type JudgedRow struct {
	Arm string
	// Median over the valid blocks; nil where nothing was measured.
	Median *float64
	// Comparison is nil for the baseline and the floor.
	Comparison *result.Comparison
	// AboveFloor is nil where there is no floor arm, and for itself.
	AboveFloor *result.AboveFloor
	Floor      bool
	Sentinel   bool
}

// Causes is a table: medians over blocks per arm.
type Causes struct {
	Metrics []result.Metric
	Rows    []CauseRow
}

// CauseRow has one value per metric of the table, nil where it was not measured.
type CauseRow struct {
	Arm    string
	Values []*float64
}

// Bound is one threshold under one profile, and what came of it for every arm.
type Bound struct {
	Threshold, Profile string
	Arms               []result.Threshold
}

// Failure counts failed requests of one class.
type Failure struct {
	Arm, Class       string
	Errors, Requests int64
}

// Void are the trials of one arm that were not used for one reason.
type Void struct {
	Arm, Reason string
	Trials      int
	Blocks      []int // from 0, each once
}

// GivenUp is what an arm's client cannot do although the hop's policy asks for it,
// by the names of the conformance suite.
type GivenUp struct {
	Arm        string
	Deviations []string
}

// Fact is one line of the small print.
type Fact struct{ Name, Value string }

// Summarize reads a concluded document.
func Summarize(doc *result.Document) Summary {
	s := Summary{
		Title:    title(doc),
		Valid:    doc.Valid,
		Trials:   len(doc.Trials),
		Reasons:  doc.InvalidReasons,
		Warnings: doc.Warnings,
		Judged:   judged(doc),
		Outages:  outages(doc),
		Bounds:   bounds(doc),
		Causes:   causes(doc),
		Facts:    facts(doc),
	}
	s.Why = explanations(doc, s.Judged)
	s.GivenUp = givenUp(doc)
	s.Answer = answer(doc, s.Judged)
	for _, a := range doc.Arms {
		s.Sentinel = s.Sentinel || a.SentinelOf != ""
		s.Failures = append(s.Failures, failures(doc, a.Name)...)
	}
	s.Voids = voids(doc)
	return s
}

// validity is one line: whether the result may be believed, and why not.
func (s Summary) validity() string {
	if !s.Valid {
		return "NOT VALID: " + s.validityWords()
	}
	return "VALID: " + s.validityWords()
}

func (s Summary) validityWords() string {
	if !s.Valid {
		return strings.Join(s.Reasons, "; ")
	}
	void := 0
	for _, v := range s.Voids {
		void += v.Trials
	}
	sentinel := "the sentinel does not differ from its twin"
	switch {
	case !s.Sentinel:
		sentinel = "without a sentinel"
	case len(s.Judged) == 0 || s.Judged[0].sentinelBlocks() < minClaim:
		sentinel = "too few blocks for the sentinel to tell"
	}
	return fmt.Sprintf("%d of %s void, %s", void, plural(s.Trials, "trial"), sentinel)
}

// title says what is compared, in which unit and direction, and on how much.
func (j Judged) title() string {
	unit := j.Metric.Unit
	if unit != "" {
		unit += ", "
	}
	better := "higher is better"
	if j.Metric.LowerIsBetter {
		better = "lower is better"
	}
	return fmt.Sprintf("%s [%s] (%s%s, %s)", j.Metric.Title, j.Profile, unit, better, plural(j.Blocks, "block"))
}

// table has an arm a line, the head first.
func (j Judged) table() [][]string {
	rows := [][]string{{"arm", "median", "against baseline", "verdict"}}
	for i, r := range j.Rows {
		row := []string{r.Arm, figureOrDash(r.Median), "", "baseline"}
		switch c := r.Comparison; {
		case c != nil:
			row[2], row[3] = difference(c), verdict(r, j.Blocks)
		case r.Floor && i > 0:
			row[3] = "calls nobody"
		}
		rows = append(rows, row)
	}
	return rows
}

// notes are doubts about claims, too long for a table.
func (j Judged) notes() []string {
	var notes []string
	for _, row := range j.claims() {
		if row.Comparison.Why != "" {
			notes = append(notes, row.Arm+": "+row.Comparison.Why)
		}
	}
	return notes
}

const (
	whyTitle    = "Why: what else differs with what is claimed"
	causesTitle = "What each arm used (medians over blocks)"
)

// table has a metric a line, an arm a column, the head first.
func (c Causes) table() [][]string {
	head := []string{"figure"}
	for _, r := range c.Rows {
		head = append(head, r.Arm)
	}
	rows := [][]string{head}
	for i, m := range c.Metrics {
		unit, scale := m.Unit, 1.0
		if m.Unit == "B" && m.Name == "memory_peak_bytes" {
			unit, scale = "MiB", 1<<20
		}
		name := m.Title
		if unit != "" {
			name += ", " + unit
		}
		row := []string{name}
		for _, r := range c.Rows {
			v := r.Values[i]
			if v != nil {
				v = new(*v / scale)
			}
			row = append(row, figureOrDash(v))
		}
		rows = append(rows, row)
	}
	return rows
}

// failed is one line for every class of failed request, void trial and warning.
func (s Summary) failed() []string {
	var lines []string
	for _, f := range s.Failures {
		lines = append(lines, fmt.Sprintf("%s: %s %d of %d requests", f.Arm, f.Class, f.Errors, f.Requests))
	}
	for _, v := range s.Voids {
		lines = append(lines, fmt.Sprintf("void: %s, %s in %s: %s", v.Arm, plural(v.Trials, "trial"), listBlocks(v.Blocks), v.Reason))
	}
	for _, warning := range s.Warnings {
		lines = append(lines, "warning: "+warning)
	}
	switch {
	case len(lines) > 0:
	case s.Trials == 0:
		lines = []string{"no data: there is no trial"}
	default:
		lines = []string{"nothing: zero errors, no void trial"}
	}
	return lines
}

func bounds(doc *result.Document) []Bound {
	var bs []Bound
	for _, c := range doc.Thresholds {
		last := len(bs) - 1
		if last < 0 || bs[last].Threshold != c.Threshold || bs[last].Profile != c.Profile {
			bs = append(bs, Bound{Threshold: c.Threshold, Profile: c.Profile})
			last++
		}
		bs[last].Arms = append(bs[last].Arms, c)
	}
	return bs
}

// sentence says which arms keep a bound and which do not, the latter first.
func (b Bound) sentence() string {
	var parts []string
	for _, o := range []struct {
		outcome result.Attainment
		words   string
	}{
		{result.Missed, "missed by"}, {result.Unmeasured, "not measured for"},
		{result.Open, "cannot tell for"}, {result.Met, "met by"},
	} {
		var arms []string
		for _, c := range b.Arms {
			if c.Outcome != o.outcome {
				continue
			}
			words := c.Arm
			if c.Value != nil {
				words += " (" + held(c) + ")"
			}
			if c.Outcome == result.Open {
				words += ": " + c.Why
			}
			arms = append(arms, words)
		}
		if len(arms) > 0 {
			parts = append(parts, o.words+" "+strings.Join(arms, ", "))
		}
	}
	return fmt.Sprintf("%s [%s]: %s", b.Threshold, b.Profile, strings.Join(parts, "; "))
}

// givenUp reads what each gateway said of its client at /-/about.
func givenUp(doc *result.Document) []GivenUp {
	var all []GivenUp
	for _, a := range doc.Arms {
		var about struct {
			Client struct{ Deviations []struct{ Name string } }
		}
		if a.SentinelOf != "" || json.Unmarshal(doc.About[a.Name], &about) != nil {
			continue
		}
		g := GivenUp{Arm: a.Name}
		for _, d := range about.Client.Deviations {
			g.Deviations = append(g.Deviations, d.Name)
		}
		if len(g.Deviations) > 0 {
			all = append(all, g)
		}
	}
	return all
}

func voids(doc *result.Document) []Void {
	var vs []Void
	for _, t := range doc.Trials {
		if t.Valid {
			continue
		}
		i := slices.IndexFunc(vs, func(v Void) bool { return v.Arm == t.Arm && v.Reason == t.VoidReason })
		if i < 0 {
			i = len(vs)
			vs = append(vs, Void{Arm: t.Arm, Reason: t.VoidReason})
		}
		vs[i].Trials++
		if !slices.Contains(vs[i].Blocks, t.Block) {
			vs[i].Blocks = append(vs[i].Blocks, t.Block)
		}
	}
	return vs
}

func title(doc *result.Document) string {
	n := len(contenders(doc))
	if len(doc.Arms) > 0 && !doc.Arms[0].Floor {
		n++ // the baseline
	}
	arms := plural(n, "arm")
	if _, ok := floorOf(doc); ok {
		arms += " and the floor"
	}
	t := fmt.Sprintf("gatebench %s: %s, %s, seed %d", doc.Plan, arms, plural(blocks(doc), "block"), doc.Seed)
	if doc.Interrupted {
		t += ", interrupted"
	}
	return t
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func blocks(doc *result.Document) int {
	seen := map[int]bool{}
	for _, t := range doc.Trials {
		seen[t.Block] = true
	}
	return len(seen)
}

func judged(doc *result.Document) []Judged {
	if len(doc.Arms) == 0 {
		return nil
	}
	var js []Judged
	for _, s := range series(doc) {
		j := Judged{Metric: s.metric, Profile: s.profile, Blocks: len(s.figures[doc.Arms[0].Name])}
		for _, a := range doc.Arms {
			row := JudgedRow{Arm: a.Name, Median: median(s.figures[a.Name]), Sentinel: a.SentinelOf != "", Floor: a.Floor}
			for i, f := range doc.AboveFloor {
				if f.Arm == a.Name && f.Metric == s.metric.Name && f.Profile == s.profile {
					row.AboveFloor = &doc.AboveFloor[i]
				}
			}
			for i, c := range doc.Comparisons {
				if c.Arm == a.Name && c.Metric == s.metric.Name && c.Profile == s.profile {
					row.Comparison = &doc.Comparisons[i]
				}
			}
			j.Rows = append(j.Rows, row)
		}
		js = append(js, j)
	}
	return js
}

func median(byBlock map[int]float64) *float64 {
	var xs []float64
	for _, x := range byBlock {
		xs = append(xs, x)
	}
	m, ok := stats.Median(xs)
	if !ok {
		return nil
	}
	return &m
}

// causes shows every metric that is not judged and was measured for some arm, in
// the first profile of its phase. The sentinel has no causes of its own.
func causes(doc *result.Document) Causes {
	var c Causes
	var tables []map[string]map[int]float64
	for _, m := range result.Metrics {
		if m.Interest > 0 || m.Detail {
			continue
		}
		names := profiles(doc, m.Phase)
		if len(names) == 0 {
			continue
		}
		if f := figures(doc, m, names[0]); len(f) > 0 {
			c.Metrics, tables = append(c.Metrics, m), append(tables, f)
		}
	}
	for _, a := range doc.Arms {
		if a.SentinelOf != "" {
			continue
		}
		row := CauseRow{Arm: a.Name}
		for _, f := range tables {
			row.Values = append(row.Values, median(f[a.Name]))
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

func failures(doc *result.Document, arm string) []Failure {
	byClass := map[string]int64{}
	requests, _ := counts(doc, arm, func(result.Trial) bool { return true })
	for _, t := range doc.Trials {
		if t.Arm == arm {
			for class, n := range t.ErrorClasses {
				byClass[class] += n
			}
		}
	}
	var fs []Failure
	for class, n := range byClass {
		if n > 0 {
			fs = append(fs, Failure{Arm: arm, Class: class, Errors: n, Requests: requests})
		}
	}
	slices.SortFunc(fs, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Errors, a.Errors), cmp.Compare(a.Class, b.Class))
	})
	return fs
}

// answer words the finding of the primary metric, then what speaks against it
// elsewhere, then how fine the experiment can see.
func answer(doc *result.Document, js []Judged) []string {
	if doc.Valid && len(js) == 0 && len(doc.Faults) > 0 {
		return []string{"Nothing is judged: every load has faults in it, and its response times tell of them. What each arm made of them stands below."}
	}
	if !doc.Valid || len(js) == 0 {
		return []string{"No conclusion can be drawn: " + strings.Join(append(doc.InvalidReasons, noData(js)...), "; ") + "."}
	}
	primary := js[0]
	sentences := finding(doc.Arms[0].Name, primary)
	if pick, ok := pick(js); ok {
		sentences = append([]string{pick}, sentences...)
	}
	for _, other := range js[1:] {
		var claims []string
		for _, row := range other.claims() {
			claim := fmt.Sprintf("%s %s %s", row.Arm, row.Comparison.Verdict, difference(row.Comparison))
			if why := row.Comparison.Why; why != "" {
				claim += " (" + why + ")"
			}
			claims = append(claims, claim)
		}
		if len(claims) > 0 {
			sentences = append(sentences, fmt.Sprintf("In %s: %s.", describe(other, js), strings.Join(claims, ", ")))
		}
	}
	return append(sentences, doubt(doc, primary))
}

// pick names the one arm that is better in the primary metric and worse in none,
// if there is exactly one.
func pick(js []Judged) (string, bool) {
	var better []string
	for _, row := range js[0].claims() {
		if row.Comparison.Verdict == result.Better {
			better = append(better, row.Arm)
		}
	}
	if len(better) != 1 {
		return "", false
	}
	for _, j := range js {
		for _, row := range j.claims() {
			if row.Arm == better[0] && row.Comparison.Verdict == result.Worse {
				return "", false
			}
		}
	}
	return fmt.Sprintf("Take %s.", better[0]), true
}

// sentinelBlocks is how many blocks the sentinel was compared in.
func (j Judged) sentinelBlocks() int {
	for _, row := range j.Rows {
		if row.Sentinel && row.Comparison != nil {
			return row.Comparison.Blocks
		}
	}
	return 0
}

// claims are the rows that are better or worse than the baseline.
func (j Judged) claims() []JudgedRow {
	var rows []JudgedRow
	for _, row := range j.Rows {
		if c := row.Comparison; c != nil && !row.Sentinel && claimed(c.Verdict) {
			rows = append(rows, row)
		}
	}
	return rows
}

func noData(js []Judged) []string {
	if len(js) > 0 {
		return nil
	}
	return []string{"no data in any judged metric"}
}

// describe names a metric, and its profile where there are several.
func describe(j Judged, all []Judged) string {
	for _, other := range all {
		if other.Metric.Phase == j.Metric.Phase && other.Profile != j.Profile {
			return j.Metric.Title + " in profile " + j.Profile
		}
	}
	return j.Metric.Title
}

// finding is one sentence per kind of verdict.
func finding(baseline string, j Judged) []string {
	by := map[result.Verdict][]string{}
	for _, row := range j.Rows {
		c := row.Comparison
		if c == nil || row.Sentinel {
			continue
		}
		words := row.Arm
		switch {
		case claimed(c.Verdict):
			words += " " + difference(c)
			if c.Why != "" {
				words += " (" + c.Why + ")"
			}
		case c.Verdict == result.NotValid:
			words += " (" + c.Why + ")"
		case c.Verdict == result.CannotTell && c.Blocks == 0:
			words += " (no data)"
		case c.Verdict == result.CannotTell:
			words += fmt.Sprintf(" (%s; about %d blocks would settle it)", difference(c), c.BlocksNeeded)
		}
		by[c.Verdict] = append(by[c.Verdict], words)
	}
	var out []string
	say := func(v result.Verdict, format string) {
		if arms := by[v]; len(arms) > 0 {
			out = append(out, fmt.Sprintf(format, strings.Join(arms, ", ")))
		}
	}
	what := j.Metric.Title
	say(result.Better, "Better than "+baseline+" in "+what+": %s.")
	if len(by[result.Better]) == 0 {
		out = append(out, fmt.Sprintf("No arm is shown to be better than %s in %s.", baseline, what))
	}
	say(result.Worse, "Worse: %s.")
	say(result.NoDifference, "No meaningful difference from "+baseline+": %s.")
	say(result.CannotTell, "Cannot tell from "+baseline+": %s.")
	say(result.NotValid, "Not valid: %s.")
	if len(by[result.Better]) > 1 {
		out = append(out, "The better ones were not compared with each other.")
	}
	return out
}

// doubt says what the experiment could not have seen.
func doubt(doc *result.Document, primary Judged) string {
	for _, row := range primary.Rows {
		if c := row.Comparison; row.Sentinel && c != nil && c.Lo != nil {
			return fmt.Sprintf("Doubt: two identical arms differed by %s here, so smaller differences in %s do not show; %s.",
				difference(c), primary.Metric.Title, scope(doc))
		}
	}
	return "Doubt: without a sentinel the noise of this machine is not known; " + scope(doc) + "."
}

func scope(doc *result.Document) string {
	return fmt.Sprintf("one machine of %s, loopback, HTTP/1.1", plural(doc.Machine.Cores, "core"))
}

// difference is "+18 % [+11, +26]".
func difference(c *result.Comparison) string {
	if c.Ratio == nil {
		return "no data"
	}
	d := signed(*c.Ratio-1) + " %"
	if c.Lo != nil && c.Hi != nil {
		d += fmt.Sprintf(" [%s, %s]", signed(*c.Lo-1), signed(*c.Hi-1))
	}
	return d
}

// signed is a share in percent with its sign: one decimal below 10 %.
func signed(share float64) string {
	p := share * 100
	if math.Abs(p) < 9.95 {
		return fmt.Sprintf("%+.1f", p)
	}
	return fmt.Sprintf("%+.0f", p)
}

func percent(share float64) string {
	return strings.TrimPrefix(signed(share), "+") + " %"
}

func facts(doc *result.Document) []Fact {
	m := doc.Machine
	var fs []Fact
	add := func(name, format string, args ...any) { fs = append(fs, Fact{name, fmt.Sprintf(format, args...)}) }
	machine := fmt.Sprintf("%s, %s", cmp.Or(m.CPU, m.Arch), plural(m.Cores, "core"))
	if m.MemoryB > 0 {
		machine += fmt.Sprintf(", %.0f GiB", float64(m.MemoryB)/(1<<30))
	}
	add("machine", "%s, %s %s, %s", machine, m.OS, m.Kernel, m.Go)
	if m.PinnedTo != "" {
		add("placement", "%s", m.PinnedTo)
	}
	if doc.Pilot != nil {
		for _, profile := range slices.Sorted(maps.Keys(doc.Pilot.Rates)) {
			add("rate", "%s: %s/s for every arm", profile, figure(doc.Pilot.Rates[profile]))
		}
	}
	if !doc.Started.IsZero() && !doc.Finished.IsZero() {
		add("when", "%s, took %s", doc.Started.UTC().Format("2006-01-02 15:04 MST"), doc.Finished.Sub(doc.Started).Round(time.Second))
	}
	add("method", "paired log-ratios by block; Hodges–Lehmann, exact signed-rank interval %.0f %%; claims only where Student's t agrees, Holm over arms", cmp.Or(levelOf(doc), level)*100)
	if p := doc.Precision; p != nil {
		add("blocks", "%s", length(p, blocks(doc)))
	}
	if len(doc.Pprof) > 0 {
		var files []string
		for _, p := range doc.Pprof {
			files = append(files, p.File)
		}
		add("profiles", "%s, each of a gateway alone under load after the last block (go tool pprof FILE)", strings.Join(files, ", "))
	}
	add("repeat", "%s", doc.Command)
	return fs
}

// figure shows x with three significant digits, no exponent.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a == 0:
		return "0"
	case a >= 99.95:
		digits := int(math.Floor(math.Log10(a))) - 2
		unit := math.Pow(10, float64(max(digits, 0)))
		return fmt.Sprintf("%.0f", math.Round(x/unit)*unit)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case a >= 0.9995:
		return fmt.Sprintf("%.2f", x)
	default:
		return fmt.Sprintf("%.3f", x)
	}
}
