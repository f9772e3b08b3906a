package report

import (
	"encoding/csv"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
	"gatebench/loadtest/threshold"
)

// formats are the renderers beside the text.
var formats = map[string]func(io.Writer, *result.Document) error{
	"report.md":     func(w io.Writer, d *result.Document) error { return Markdown(w, Summarize(d)) },
	"benchstat.txt": Benchstat,
	"junit.xml":     JUnit,
	"jmeter.csv":    JMeter,
}

// Every format of every document: what is not there shows as not there, and what a
// name or an error text holds stays text.
func TestOutputs(t *testing.T) {
	for name, doc := range documents() {
		d := concluded(t, doc())
		for file, write := range formats {
			t.Run(name+"/"+file, func(t *testing.T) {
				var b strings.Builder
				if err := write(&b, d); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"-"+file, b.String())
				if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
					t.Error("NaN or Inf in the output")
				}
				if strings.ContainsAny(b.String(), "\x1b\x07\r") && file != "jmeter.csv" {
					t.Error("a control character gets through")
				}
			})
		}
	}
}

func TestDegenerateDataHaveNoWinner(t *testing.T) {
	for _, name := range []string{"no-data", "all-failed", "one-block", "no-arms", "identical"} {
		d := concluded(t, documents()[name]())
		var all strings.Builder
		if err := Text(&all, Summarize(d), 100); err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Comparisons {
			if claimed(c.Verdict) {
				t.Errorf("%s: %s is %s", name, c.Arm, c.Verdict)
			}
		}
		if strings.Contains(all.String(), "Take ") {
			t.Errorf("%s has a winner:\n%s", name, all.String())
		}
		if empty := name != "one-block" && name != "identical"; empty != strings.Contains(all.String(), "no data") {
			t.Errorf("%s: \"no data\" in words: %v\n%s", name, !empty, all.String())
		}
	}
}

// An arm that refuses everything at once is cheap and quick, and no winner. Its
// trials are valid: it was measured well.
func TestWhoFailsDoesNotWin(t *testing.T) {
	d := made(10, 0.02, map[string]float64{"resty": 0.2, "fasthttp": 0.6})
	for i := range d.Trials {
		if tr := &d.Trials[i]; tr.Arm == "resty" {
			tr.Errors, tr.ErrorClasses = tr.Requests, map[string]int64{"status_502": tr.Requests}
		}
	}
	concluded(t, d)
	for _, c := range d.Comparisons {
		if c.Arm == "resty" && (c.Verdict != result.NotValid || !strings.Contains(c.Why, "failed")) {
			t.Errorf("%s: %s, %s", c.Metric, c.Verdict, c.Why)
		}
		if c.Arm == "fasthttp" && c.Verdict != result.Better {
			t.Errorf("the others suffer: %s is %s", c.Arm, c.Verdict)
		}
	}
	for _, c := range d.Thresholds {
		if c.Arm == "resty" && c.Baseline != "" && c.Outcome != result.Open {
			t.Errorf("%s: %s", c.Threshold, c.Outcome)
		}
	}
	s := Summarize(d)
	if got := strings.Join(s.Answer, " "); !strings.Contains(got, "Take fasthttp.") || !strings.Contains(got, "Not valid: resty") {
		t.Error(got)
	}
	changes, err := Compare(made(10, 0.02, nil), d, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes.Changes {
		if c.Arm == "resty" && c.Verdict != ChangeNotValid {
			t.Errorf("between runs: %s is %s", c.Metric, c.Verdict)
		}
	}
	// Where the baseline fails there is nothing to compare with.
	for i := range d.Trials {
		if tr := &d.Trials[i]; tr.Arm == "net/http" {
			tr.Errors = tr.Requests
		}
	}
	Conclude(d)
	for _, c := range d.Comparisons {
		if c.Verdict != result.NotValid {
			t.Errorf("against a baseline that fails %s is %s", c.Arm, c.Verdict)
		}
	}
}

// The document of any experiment gives well-formed output in every format.
func TestAnyDocumentGivesWellFormedOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := made(rapid.IntRange(0, 3).Draw(t, "blocks"), 0.1, nil)
		renamed := rapid.OneOf(rapid.StringN(0, 40, 120), rapid.StringMatching(`[|\\<&/ -]{1,6}[0-9]?`)).Draw(t, "name")
		for i := range d.Trials {
			if d.Trials[i].Arm == d.Arms[1].Name {
				d.Trials[i].Arm = renamed
				d.Trials[i].Valid = rapid.Bool().Draw(t, "valid")
				d.Trials[i].VoidReason = rapid.String().Draw(t, "reason")
			}
		}
		d.Arms[1].Name = renamed
		Conclude(d)
		bound, err := threshold.Parse("p99 vs baseline", "<= +10%")
		if err != nil {
			t.Fatal(err)
		}
		Check(d, []threshold.Threshold{bound})

		var junit, jmeter, benchstat, markdown strings.Builder
		for _, err := range []error{JUnit(&junit, d), JMeter(&jmeter, d), Benchstat(&benchstat, d), Markdown(&markdown, Summarize(d))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for dec := xml.NewDecoder(strings.NewReader(junit.String())); ; {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("JUnit: %v", err)
			}
		}
		if _, err := csv.NewReader(strings.NewReader(jmeter.String())).ReadAll(); err != nil {
			t.Fatalf("JMeter: %v", err)
		}
		for _, line := range strings.Split(strings.TrimSpace(benchstat.String()), "\n") {
			if strings.HasPrefix(line, "Benchmark") && !wellFormed.MatchString(line) {
				t.Fatalf("benchstat: %q", line)
			}
		}
		for r := benchfmt.NewReader(strings.NewReader(benchstat.String()), "benchstat.txt"); r.Scan(); {
			if bad, isBad := r.Result().(*benchfmt.SyntaxError); isBad {
				t.Fatalf("as benchstat reads it: %v", bad)
			}
		}
		columns := 0
		for _, line := range strings.Split(markdown.String(), "\n") {
			cells := strings.Count(escape.ReplaceAllString(line, ""), "|")
			if !strings.HasPrefix(line, "| ") {
				columns = 0
			} else if columns == 0 {
				columns = cells
			} else if cells != columns {
				t.Fatalf("Markdown: a row of %d in a table of %d: %q", cells, columns, line)
			}
		}
	})
}

