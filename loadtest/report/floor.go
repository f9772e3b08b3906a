package report

import (
	"fmt"
	"maps"
	"slices"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// floorOf names the arm whose client answers from memory: it shows what the machine
// and the gateway cost without any client.
func floorOf(d *result.Document) (name string, ok bool) {
	for _, a := range d.Arms {
		if a.Floor {
			return a.Name, true
		}
	}
	return "", false
}

// aboveFloor subtracts the floor arm's figures from those of every other arm, block by
// block, in what is judged of the duet: there both ran at once on one core, so that
// what the machine did to one it did to the other.
func aboveFloor(doc *result.Document) []result.AboveFloor {
	floor, ok := floorOf(doc)
	if !ok {
		return nil
	}
	var all []result.AboveFloor
	for _, s := range series(doc) {
		if s.metric.Phase != result.Duet {
			continue
		}
		for _, a := range doc.Arms {
			if !a.Floor {
				all = append(all, s.above(a.Name, floor))
			}
		}
	}
	return all
}

func (s measured) above(arm, floor string) result.AboveFloor {
	var d []float64
	for _, block := range slices.Sorted(maps.Keys(s.figures[arm])) {
		if base, ok := s.figures[floor][block]; ok {
			d = append(d, s.figures[arm][block]-base)
		}
	}
	f := result.AboveFloor{Arm: arm, Floor: floor, Profile: s.profile, Metric: s.metric.Name, Level: s.rule().Level, Blocks: len(d)}
	if len(d) == 0 {
		return f
	}
	e := stats.HodgesLehmann(d, s.rule().Level)
	f.Value = &e.Center
	if e.Bounded {
		f.Lo, f.Hi = &e.Lo, &e.Hi
	}
	return f
}

// aboveTitle heads what the clients add, which is the table's by the duet alone.
func (j Judged) aboveTitle() string {
	return fmt.Sprintf("%s above the floor [%s] (%s: what each client adds to a gateway that calls nobody)", j.Metric.Title, j.Profile, j.Metric.Unit)
}

// aboveTable has an arm a line, the head first; nil without a floor.
func (j Judged) aboveTable() [][]string {
	rows := [][]string{{"arm", "above floor"}}
	for _, r := range j.Rows {
		if r.AboveFloor != nil {
			rows = append(rows, []string{r.Arm, beyond(r.AboveFloor)})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// beyond is "+142 [+138, +147]".
func beyond(f *result.AboveFloor) string {
	switch {
	case f.Value == nil:
		return "no data"
	case f.Lo == nil || f.Hi == nil:
		return plus(*f.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", plus(*f.Value), plus(*f.Lo), plus(*f.Hi))
}

// plus is a figure with its sign.
func plus(x float64) string {
	if x < 0 {
		return "-" + figure(-x)
	}
	return "+" + figure(x)
}
