package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// svg is a drawing in the making, chartWidth units wide. Colours and widths are classes of the
// page's style sheet, so that it follows light, dark and print; series differ by dash
// and by a name beside them, not by colour alone.
type svg struct {
	b strings.Builder
}

// newSVG begins a drawing of that height that says what it is to whoever does not see it.
func newSVG(h float64, label string) *svg {
	s := &svg{}
	fmt.Fprintf(&s.b, `<div class="scroll chart" tabindex="0" role="region" aria-label="%s"><svg viewBox="0 0 %s %s" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`,
		html.EscapeString(label), num(chartWidth), num(h), html.EscapeString(label))
	return s
}

func (s *svg) html() template.HTML {
	return template.HTML(s.b.String() + "</svg></div>") //nolint:gosec // its texts are escaped where they enter
}

// num keeps drawings small: a tenth of a unit is less than a pixel.
func num(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

func (s *svg) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, num(x), num(y), num(max(w, 0)), num(max(h, 0)))
}

// bar is a rectangle that says what it stands for where a pointer rests on it.
func (s *svg) bar(class string, x, y, w, h float64, says string) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, class, num(x), num(y), num(max(w, 0)), num(max(h, 0)), html.EscapeString(clean(says)))
}

// dot is a circle that says what it stands for where a pointer rests on it.
func (s *svg) dot(class string, x, y, r float64, says string) {
	fmt.Fprintf(&s.b, `<circle class="%s" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`, class, num(x), num(y), num(r), html.EscapeString(clean(says)))
}

// text anchors at "start", "middle" or "end".
func (s *svg) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, num(x), num(y), html.EscapeString(clean(text)))
}

// point is one of a curve, in units of the drawing.
type point struct{ x, y float64 }

// path draws a curve, or an area where it is closed.
func (s *svg) path(class string, points []point, closed bool, says string) {
	if len(points) == 0 {
		return
	}
	fmt.Fprintf(&s.b, `<path class="%s" d="`, class)
	for i, p := range points {
		s.b.WriteString("ML"[min(i, 1):min(i, 1)+1] + num(p.x) + " " + num(p.y))
	}
	if closed {
		s.b.WriteString("Z")
	}
	s.b.WriteString(`">`)
	if says != "" {
		s.b.WriteString("<title>" + html.EscapeString(clean(says)) + "</title>")
	}
	s.b.WriteString("</path>")
}

// scale maps values to units of a drawing, on a line or by their logarithms.
type scale struct {
	lo, hi   float64 // values
	from, to float64 // units
	log      bool
}

func (c scale) at(v float64) float64 {
	f := func(x float64) float64 {
		if c.log {
			return math.Log(max(x, 1e-12))
		}
		return x
	}
	lo, hi := f(c.lo), f(c.hi)
	if hi == lo {
		return (c.from + c.to) / 2
	}
	return c.from + (f(v)-lo)/(hi-lo)*(c.to-c.from)
}

// ticks are round values within the scale: 1, 2 and 5 of every power of ten.
func (c scale) ticks(most int) []float64 {
	if c.log {
		return c.logTicks(most)
	}
	span := c.hi - c.lo
	if span <= 0 {
		return []float64{c.lo}
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(step*m) <= float64(most) {
			step *= m
			break
		}
	}
	var ts []float64
	for t := math.Ceil(c.lo/step) * step; t <= c.hi+step*1e-9; t += step {
		ts = append(ts, t)
	}
	return ts
}

func (c scale) logTicks(most int) []float64 {
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var ts []float64
		for e := math.Floor(math.Log10(c.lo)); e <= math.Ceil(math.Log10(c.hi)); e++ {
			for _, m := range mantissas {
				if t := m * math.Pow(10, e); t >= c.lo*(1-1e-9) && t <= c.hi*(1+1e-9) {
					ts = append(ts, t)
				}
			}
		}
		if len(ts) <= most || len(mantissas) == 1 {
			return ts
		}
	}
	return nil
}

// spread keeps labels apart that want to stand at these heights: each is moved down as
// little as it must, and all of them up again where they leave the bottom.
func spread(want []float64, gap, bottom float64) []float64 {
	order := make([]int, len(want))
	for i := range order {
		order[i] = i
	}
	for i := 1; i < len(order); i++ { // few labels: insertion
		for k := i; k > 0 && want[order[k]] < want[order[k-1]]; k-- {
			order[k], order[k-1] = order[k-1], order[k]
		}
	}
	got := make([]float64, len(want))
	last := math.Inf(-1)
	for _, i := range order {
		got[i] = max(want[i], last+gap)
		last = got[i]
	}
	limit := bottom
	for k := len(order) - 1; k >= 0; k-- {
		got[order[k]] = min(got[order[k]], limit)
		limit = got[order[k]] - gap
	}
	return got
}
