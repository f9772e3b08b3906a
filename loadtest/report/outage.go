package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gatebench/loadtest/result"
)

// Outage is what the arms made of the faults of one profile. Its other figures are
// not judged: response times under a fault tell of the fault.
type Outage struct {
	Profile string
	// Windows say what was wrong, and when.
	Windows []string
	Rows    []OutageRow
}

// OutageRow is one arm in an outage: medians over valid blocks, nil where there is
// none.
type OutageRow struct {
	Arm string
	// Recovery is in milliseconds; nil beside a Storm means not within the run.
	Recovery, Storm, Lost, Trips *float64
	// Course has a mark a second for the breaker, of the first block; "" without
	// one.
	Course string
}

// isBroken reports whether something was wrong in a profile on purpose.
func isBroken(doc *result.Document, profile string) bool {
	return slices.ContainsFunc(doc.Faults, func(f result.FaultWindow) bool { return f.Profile == profile })
}

func outages(doc *result.Document) []Outage {
	var all []Outage
	for _, profile := range profiles(doc, result.Solo) {
		if !isBroken(doc, profile) {
			continue
		}
		o := Outage{Profile: profile}
		for _, f := range doc.Faults {
			if f.Profile == profile {
				o.Windows = append(o.Windows, fmt.Sprintf("%v to %v: %s", sinceStart(f.AtMS), sinceStart(f.AtMS+f.ForMS), f.What))
			}
		}
		of := func(arm, metric string) *float64 {
			m, _ := result.MetricNamed(metric)
			return median(figures(doc, m, profile)[arm])
		}
		for _, a := range doc.Arms {
			o.Rows = append(o.Rows, OutageRow{
				Arm:      a.Name,
				Recovery: of(a.Name, "recovery_ms"),
				Storm:    of(a.Name, "storm_factor"),
				Lost:     of(a.Name, "goodput_lost"),
				Trips:    of(a.Name, "breaker_trips"),
				Course:   course(doc, a.Name, profile),
			})
		}
		all = append(all, o)
	}
	return all
}

func sinceStart(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// marks draw the states of a breaker.
var marks = map[string]string{"closed": "·", "open": "O", "half-open": "h"}

// course draws a breaker's states, a mark a second: open wins over half-open, which
// wins over closed.
func course(doc *result.Document, arm, profile string) string {
	for _, t := range doc.Trials {
		if t.Arm != arm || t.Profile != profile || len(t.Timeline) == 0 {
			continue
		}
		var seconds []string
		for _, m := range t.Timeline {
			if m.Breaker == "" {
				return ""
			}
			for i := int(max(0, m.AtMS-1) / 1000); len(seconds) <= i; {
				seconds = append(seconds, marks["closed"])
			}
			last := &seconds[len(seconds)-1]
			if now := marks[m.Breaker]; now == marks["open"] || *last == marks["closed"] && now != "" {
				*last = now
			}
		}
		return strings.Join(seconds, "")
	}
	return ""
}

func (o Outage) title() string { return fmt.Sprintf("Under faults [%s]", o.Profile) }

// table has an arm a line, the head first.
func (o Outage) table() [][]string {
	rows := [][]string{{"arm", "recovered after", "storm factor", "goodput lost", "opened"}}
	for _, r := range o.Rows {
		recovery := "–"
		switch {
		case r.Recovery != nil && *r.Recovery == 0:
			recovery = "at once"
		case r.Recovery != nil:
			recovery = fmt.Sprintf("%.2f s", *r.Recovery/1000)
		case r.Storm != nil:
			recovery = "not yet"
		}
		cell := func(x *float64, scale float64, format string) string {
			if x == nil {
				return "–"
			}
			return fmt.Sprintf(format, *x*scale)
		}
		rows = append(rows, []string{r.Arm, recovery, cell(r.Storm, 1, "%.2f"), cell(r.Lost, 100, "%.1f %%"), cell(r.Trips, 1, "%.0f")})
	}
	return rows
}

const coursesTitle = "The breaker, a mark a second: · closed, O open, h half-open"

// courses has an arm with a breaker a line, nil where there is none.
func (o Outage) courses() [][]string {
	rows := [][]string{{"arm", "course"}}
	for _, r := range o.Rows {
		if r.Course != "" {
			rows = append(rows, []string{r.Arm, r.Course})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// outage lays out the faults of one profile.
func (p *page) outage(o Outage) {
	p.section(o.title())
	for _, w := range o.Windows {
		p.line("  ", "%s", w)
	}
	p.table(o.table(), 1, 2, 3, 4)
	if rows := o.courses(); rows != nil {
		p.b.WriteString("\n")
		p.line("  ", "%s", coursesTitle)
		p.table(rows)
	}
}
