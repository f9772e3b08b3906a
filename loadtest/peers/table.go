package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// table prints its rows as they come: a run takes minutes.
type table struct {
	w      io.Writer
	rows   int
	failed []string
}

// section begins another table.
func (t *table) section(title string) {
	fmt.Fprintf(t.w, "\n## %s\n\n| what | measured | asked for | |\n|---|---|---|---|\n", title)
}

func (t *table) row(what, measured, asked string, pass bool) {
	verdict := "pass"
	if !pass {
		verdict = "**FAIL**"
		t.failed = append(t.failed, what)
	}
	t.rows++
	t.told(what, measured, asked, verdict)
}

// told is a row that by itself neither passes nor fails.
func (t *table) told(what, measured, asked, verdict string) {
	fmt.Fprintf(t.w, "| %s | %s | %s | %s |\n", what, measured, asked, verdict)
}

// atMost is a row of a figure with an upper bound.
func (t *table) atMost(what string, got, most float64, unit string) {
	t.row(what, fmt.Sprintf("%.4g%s", got, unit), fmt.Sprintf("≤ %.4g%s", most, unit), got <= most)
}

// near is a row of a figure that is known.
func (t *table) near(what string, got, want, tolerance float64, unit string) {
	t.row(what, fmt.Sprintf("%.5g%s", got, unit), fmt.Sprintf("%.5g ± %.3g%s", want, tolerance, unit), math.Abs(got-want) <= tolerance)
}

// missing is a row that could not be measured, which is no pass.
func (t *table) missing(what string, err error) {
	t.row(what, strings.ReplaceAll(fmt.Sprint(err), "\n", " "), "a figure", false)
}

func (t *table) verdict() error {
	fmt.Fprintf(t.w, "\n%d of %d rows pass.\n", t.rows-len(t.failed), t.rows)
	if len(t.failed) > 0 {
		return fmt.Errorf("%d rows failed: %s", len(t.failed), strings.Join(t.failed, "; "))
	}
	return nil
}

// machine says where the figures come from.
func machine(now time.Time) string {
	model := "processor unknown"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, %s %s, %s, %s. Command: `%s`", model, runtime.NumCPU(), runtime.GOOS,
		strings.TrimSpace(string(kernel)), runtime.Version(), now.UTC().Format(time.DateOnly), strings.Join(command(), " "))
}

// command is how this was started, as it can be repeated.
func command() []string { return append([]string{"go run ./loadtest/peers"}, os.Args[1:]...) }

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// spread is a sample as people read it: median (lowest–highest).
func spread(xs []float64) string {
	return fmt.Sprintf("%.3g (%.3g–%.3g)", median(xs), slices.Min(xs), slices.Max(xs))
}