// escape is a backslash and what it makes a letter.
var escape = regexp.MustCompile(`\\.`)

// A name without blanks, a count, then pairs of number and unit.
var wellFormed = regexp.MustCompile(`^Benchmark(Duet|Solo)/profile=[^/\s]*/client=[^/\s]*-\d+\t\d+(\t[-+0-9.e]+ [^\s]+)+$`)

// What benchstat will show, the median of the lines, is what our tables show.
func TestBenchstatSaysWhatTheTableSays(t *testing.T) {
	d := concluded(t, made(8, 0.05, map[string]float64{"fasthttp": 0.6}))
	var b strings.Builder
	if err := Benchstat(&b, d); err != nil {
		t.Fatal(err)
	}
	var seconds []float64
	for _, line := range strings.Split(b.String(), "\n") {
		f := strings.Fields(line)
		if !strings.HasPrefix(line, "BenchmarkDuet") || !strings.Contains(line, "client=fasthttp-2") {
			continue
		}
		for i, unit := range f {
			if unit == "cpu-per-request-sec" {
				x, err := strconv.ParseFloat(f[i-1], 64)
				if err != nil {
					t.Fatal(err)
				}
				seconds = append(seconds, x)
			}
		}
	}
	got, _ := stats.Median(seconds)
	want := *judged(d)[0].Rows[3].Median
	if len(seconds) != 8 || math.Abs(got*1e6-want) > 1e-9*want {
		t.Errorf("%d lines with the median %v µs, the table has %v", len(seconds), got*1e6, want)
	}
}

func TestBenchstatTellsArmsApart(t *testing.T) {
	d := &result.Document{Arms: []result.Arm{{Name: "a b"}, {Name: "a_b"}, {Name: "net/http"}, {Name: "net.http"}}}
	want := map[string]string{"a b": "a_b", "a_b": "a_b#2", "net/http": "net.http", "net.http": "net.http#2"}
	if diff := cmp.Diff(want, benchmarkLabels(d)); diff != "" {
		t.Error(diff)
	}
}

// benchstat holds every column against the one it meets first.
func TestBenchstatMeetsTheBaselineFirst(t *testing.T) {
	d := concluded(t, made(3, 0.01, nil))
	slices.Reverse(d.Trials)
	var b strings.Builder
	if err := Benchstat(&b, d); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(b.String(), "\nBenchmark")
	if first, _, _ := strings.Cut(lines, "\t"); !strings.HasSuffix(first, "/client=net.http-2") {
		t.Errorf("the first line is %s", first)
	}
}

