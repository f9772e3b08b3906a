package report

import (
	"fmt"
	"strings"

	"gatebench/loadtest/result"
)

// length says in a sentence how a run of two stages found its number of blocks.
func length(p *result.Precision, measured int) string {
	var wanted []string
	for _, m := range result.Metrics {
		if half, ok := p.Half[m.Name]; ok {
			wanted = append(wanted, fmt.Sprintf("±%.3g %% in %s", 100*half, m.Title))
		}
	}
	s := fmt.Sprintf("%s asked for; a pilot of %d, seen by its scatter alone, needs %d in all", strings.Join(wanted, ", "), p.Pilot, p.Wanted)
	if p.Widest != "" {
		s += " for " + p.Widest
	}
	if measured < p.Wanted {
		s += fmt.Sprintf("; the budget held %d, so that what is open stays open", measured)
	}
	return s + fmt.Sprintf("; intervals at a nominal %.0f %%, which after such a choice hold the truth as often as 95 %% ones", 100*p.Level)
}
