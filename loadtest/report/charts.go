package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"github.com/mattn/go-runewidth"

	"gatebench/loadtest/result"
)

// seriesClasses is how many arms the style sheet tells apart by colour and dash; more
// begin again.
const seriesClasses = 6

func seriesClass(i int) string { return fmt.Sprintf("s%d", i%seriesClasses) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// block is one arm's figure against the baseline's of the same block.
type block struct {
	number int // from 0
	ratio  float64
	void   string // why it does not count, "" where it does
}

// blocksOf are all blocks that measured both, void ones with the reason.
func blocksOf(doc *result.Document, j Judged, arm string) []block {
	values := map[string]map[int]result.Trial{}
	for _, t := range doc.Trials {
		if t.Phase != j.Metric.Phase || t.Profile != j.Profile {
			continue
		}
		if values[t.Arm] == nil {
			values[t.Arm] = map[int]result.Trial{}
		}
		values[t.Arm][t.Block] = t
	}
	var bs []block
	mine, base := values[arm], values[doc.Arms[0].Name]
	for _, n := range slices.Sorted(maps.Keys(mine)) {
		a, ok := mine[n].Metrics[j.Metric.Name]
		b, also := base[n].Metrics[j.Metric.Name]
		if !ok || !also || a <= 0 || b <= 0 {
			continue
		}
		why := cmp.Or(mine[n].VoidReason, base[n].VoidReason)
		if slices.Contains(mine[n].AtLeast, j.Metric.Name) || slices.Contains(base[n].AtLeast, j.Metric.Name) {
			why = cmp.Or(why, "only a lower bound is known")
		}
		bs = append(bs, block{n, a / b, why})
	}
	return bs
}

// percentTicks are differences in percent that a forest plot may name.
var percentTicks = []float64{-95, -90, -80, -70, -60, -50, -40, -30, -20, -15, -10, -5, -2, -1, 0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 400, 900, 1900, 4900}

// forest shows how sure each difference is.
func forest(doc *result.Document, j Judged) template.HTML {
	type row struct {
		JudgedRow
		blocks []block
	}
	var rows []row
	lo, hi := 1.0, 1.0
	grow := func(x float64) {
		if x > 0 && !math.IsInf(x, 0) {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	for _, r := range j.Rows {
		if r.Comparison == nil {
			continue
		}
		bs := blocksOf(doc, j, r.Arm)
		for _, b := range bs {
			grow(b.ratio)
		}
		for _, x := range []*float64{r.Comparison.Lo, r.Comparison.Hi, r.Comparison.Ratio} {
			if x != nil {
				grow(*x)
			}
		}
		rows = append(rows, row{r, bs})
	}
	if len(rows) == 0 {
		return ""
	}
	grow(1 / (1 + 2*j.Metric.Interest))
	grow(1 + 2*j.Metric.Interest)
	const left, right, top, step = 175, 205, 8, 34
	height := float64(top + step*len(rows) + 26)
	x := scale{lo: lo / 1.01, hi: hi * 1.01, from: left, to: chartWidth - right, log: true}
	s := newSVG(height, "How sure: "+j.title())
	bottom := height - 24
	s.rect("band", x.at(1/(1+j.Metric.Interest)), top, x.at(1+j.Metric.Interest)-x.at(1/(1+j.Metric.Interest)), bottom-top)
	last := math.Inf(-1)
	for _, p := range percentTicks {
		ratio := 1 + p/100
		if ratio < x.lo || ratio > x.hi {
			continue
		}
		at := x.at(ratio)
		near := math.Abs(at-x.at(1)) < 40 && p != 0
		if at-last < 44 || near {
			continue
		}
		class := "grid"
		if p == 0 {
			class = "zero"
		}
		s.line(class, at, top, at, bottom)
		s.text("tick", "middle", at, height-8, fmt.Sprintf("%+g %%", p))
		last = at
	}
	s.line("zero", x.at(1), top, x.at(1), bottom)
	for i, r := range rows {
		y := float64(top + step*i + step/2)
		s.text("name", "end", left-12, y+4, short(r.Arm, 24))
		class := seriesClass(i + 1)
		if r.Sentinel {
			class = "noise"
		}
		for n, b := range r.blocks {
			says := fmt.Sprintf("%s, block %d: %s %%", r.Arm, b.number+1, signed(b.ratio-1))
			// Dots of near values must not hide each other.
			dy := float64(n%3-1) * 4.5
			if b.void != "" {
				s.dot("dot void "+class, x.at(b.ratio), y+9+dy/3, 3, says+", void: "+b.void)
			} else {
				s.dot("dot "+class, x.at(b.ratio), y+9+dy/3, 3, says)
			}
		}
		c := r.Comparison
		if c.Lo != nil && c.Hi != nil {
			s.line("bar "+class, x.at(*c.Lo), y-3, x.at(*c.Hi), y-3)
		}
		if c.Ratio != nil {
			at := x.at(*c.Ratio)
			s.path("diamond "+class, []point{{at, y - 9}, {at + 6, y - 3}, {at, y + 3}, {at - 6, y - 3}}, true, r.Arm+" "+difference(c))
		}
		s.text("value", "start", chartWidth-right+12, y-1, difference(c))
		s.text("tick", "start", chartWidth-right+12, y+12, short(verdict(r.JudgedRow, j.Blocks), 34))
	}
	return s.html()
}

// short cuts a name that has no room, which is for so many narrow characters: wide ones
// take twice as much.
func short(s string, most int) string { return runewidth.Truncate(clean(s), most, "…") }

// quantiles are the figures of a distribution that trials keep, by what share of
// requests is beyond each.
var quantileMetrics = []struct {
	label  string
	beyond float64
	suffix string
}{
	{"p50", .5, "p50"}, {"p90", .1, "p90"}, {"p95", .05, "p95"}, {"p99", .01, "p99"}, {"p99.9", .001, "p999"},
}

// curve is one kind of time of one arm: for each share of requests beyond, from the
// largest, the values of its valid trials, sorted.
type curve struct {
	arm    string
	beyond []float64
	values [][]float64
}

// at is the place of a share in the curve, -1 if it has none.
func (c curve) at(beyond float64) int {
	return slices.IndexFunc(c.beyond, func(b float64) bool { return math.Abs(b-beyond) < beyond/1000 })
}

// curvesOf reads the distributions of all arms but the sentinel.
func curvesOf(doc *result.Document, profile, kind string) []curve {
	var cs []curve
	for _, a := range doc.Arms {
		values := map[float64][]float64{}
		for _, t := range doc.Trials {
			if !t.Valid || t.Arm != a.Name || t.Profile != profile || a.SentinelOf != "" {
				continue
			}
			for beyond, v := range pointsOf(t, kind) {
				values[beyond] = append(values[beyond], v)
			}
		}
		c := curve{arm: a.Name}
		for _, beyond := range slices.Backward(slices.Sorted(maps.Keys(values))) {
			slices.Sort(values[beyond])
			c.beyond, c.values = append(c.beyond, beyond), append(c.values, values[beyond])
		}
		if len(c.beyond) > 1 {
			cs = append(cs, c)
		}
	}
	return cs
}

// pointsOf are a trial's times by the share of requests beyond them: its curve, and the
// five quantiles of results that have none. What is but a bound is left out.
func pointsOf(t result.Trial, kind string) map[float64]float64 {
	points := map[float64]float64{}
	for _, q := range quantileMetrics {
		name := kind + "_" + q.suffix
		if v, ok := t.Metrics[name]; ok && !slices.Contains(t.AtLeast, name) {
			points[q.beyond] = v
		}
	}
	for _, p := range t.Curves[kind] {
		// Rounded, so that 1 − 0.99 is 0.01 and one share of all trials.
		points[math.Round((1-p.Q)*1e7)/1e7] = p.MS
	}
	return points
}

func middleOf(sorted []float64) float64 { return sorted[(len(sorted)-1)/2] }

// frame draws axes and grid of a chart of response times.
func frame(s *svg, x, y scale, xTicks []float64, xLabel func(float64) string, title string) {
	for _, t := range y.ticks(6) {
		s.line("grid", x.from, y.at(t), x.to, y.at(t))
		s.text("tick", "end", x.from-6, y.at(t)+4, figure(t))
	}
	for _, t := range xTicks {
		s.line("grid", x.at(t), y.to, x.at(t), y.from)
		s.text("tick", "middle", x.at(t), y.from+16, xLabel(t))
	}
	s.text("tick", "start", x.from-40, y.to-8, title)
}

const chartWidth, chartHeight = 760.0, 300.0

// plot is where curves go, with room for their names on the right.
func plot() (x0, x1, y0, y1 float64) { return 52, chartWidth - 170, chartHeight - 34, 26 }

// names writes the arms' names beside the ends of their curves.
func names(s *svg, x float64, ends []float64, arms []string, classes []string, bottom float64) {
	for i, y := range spread(ends, 16, bottom) {
		s.line("curve "+classes[i], x+6, y, x+28, y)
		s.text("name", "start", x+34, y+4, short(arms[i], 20))
	}
}

// distribution draws response and service time over 1/(1−p).
func distribution(doc *result.Document, profile string) template.HTML {
	response, service := curvesOf(doc, profile, "response_time"), curvesOf(doc, profile, "service_time")
	if len(response) == 0 {
		return ""
	}
	lo, hi, first, last := math.Inf(1), 0.0, 0.0, 1.0
	for _, c := range slices.Concat(response, service) {
		for i, vs := range c.values {
			lo, hi, first, last = min(lo, vs[0]), max(hi, vs[len(vs)-1]), max(first, c.beyond[i]), min(last, c.beyond[i])
		}
	}
	x0, x1, y0, y1 := plot()
	x := scale{lo: 1 / first, hi: 1 / last, from: x0, to: x1, log: true}
	y := scale{lo: max(lo*0.9, 1e-6), hi: hi * 1.1, from: y0, to: y1, log: true}
	s := newSVG(chartHeight, "Response time by percentile under "+profile)
	var ticks []float64
	label := map[float64]string{}
	for _, q := range quantileMetrics {
		if q.beyond >= last*.999 {
			ticks = append(ticks, 1/q.beyond)
			label[1/q.beyond] = q.label
		}
	}
	frame(s, x, y, ticks, func(t float64) string { return label[t] }, "ms")
	var ends []float64
	var arms, classes []string
	for i, c := range response {
		class := seriesClass(i)
		var upper, lower, typical []point
		for k, vs := range c.values {
			at := x.at(1 / c.beyond[k])
			upper = append(upper, point{at, y.at(vs[len(vs)-1])})
			lower = append(lower, point{at, y.at(vs[0])})
			typical = append(typical, point{at, y.at(middleOf(vs))})
		}
		slices.Reverse(lower)
		s.path("spread "+class, append(upper, lower...), true, "")
		s.path("curve "+class, typical, false, c.arm+", response time")
		for _, q := range quantileMetrics {
			if k := c.at(q.beyond); k >= 0 {
				vs := c.values[k]
				s.dot("dot "+class, typical[k].x, typical[k].y, 2.5, fmt.Sprintf("%s %s: %s ms (%s to %s, %s)", c.arm, q.label,
					figure(middleOf(vs)), figure(vs[0]), figure(vs[len(vs)-1]), plural(len(vs), "trial")))
			}
		}
		ends, arms, classes = append(ends, typical[len(typical)-1].y), append(arms, c.arm), append(classes, class)
	}
	for _, c := range service {
		i := slices.Index(arms, c.arm)
		var typical []point
		for k, vs := range c.values {
			typical = append(typical, point{x.at(1 / c.beyond[k]), y.at(middleOf(vs))})
		}
		if i >= 0 {
			s.path("service "+classes[i], typical, false, c.arm+", service time")
		}
	}
	names(s, x1, ends, arms, classes, y0)
	return s.html()
}

// quantileTable is the distribution in figures: median over trials, ms.
func quantileTable(doc *result.Document, profile string) [][]string {
	head := []string{"arm", "time, ms"}
	for _, q := range quantileMetrics {
		head = append(head, q.label)
	}
	rows := [][]string{append(head, "trials")}
	for _, kind := range []struct{ metric, title string }{{"response_time", "response"}, {"service_time", "service"}} {
		for _, c := range curvesOf(doc, profile, kind.metric) {
			row := []string{c.arm, kind.title}
			n := 0
			for _, q := range quantileMetrics {
				cell := "–"
				if k := c.at(q.beyond); k >= 0 {
					cell, n = figure(middleOf(c.values[k])), max(n, len(c.values[k]))
				}
				row = append(row, cell)
			}
			rows = append(rows, append(row, fmt.Sprint(n)))
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// rung is one stage of a ladder, over the trials of an arm.
type rung struct {
	offered, p99, goodput float64
	keeps                 bool
}

// rungs are an arm's stages: the median over its valid trials of each.
func rungs(doc *result.Document, arm, profile string) []rung {
	byStage := [][]result.Step{}
	for _, t := range doc.Trials {
		if t.Arm != arm || t.Profile != profile || !t.Valid {
			continue
		}
		for i, step := range t.Steps {
			if len(byStage) <= i {
				byStage = append(byStage, nil)
			}
			byStage[i] = append(byStage[i], step)
		}
	}
	var rs []rung
	for _, steps := range byStage {
		var offered, p99, goodput []float64
		for _, s := range steps {
			offered, goodput = append(offered, s.Offered), append(goodput, s.Goodput)
			if s.P99 != nil && !slices.Contains(s.AtLeast, "p99") {
				p99 = append(p99, *s.P99)
			}
		}
		slices.Sort(offered)
		slices.Sort(goodput)
		slices.Sort(p99)
		if len(p99) == 0 {
			continue
		}
		r := rung{offered: middleOf(offered), p99: middleOf(p99), goodput: middleOf(goodput)}
		r.keeps = r.goodput >= 0.99*r.offered
		rs = append(rs, r)
	}
	return rs
}

// ladder draws the load curve of a profile with stages, and where it bends.
func ladder(doc *result.Document, profile string) template.HTML {
	type stairs struct {
		arm   string
		rungs []rung
	}
	var all []stairs
	lo, hi, top, least := math.Inf(1), 0.0, 0.0, math.Inf(1)
	for _, a := range doc.Arms {
		rs := rungs(doc, a.Name, profile)
		if len(rs) < 2 || a.SentinelOf != "" {
			continue
		}
		for _, r := range rs {
			lo, hi, top, least = min(lo, r.p99), max(hi, r.p99), max(top, r.offered), min(least, r.offered)
		}
		all = append(all, stairs{a.Name, rs})
	}
	if len(all) == 0 {
		return ""
	}
	x0, x1, y0, y1 := plot()
	x := scale{lo: 0, hi: top * 1.05, from: x0, to: x1}
	y := scale{lo: max(lo*0.9, 1e-6), hi: hi * 1.1, from: y0, to: y1, log: true}
	s := newSVG(chartHeight, "Load curve of "+profile)
	frame(s, x, y, x.ticks(8), func(t float64) string { return figure(t) + "/s" }, "p99, ms")
	var ends []float64
	var arms, classes []string
	for i, st := range all {
		class := seriesClass(i)
		var ps []point
		for _, r := range st.rungs {
			ps = append(ps, point{x.at(r.offered), y.at(r.p99)})
		}
		s.path("curve "+class, ps, false, st.arm)
		bent := false
		for k, r := range st.rungs {
			says := fmt.Sprintf("%s at %s/s: p99 %s ms, goodput %s/s", st.arm, figure(r.offered), figure(r.p99), figure(r.goodput))
			s.dot("dot "+class, ps[k].x, ps[k].y, 3, says)
			if !r.keeps && !bent {
				bent = true
				s.dot("ring "+class, ps[k].x, ps[k].y, 8, "knee: "+says)
			}
		}
		ends, arms, classes = append(ends, ps[len(ps)-1].y), append(arms, st.arm), append(classes, class)
	}
	names(s, x1, ends, arms, classes, y0)
	return s.html()
}

// overTime draws the p99 of every interval, the greatest over an arm's trials: what one
// trial met must not vanish in a mean.
func overTime(doc *result.Document, profile string) template.HTML {
	type course struct {
		arm    string
		points map[float64]float64
	}
	var all []course
	lo, hi, end := math.Inf(1), 0.0, 0.0
	for _, a := range doc.Arms {
		c := course{a.Name, map[float64]float64{}}
		for _, t := range doc.Trials {
			if t.Arm != a.Name || t.Profile != profile || !t.Valid || t.Series == nil || a.SentinelOf != "" {
				continue
			}
			for _, p := range t.Series.Points {
				if p.P99 != nil {
					c.points[p.At] = max(c.points[p.At], *p.P99)
					lo, hi, end = min(lo, *p.P99), max(hi, c.points[p.At]), max(end, p.At+t.Series.Interval)
				}
			}
		}
		if len(c.points) > 2 {
			all = append(all, c)
		}
	}
	if len(all) == 0 || hi == 0 {
		return ""
	}
	x0, x1, y0, y1 := plot()
	x := scale{lo: 0, hi: end, from: x0, to: x1}
	y := scale{lo: max(lo*0.9, 1e-6), hi: hi * 1.1, from: y0, to: y1, log: true}
	s := newSVG(chartHeight, "p99 over time under "+profile)
	for _, f := range doc.Faults {
		if f.Profile == profile {
			s.rect("fault", x.at(f.AtMS/1000), y1, x.at((f.AtMS+f.ForMS)/1000)-x.at(f.AtMS/1000), y0-y1)
		}
	}
	frame(s, x, y, x.ticks(10), func(t float64) string { return figure(t) + " s" }, "p99, ms")
	var ends []float64
	var arms, classes []string
	for i, c := range all {
		class := seriesClass(i)
		var ps []point
		for _, at := range slices.Sorted(maps.Keys(c.points)) {
			ps = append(ps, point{x.at(at), y.at(c.points[at])})
		}
		s.path("curve "+class, ps, false, c.arm)
		ends, arms, classes = append(ends, ps[len(ps)-1].y), append(arms, c.arm), append(classes, class)
	}
	names(s, x1, ends, arms, classes, y0)
	return s.html()
}

// failing has a strip an arm that had errors: how many requests failed in each interval,
// all valid trials together, stacked by class.
func failing(doc *result.Document, profile string) template.HTML {
	type strip struct {
		arm      string
		failed   map[float64]map[string]int64 // by moment and class
		interval float64
	}
	var strips []strip
	classes := map[string]bool{}
	end, top := 0.0, int64(0)
	for _, a := range doc.Arms {
		st := strip{arm: a.Name, failed: map[float64]map[string]int64{}}
		for _, t := range doc.Trials {
			if t.Arm != a.Name || t.Profile != profile || t.Series == nil || !t.Valid {
				continue
			}
			st.interval = t.Series.Interval
			for _, p := range t.Series.Points {
				end = max(end, p.At+t.Series.Interval)
				for class, n := range p.Errors {
					if st.failed[p.At] == nil {
						st.failed[p.At] = map[string]int64{}
					}
					st.failed[p.At][class] += n
					classes[class] = true
				}
			}
		}
		for _, by := range st.failed {
			sum := int64(0)
			for _, n := range by {
				sum += n
			}
			top = max(top, sum)
		}
		if len(st.failed) > 0 {
			strips = append(strips, st)
		}
	}
	if len(strips) == 0 {
		return ""
	}
	const high = 64.0
	order := sorted(classes)
	x0, x1, _, _ := plot()
	s := newSVG(float64(len(strips))*high+40+18*float64(len(order)), "Failed requests over time under "+profile)
	x := scale{lo: 0, hi: end, from: x0, to: x1}
	for i, st := range strips {
		bottom := float64(i+1)*high - 6
		y := scale{lo: 0, hi: float64(top), from: bottom, to: bottom - high + 20}
		s.line("grid", x0, bottom, x1, bottom)
		s.text("tick", "end", x0-6, y.to+4, fmt.Sprint(top))
		s.text("name", "start", x1+10, bottom-8, short(st.arm, 22))
		for _, at := range slices.Sorted(maps.Keys(st.failed)) {
			var below int64
			for k, class := range order {
				n := st.failed[at][class]
				if n == 0 {
					continue
				}
				from, to := x.at(at), x.at(at+st.interval)
				s.bar("stack "+seriesClass(k), from+.5, y.at(float64(below+n)), to-from-1, y.at(float64(below))-y.at(float64(below+n)),
					fmt.Sprintf("%s, from %s s: %d %s", st.arm, figure(at), n, class))
				below += n
			}
		}
	}
	bottom := float64(len(strips)) * high
	for _, t := range x.ticks(10) {
		s.text("tick", "middle", x.at(t), bottom+12, figure(t)+" s")
	}
	for k, class := range order {
		at := bottom + 34 + 18*float64(k)
		s.bar("stack "+seriesClass(k), x0, at-9, 22, 10, class)
		s.text("name", "start", x0+30, at, class)
	}
	return s.html()
}

// faultCourse has a strip an arm: good answers over time, the faults behind it and the
// breaker below it, of the arm's first block.
func faultCourse(doc *result.Document, profile string) template.HTML {
	type strip struct {
		arm   string
		trial result.Trial
	}
	var all []strip
	end, top := 0.0, 0.0
	for _, a := range doc.Arms {
		i := slices.IndexFunc(doc.Trials, func(t result.Trial) bool { return t.Arm == a.Name && t.Profile == profile && len(t.Timeline) > 1 })
		if i < 0 || a.SentinelOf != "" {
			continue
		}
		all = append(all, strip{a.Name, doc.Trials[i]})
		last := 0.0
		for _, m := range doc.Trials[i].Timeline {
			end = max(end, m.AtMS)
			if m.AtMS > last {
				top = max(top, float64(m.OK)*1000/(m.AtMS-last))
			}
			last = m.AtMS
		}
	}
	if len(all) == 0 || end == 0 {
		return ""
	}
	const left, step, strip0 = 175.0, 58.0, 10.0
	height := strip0 + step*float64(len(all)) + 26
	x := scale{lo: 0, hi: end, from: left, to: chartWidth - 20}
	s := newSVG(height, "Course of the faults under "+profile)
	for _, f := range doc.Faults {
		if f.Profile == profile {
			from, to := x.at(max(0, f.AtMS)), x.at(min(end, f.AtMS+f.ForMS))
			s.rect("fault", from, strip0, to-from, step*float64(len(all)))
		}
	}
	for _, t := range x.ticks(12) {
		s.text("tick", "middle", x.at(t), height-8, figure(t/1000)+" s")
	}
	for i, st := range all {
		y0 := strip0 + step*float64(i) + 40
		y := scale{lo: 0, hi: max(top, 1), from: y0, to: y0 - 34}
		s.text("name", "end", left-12, y0-14, short(st.arm, 24))
		s.line("grid", x.from, y0, x.to, y0)
		var ps []point
		last := 0.0
		for _, m := range st.trial.Timeline {
			if m.AtMS > last {
				ps = append(ps, point{x.at((last + m.AtMS) / 2), y.at(float64(m.OK) * 1000 / (m.AtMS - last))})
				if m.Breaker == "open" || m.Breaker == "half-open" {
					s.rect("breaker "+m.Breaker, x.at(last), y0+2, x.at(m.AtMS)-x.at(last), 6)
				}
			}
			last = m.AtMS
		}
		s.path("curve "+seriesClass(i), ps, false, st.arm+", good answers per second")
	}
	s.text("tick", "end", left-12, strip0+14, figure(top)+"/s")
	return s.html()
}

// phaseMetrics are where the time of a request goes, in the order in which it does.
var phaseMetrics = []struct{ metric, label string }{
	{"pool_wait_ms", "pool wait"}, {"connect_ms", "connect"}, {"upstream_ms", "upstream"}, {"relay_ms", "relay"},
}

// timeSpent has a bar an arm: the mean time of a request in the gateway by phase, the
// median over its trials of each. A phase has its place, its pattern and its figure.
func timeSpent(doc *result.Document, profile string) template.HTML {
	type bar struct {
		arm    string
		phases []float64
		sum    float64
	}
	var bars []bar
	top := 0.0
	for _, a := range doc.Arms {
		b := bar{arm: a.Name}
		some := false
		for _, p := range phaseMetrics {
			m, _ := result.MetricNamed(p.metric)
			x := median(figures(doc, m, profile)[a.Name])
			some = some || x != nil
			b.phases = append(b.phases, deref(x))
			b.sum += deref(x)
		}
		if some && a.SentinelOf == "" {
			bars, top = append(bars, b), max(top, b.sum)
		}
	}
	if len(bars) == 0 || top == 0 {
		return ""
	}
	const left, top0, step = 175.0, 26.0, 44.0
	height := top0 + step*float64(len(bars)) + 6
	x := scale{lo: 0, hi: top, from: left, to: chartWidth - 90}
	s := newSVG(height, "Where the time of a request goes under "+profile)
	at := left
	for i, p := range phaseMetrics {
		s.rect(fmt.Sprintf("phase p%d", i), at, 6, 12, 12)
		s.text("tick", "start", at+17, 16, p.label)
		at += 110
	}
	for i, b := range bars {
		y := top0 + step*float64(i)
		s.text("name", "end", left-12, y+15, short(b.arm, 24))
		from := x.from
		says := ""
		for k, v := range b.phases {
			to := from + x.at(v) - x.from
			s.rect(fmt.Sprintf("phase p%d", k), from, y, to-from, 18)
			from = to
			says += fmt.Sprintf("%s %s   ", phaseMetrics[k].label, figure(v))
		}
		s.text("value", "start", from+8, y+14, figure(b.sum)+" ms")
		s.text("tick", "start", left, y+33, says+"ms")
	}
	return s.html()
}

func deref(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
