// Package threshold is what a run is asked to reach, as people write it:
//
//	thresholds: {p99: "< 50ms", errors: "< 0.1%", "p99 vs baseline": "<= +10%"}
//
// It reads such a line strictly, and says whether a figure holds it. Which figure
// that is, and how sure it must be, is for the package report.
package threshold

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatebench/internal/conf"
	"gatebench/loadtest/result"
)

// Errors is the name of the share of requests that failed. It is no metric of a
// trial: shares of few requests are not averaged, failures are added up.
const Errors = "errors"

// versus ends the name of a threshold on the ratio to the baseline.
const versus = " vs baseline"

// Threshold is one bound that every arm must keep.
type Threshold struct {
	// Name and Condition are as they were written.
	Name, Condition string

	// Metric is the metric's name, or [Errors].
	Metric string
	// Baseline is set where the bound is on the ratio to the baseline.
	Baseline bool

	// Limit is in the metric's unit; a share for Errors; a ratio, 1.1 for
	// "+10%", against the baseline.
	Limit float64
	// Upper is set for < and <=, Strict for < and >.
	Upper, Strict bool
}

func (t Threshold) String() string { return t.Name + " " + t.Condition }

// Holds reports whether x keeps the bound.
func (t Threshold) Holds(x float64) bool {
	switch {
	case x == t.Limit:
		return !t.Strict
	case t.Upper:
		return x < t.Limit
	default:
		return x > t.Limit
	}
}

// Parse reads one line of the thresholds section.
//
// The name is a metric's ("response_time_p99") or short for it ("p99", "cpu"), or
// "errors"; " vs baseline" behind it makes it a ratio. The condition is an operator
// and a limit with the metric's unit: "< 50ms", "<= 64MiB", "> 1000/s", "< 0.1%",
// and "<= +10%" against the baseline.
func Parse(name, condition string) (Threshold, error) {
	t := Threshold{Name: name, Condition: condition}
	short, baseline := strings.CutSuffix(name, versus)
	t.Baseline = baseline
	metric, err := named(short)
	if err != nil {
		return t, err
	}
	t.Metric = metric.Name
	if baseline && t.Metric == Errors {
		return t, errors.New("errors have no ratio to the baseline, which may have none: bound them alone, like errors: \"< 0.1%\"")
	}
	limit, err := t.operator(metric)
	if err != nil {
		return t, err
	}
	if t.Limit, err = parseLimit(limit, metric, baseline); err != nil {
		return t, err
	}
	if t.Limit == 0 && t.Upper && t.Strict {
		return t, fmt.Errorf("%q can never hold: write \"<= %s\"", condition, limit)
	}
	return t, nil
}

// aliases are what people call metrics; a quantile is also found without its
// response_time_ in front.
var aliases = map[string]string{
	"cpu":    "cpu_us_per_request",
	"allocs": "allocs_per_request",
	"memory": "memory_peak_bytes",
}

func named(name string) (result.Metric, error) {
	if name == Errors {
		return result.Metric{Name: Errors, LowerIsBetter: true}, nil
	}
	for _, candidate := range []string{name, "response_time_" + name, aliases[name]} {
		if m, ok := result.MetricNamed(candidate); ok {
			return m, nil
		}
	}
	return result.Metric{}, fmt.Errorf("%q is not a figure that can be bounded: write errors, p50, p90, p99, cpu, throughput or another metric's name, each also with \" vs baseline\" behind it", name)
}

// operator reads the condition's operator, which the metric's direction decides,
// and returns the rest.
func (t *Threshold) operator(m result.Metric) (limit string, err error) {
	limit = strings.TrimSpace(t.Condition)
	switch {
	case strings.HasPrefix(limit, "<"):
		t.Upper = true
	case !strings.HasPrefix(limit, ">"):
		return "", fmt.Errorf("%q is not a condition: write <, <=, > or >= and a limit, like \"< 50ms\"", t.Condition)
	}
	limit, inclusive := strings.CutPrefix(limit[1:], "=")
	t.Strict = !inclusive
	if t.Upper != m.LowerIsBetter {
		if m.LowerIsBetter {
			return "", fmt.Errorf("%q bounds from below what is better when it is lower: write < or <=", t.Condition)
		}
		return "", fmt.Errorf("%q bounds from above what is better when it is higher: write > or >=", t.Condition)
	}
	return strings.TrimSpace(limit), nil
}

func parseLimit(s string, m result.Metric, baseline bool) (float64, error) {
	switch {
	case baseline:
		return parseChange(s)
	case m.Name == Errors:
		r, err := conf.ParseRatio(s)
		return float64(r), err
	}
	switch m.Unit {
	case "ms", "µs":
		d, err := conf.ParseDuration(s)
		if m.Unit == "µs" {
			return float64(d) / float64(time.Microsecond), err
		}
		return float64(d) / float64(time.Millisecond), err
	case "B", "B/s":
		size, err := conf.ParseSize(strings.TrimSuffix(s, "/s"))
		return float64(size), err
	case "/s":
		r, err := conf.ParseRate(s)
		if err != nil || r.PerSecond == 0 {
			return 0, fmt.Errorf("%q is not a rate: write it like 1000/s", s)
		}
		return r.PerSecond, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f < 1e18) {
		return 0, fmt.Errorf("%q is not a number: write it like 12 or 0.5", s)
	}
	return f, nil
}

// parseChange reads "+10%" as 1.1. The sign is asked for, since "10%" might as well
// mean a tenth of the baseline.
func parseChange(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	signed := strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-")
	if !ok || err != nil || !signed || !(f > -100 && f < 1e6) {
		return 0, fmt.Errorf("%q is not a change: write it with its sign, like +10%% or -5%%", s)
	}
	return 1 + f/100, nil
}
