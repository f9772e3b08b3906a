package report

import (
	"fmt"
	"io"
	"maps"
	"slices"

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
	p.table([][]string{
		{"time", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"},
		times("response (from the due time)", s.ResponseTime),
		times("service (from sending)", s.ServiceTime),
	}, 1, 2, 3, 4, 5, 6, 7, 8)
	p.section("generator")
	p.line("  ", "%s µs CPU per request, lag p50 %s ms, p99 %s ms", figure(s.Generator.CPUMicrosPerRequest), figure(s.Generator.LagP50), figure(s.Generator.LagP99))
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

func times(name string, t *load.Times) []string {
	if t == nil {
		return []string{name, "–", "–", "–", "–", "–", "–", "–", "–"}
	}
	return []string{
		name, figure(t.Min), figure(t.Mean),
		figureOrDash(t.P50), figureOrDash(t.P90), figureOrDash(t.P95), figureOrDash(t.P99), figureOrDash(t.P999), figure(t.Max),
	}
}
