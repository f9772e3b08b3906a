package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gatebench/loadtest/load"
)

// Load writes what one load run measured, for people; its JSON form is
// [load.Summary] itself.
func Load(w io.Writer, s *load.Summary, width int) error {
	p := &page{width: max(width, 40)}
	state := ""
	if s.Interrupted {
		state = ", interrupted"
	}
	p.prose("%s, %s for %.1f s%s", s.URL, s.Executor, s.Seconds, state)
	if !s.Valid {
		p.prose("NOT VALID: the generator, not the server, set these figures")
	}
	for _, warning := range s.Warnings {
		p.prose("warning: %s", warning)
	}
	r := s.Requests
	p.section("requests")
	p.line("  ", "%d planned = %d sent + %d dropped; %d sent = %d ok + %d failed; %d completed", r.Planned, r.Sent, r.Dropped, r.Sent, r.OK, r.Failed, r.Completed)
	p.line("  ", "%s/s completed, %s/s ok", figure(s.Throughput), figure(s.Goodput))
	for _, class := range slices.Sorted(maps.Keys(s.Errors)) {
		p.line("  ", "failed: %s %d", class, s.Errors[class])
	}
	p.section("times, ms")
	p.times(s)
	p.search(s.Search)
	p.steps(s.Steps)
	p.kinds(s.ByRequest)
	p.section("generator")
	p.line("  ", "%s µs CPU per request, lag p50 %s ms, p99 %s ms", figure(s.Generator.CPUMicrosPerRequest), figure(s.Generator.LagP50), figure(s.Generator.LagP99))
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// timesHead is the head of a table whose rows times makes.
var timesHead = []string{"time", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"}

func (p *page) times(s *load.Summary) {
	rows := [][]string{timesHead, times("response (from the due time)", s.ResponseTime)}
	if s.Requests.Failed+s.Requests.Dropped > 0 && s.OKResponseTime != nil {
		rows = append(rows, times("response, ok requests alone", s.OKResponseTime))
	}
	p.table(append(rows, times("service (from sending)", s.ServiceTime)), 1, 2, 3, 4, 5, 6, 7, 8)
	if s.ResponseTime != nil && len(s.ResponseTime.AtLeast) > 0 {
		p.prose("> marks what is only known to be at least that: requests that were given up or failed have no time")
	}
}

// search is the interval that a search ended in, and the way there.
func (p *page) search(s *load.Search) {
	if s == nil {
		return
	}
	p.section("highest rate that meets " + objective(s.Objective))
	lo, hi := "nowhere met", "nowhere missed"
	if s.Lo != nil {
		lo = "met at " + figure(*s.Lo) + "/s"
	}
	if s.Hi != nil {
		hi = "missed at " + figure(*s.Hi) + "/s"
	}
	confirmed := "not confirmed"
	if s.Confirmed {
		confirmed = "each confirmed by four of five probes"
	}
	p.prose("%s, %s; %s", lo, hi, confirmed)
	rows := [][]string{{"trial", "rate/s", "p99, ms", "outcome"}}
	for i, t := range s.Probes {
		outcome := "met"
		if !t.Met {
			outcome = strings.Join(t.Missed, "; ")
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), figure(t.Rate), p99(t.ResponseTime), outcome})
	}
	p.table(rows, 0, 1, 2)
}

func objective(o load.Objective) string {
	var bounds []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		bounds = append(bounds, name+" "+o[name].String())
	}
	return strings.Join(bounds, " and ")
}

// steps has a row for each stage.
func (p *page) steps(steps []load.Step) {
	if len(steps) == 0 {
		return
	}
	p.section("stages")
	rows := [][]string{{"from second", "for", "level", "offered/s", "answered/s", "ok/s", "failed", "dropped", "p50, ms", "p99, ms"}}
	for _, s := range steps {
		level := s.From
		if s.To != s.From {
			level += " to " + s.To
		}
		p50 := "–"
		if s.ResponseTime != nil {
			p50 = bounded(s.ResponseTime, "p50", s.ResponseTime.P50)
		}
		rows = append(rows, []string{
			figure(s.At), figure(s.Seconds) + " s", level, figure(s.Offered), figure(s.Throughput), figure(s.Goodput),
			fmt.Sprint(s.Requests.Failed), fmt.Sprint(s.Requests.Dropped), p50, p99(s.ResponseTime),
		})
	}
	p.table(rows, 0, 1, 3, 4, 5, 6, 7, 8, 9)
}

// kinds has a row for each kind of request.
func (p *page) kinds(kinds []load.Kind) {
	if len(kinds) == 0 {
		return
	}
	p.section("requests by kind")
	rows := [][]string{{"request", "sent", "ok", "failed", "dropped", "mean, ms", "p99, ms"}}
	for _, k := range kinds {
		mean := "–"
		if k.ResponseTime != nil {
			mean = bounded(k.ResponseTime, "mean", &k.ResponseTime.Mean)
		}
		r := k.Requests
		rows = append(rows, []string{
			k.Name, fmt.Sprint(r.Sent), fmt.Sprint(r.OK), fmt.Sprint(r.Failed), fmt.Sprint(r.Dropped), mean, p99(k.ResponseTime),
		})
	}
	p.table(rows, 1, 2, 3, 4, 5, 6)
}

func p99(t *load.Times) string {
	if t == nil {
		return "–"
	}
	return bounded(t, "p99", t.P99)
}

func times(name string, t *load.Times) []string {
	row := []string{name}
	if t == nil {
		for len(row) < len(timesHead) {
			row = append(row, "–")
		}
		return row
	}
	for i, x := range []*float64{&t.Min, &t.Mean, t.P50, t.P90, t.P95, t.P99, t.P999, &t.Max} {
		row = append(row, bounded(t, timesHead[i+1], x))
	}
	return row
}

// bounded is a figure of t, marked where it is a lower bound.
func bounded(t *load.Times, name string, x *float64) string {
	if slices.Contains(t.AtLeast, name) {
		return ">" + figureOrDash(x)
	}
	return figureOrDash(x)
}
