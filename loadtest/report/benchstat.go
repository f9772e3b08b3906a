package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"gatebench/loadtest/result"
)

// Benchstat writes every valid trial as a line of the Go benchmark format, for
//
//	benchstat -col /client benchstat.txt
//
// The arm is the key /client, the phase and profile are the benchmark's name. Two
// things to know of what benchstat then prints: its medians and intervals are ours,
// its p-values are not, since it does not pair the blocks and so sees less; and a
// "/" or a blank in a name, which the format keeps for itself, becomes "." or "_".
//
// Format: https://golang.org/design/14313-benchmark-format; the Unit lines are
// benchfmt's (golang.org/x/perf/benchfmt).
func Benchstat(w io.Writer, doc *result.Document) error {
	var b strings.Builder
	m := doc.Machine
	for _, config := range [][2]string{{"goos", m.OS}, {"goarch", m.Arch}, {"cpu", m.CPU}, {"plan", doc.Plan}} {
		if config[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", config[0], clean(config[1]))
		}
	}
	for _, metric := range result.Metrics {
		better := "higher"
		if metric.LowerIsBetter {
			better = "lower"
		}
		fmt.Fprintf(&b, "Unit %s better=%s\n", benchmarkUnit(metric), better)
	}
	labels := benchmarkLabels(doc)
	for _, a := range doc.Arms { // benchstat's base is the column that it meets first
		for _, t := range doc.Trials {
			if t.Arm == a.Name && t.Valid && len(t.Metrics) > 0 && t.Requests > 0 {
				benchmarkLine(&b, t, labels[a.Name], max(1, m.Cores))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func benchmarkLine(b *strings.Builder, t result.Trial, label string, cores int) {
	// The last part would be read as GOMAXPROCS where it ends in a dash and digits;
	// a real one behind it takes that away.
	fmt.Fprintf(b, "Benchmark%s/profile=%s/client=%s-%d\t%d", phaseNames[t.Phase], benchmarkWord(t.Profile), label, cores, t.Requests)
	for _, metric := range result.Metrics {
		if v, ok := t.Metrics[metric.Name]; ok {
			fmt.Fprintf(b, "\t%s %s", strconv.FormatFloat(v*benchmarkScale[metric.Unit], 'g', -1, 64), benchmarkUnit(metric))
		}
	}
	b.WriteString("\n")
}

var phaseNames = map[result.Phase]string{result.Duet: "Duet", result.Solo: "Solo"}

// benchmarkScale takes our units to those that benchstat gives a prefix to.
var benchmarkScale = map[string]float64{"": 1, "µs": 1e-6, "ms": 1e-3, "B": 1, "/s": 1, "B/s": 1}

// benchmarkUnit is the metric's name with the unit that its numbers have.
func benchmarkUnit(m result.Metric) string {
	name := strings.NewReplacer("_us_", "-", "_ms", "", "_bytes", "", "_per_second", "", "_", "-").Replace(m.Name)
	switch m.Unit {
	case "µs", "ms":
		return name + "-sec"
	case "B", "B/s":
		return name + "-" + m.Unit
	case "/s":
		return name + "-req/s"
	}
	return name
}

// benchmarkLabels gives every arm a word of its own, even where two names differ
// only in what the format does not allow.
func benchmarkLabels(doc *result.Document) map[string]string {
	labels, used := map[string]string{}, map[string]bool{}
	for _, a := range doc.Arms {
		word := benchmarkWord(a.Name)
		label := word
		for n := 2; used[label]; n++ {
			label = word + "#" + strconv.Itoa(n)
		}
		labels[a.Name], used[label] = label, true
	}
	return labels
}

func benchmarkWord(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '.'
		case unicode.IsSpace(r) || !unicode.IsPrint(r):
			return '_'
		}
		return r
	}, s)
}
