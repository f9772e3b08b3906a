package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

// The metrics of which a pair of identical arms must not be told apart.
var primaries = []string{"cpu_us_per_request", "response_time_p99"}

// pairsOf are the arms of plans/identical.yaml that are held against each other. They
// share none: of four arms there are six pairs, but those depend on one another.
var pairsOf = [][2]string{{"a", "a2"}, {"b", "b2"}}

// identicalRun is one experiment with identical arms, a line of the file that keeps
// them.
type identicalRun struct {
	Seed uint64 `json:"seed"`
	// Verdicts has an entry for every pair and metric.
	Verdicts []result.Comparison `json:"verdicts"`
}

// identical holds identical arms against each other and counts what is claimed of
// them. The runs of a file count with those of now, so that they can be made in
// pieces; a seed that is in it is not run again.
func (v *verdictTest) identical(ctx context.Context, t *table) error {
	t.section("Identical arms: two disjoint pairs a run, each judged alone")
	runs, err := readRuns(v.append)
	if err != nil {
		return err
	}
	for _, r := range runs {
		t.told(r.name(), r.words(), "no claim", r.verdict())
	}
	for i := range v.runs {
		seed := v.seed + uint64(i)
		if slices.ContainsFunc(runs, func(r identicalRun) bool { return r.Seed == seed }) {
			continue
		}
		doc, err := v.run(ctx, "identical", seed)
		if err != nil {
			return err
		}
		r := identicalRun{Seed: seed, Verdicts: judgePairs(doc)}
		if err := keepRun(v.append, r); err != nil {
			return err
		}
		runs = append(runs, r)
		t.told(r.name(), r.words(), "no claim", r.verdict())
	}
	for _, metric := range primaries {
		sumUp(t, runs, metric)
	}
	return nil
}

// judgePairs has the program's own code judge each pair as if there were no other arm:
// an experiment of two, whose family is one question.
func judgePairs(doc *result.Document) []result.Comparison {
	var all []result.Comparison
	for _, pair := range pairsOf {
		alone := *doc
		of := func(name string) bool { return name == pair[0] || name == pair[1] }
		alone.Arms = slices.DeleteFunc(slices.Clone(doc.Arms), func(a result.Arm) bool { return !of(a.Name) })
		alone.Trials = slices.DeleteFunc(slices.Clone(doc.Trials), func(t result.Trial) bool { return !of(t.Arm) })
		report.Conclude(&alone)
		for _, c := range alone.Comparisons {
			if slices.Contains(primaries, c.Metric) {
				all = append(all, c)
			}
		}
	}
	return all
}

func claims(c result.Comparison) bool {
	return c.Verdict == result.Better || c.Verdict == result.Worse
}

// judged reports whether a pair could have been told apart at all.
func judged(c result.Comparison) bool { return c.Verdict != result.NotValid && c.Lo != nil }

func (r identicalRun) name() string { return fmt.Sprintf("run of seed %d", r.Seed) }

func (r identicalRun) words() string {
	var parts []string
	for _, c := range r.Verdicts {
		m, _ := result.MetricNamed(c.Metric)
		parts = append(parts, fmt.Sprintf("%s of %s ÷ %s %s: %s", m.Title, c.Arm, c.Baseline, words(c), c.Verdict))
	}
	return strings.Join(parts, "; ")
}

// verdict counts the false claims of a run.
func (r identicalRun) verdict() string {
	n := 0
	for _, c := range r.Verdicts {
		if claims(c) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 false claim"
	}
	return fmt.Sprintf("%d false claims", n)
}

// leastJudged is the share of pairs that must have been judged, or the count says
// little.
const leastJudged = 0.8

// sumUp is the row that decides.
func sumUp(t *table, runs []identicalRun, metric string) {
	pairs, told, wrong := len(runs)*len(pairsOf), 0, 0
	for _, r := range runs {
		for _, c := range r.Verdicts {
			if c.Metric != metric {
				continue
			}
			if judged(c) {
				told++
			}
			if claims(c) {
				wrong++
			}
		}
	}
	m, _ := result.MetricNamed(metric)
	most := mostClaims(told)
	t.row("false claims in "+m.Title, fmt.Sprintf("%d of %d pairs (%d of them judged)", wrong, pairs, told),
		fmt.Sprintf("≤ %d of %d judged, of which ≥ %.0f %% of all", most, told, 100*leastJudged),
		wrong <= most && told > 0 && float64(told) >= leastJudged*float64(pairs))
}

// mostClaims is how many of n claims at 5 % may be false before it is clear, at 1 %,
// that there are too many: the least k with P(more than k) ≤ 1 %, 4 of 20, 11 of 100.
func mostClaims(n int) int {
	const rate, alarm = 0.05, 0.01
	p := 1.0
	for range n {
		p *= 1 - rate
	}
	left := 1 - p // P(more than k), k = 0
	for k := range n {
		if left <= alarm {
			return k
		}
		p *= float64(n-k) / float64(k+1) * rate / (1 - rate)
		left -= p
	}
	return n
}

// readRuns reads what earlier pieces kept.
func readRuns(path string) ([]identicalRun, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var runs []identicalRun
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var r identicalRun
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: is no run of identical arms: %w", path, n, err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}

// keepRun appends a line to the file, if there is one.
func keepRun(path string, r identicalRun) error {
	if path == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // results are there to be read by others
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