// Two trials whose aggregate can be worked out by hand.
func TestJMeterAggregates(t *testing.T) {
	d := &result.Document{Arms: []result.Arm{{Name: "=a,\"b\""}}}
	for i, m := range []map[string]float64{
		{"response_time_mean": 10, "response_time_min": 2, "response_time_max": 40, "response_time_p50": 9, "response_time_p90": 20, "response_time_p95": 30, "response_time_p99": 39, "throughput": 100, "received_bytes_per_second": 2048},
		{"response_time_mean": 20, "response_time_min": 1, "response_time_max": 30, "response_time_p50": 11, "response_time_p90": 22, "response_time_p95": 28, "response_time_p99": 29, "throughput": 300, "received_bytes_per_second": 4096},
	} {
		d.Trials = append(d.Trials, result.Trial{Arm: d.Arms[0].Name, Block: i, Phase: result.Solo, Profile: "steady", Valid: true, Requests: 100 * int64(1+2*i), Errors: int64(i), Metrics: m})
	}
	var b strings.Builder
	if err := JMeter(&b, d); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"'=a,\"b\" [steady]", "400", "17.5", "10", "21", "29", "34", "1", "40", "0.25%", "200", "3"}
	if diff := cmp.Diff(want, rows[1]); diff != "" {
		t.Error(diff)
	}
}

// The rule of thresholds, case by case.
func TestCheck(t *testing.T) {
	outcomes := func(d *result.Document, name, condition string) map[string]result.Attainment {
		Conclude(d)
		bound, err := threshold.Parse(name, condition)
		if err != nil {
			t.Fatal(err)
		}
		Check(d, []threshold.Threshold{bound})
		got := map[string]result.Attainment{}
		for _, c := range d.Thresholds {
			got[c.Arm] = c.Outcome
		}
		return got
	}
	const met, missed, open, unmeasured = result.Met, result.Missed, result.Open, result.Unmeasured
	died := made(8, 0.02, nil)
	voidArm(died, "resty", 8, "died")
	failing := made(8, 0.02, nil)
	for i := range failing.Trials {
		if tr := &failing.Trials[i]; tr.Arm == "resty" && tr.Phase == result.Solo {
			tr.Errors = 5 // of 4286: more than a thousandth
		}
	}
	for what, c := range map[string]struct {
		doc             *result.Document
		name, condition string
		want            map[string]result.Attainment
	}{
		"an absolute bound": {
			made(8, 0.02, map[string]float64{"resty": 2, "fasthttp": .5}), "p99", "< 3ms",
			map[string]result.Attainment{"net/http": met, "resty": missed, "retryablehttp": met, "fasthttp": met},
		},
		"a ratio surely beyond, surely within, and in between": {
			made(8, 0.02, map[string]float64{"resty": 1.5, "retryablehttp": 1.1, "fasthttp": .5}), "cpu vs baseline", "<= +10%",
			map[string]result.Attainment{"resty": missed, "retryablehttp": open, "fasthttp": met},
		},
		"five blocks bound no ratio": {
			made(5, 0.02, map[string]float64{"resty": 9}), "cpu vs baseline", "<= +10%",
			map[string]result.Attainment{"resty": open, "retryablehttp": open, "fasthttp": open},
		},
		"where twins differ no ratio counts": {
			made(10, 0.01, map[string]float64{"net/http (sentinel)": 1.2, "resty": 3}), "cpu vs baseline", "<= +10%",
			map[string]result.Attainment{"resty": open, "retryablehttp": open, "fasthttp": open},
		},
		"an arm without data does not pass": {
			died, "p99", "< 50ms",
			map[string]result.Attainment{"net/http": met, "resty": unmeasured, "retryablehttp": met, "fasthttp": met},
		},
		"failures count": {
			failing, "errors", "< 0.1%",
			map[string]result.Attainment{"net/http": met, "resty": missed, "retryablehttp": met, "fasthttp": met},
		},
		"more is better in throughput": {
			made(8, 0.02, nil), "throughput", "> 3000/s",
			map[string]result.Attainment{"net/http": missed, "resty": missed, "retryablehttp": missed, "fasthttp": missed},
		},
	} {
		if diff := cmp.Diff(c.want, outcomes(c.doc, c.name, c.condition)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if got := len(MissedThresholds(died)); got != 1 {
		t.Errorf("%d thresholds count as missed, and it is 1 arm without data", got)
	}
}
