package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
	"gatebench/loadtest/threshold"
)

// folder is a result folder as a run leaves it: two arms and a sentinel in ten
// blocks, the second arm's CPU being ratio times the baseline's.
func folder(t *testing.T, day uint64, ratio float64, config string, thresholds ...threshold.Threshold) string {
	t.Helper()
	r := rand.New(rand.NewPCG(day, 1))
	d := &result.Document{
		Schema: result.Schema, Plan: "p", Config: json.RawMessage(config), Warnings: []string{},
		Arms: []result.Arm{{Name: "a", Client: "a"}, {Name: "b", Client: "b"}, {Name: "a (sentinel)", Client: "a", SentinelOf: "a"}},
	}
	for block := range 10 {
		for _, a := range d.Arms {
			cpu := 100 * math.Exp(.005*r.NormFloat64())
			if a.Name == "b" {
				cpu *= ratio
			}
			d.Trials = append(d.Trials, result.Trial{
				Arm: a.Name, Block: block, Phase: result.Duet, Profile: "duet", Valid: true, Requests: 1000,
				ErrorClasses: map[string]int64{}, Metrics: map[string]float64{"cpu_us_per_request": cpu},
			})
		}
	}
	report.Conclude(d)
	report.Check(d, thresholds)
	dir := t.TempDir()
	if err := save(d, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func invalidFolder(t *testing.T) string {
	t.Helper()
	d := &result.Document{Schema: result.Schema, Plan: "p", Arms: []result.Arm{{Name: "a", Client: "a"}, {Name: "b", Client: "b"}, {Name: "a (sentinel)", Client: "a", SentinelOf: "a"}}}
	report.Conclude(d)
	dir := t.TempDir()
	if err := save(d, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gatebench runs a command and returns its exit code and what it wrote.
func gatebench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = Run(t.Context(), args, nil, &out, &err)
	return code, out.String(), err.String()
}

func TestCompareExitCodes(t *testing.T) {
	base := folder(t, 1, 1.2, `{"k":1}`)
	other := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing changed":         {[]string{base, folder(t, 2, 1.2, `{"k":1}`)}, exitOK, "no meaningful difference"},
		"against itself":          {[]string{base, base}, exitOK, "No regression"},
		"a regression":            {[]string{base, folder(t, 2, 1.5, `{"k":1}`)}, exitRegression, "REGRESSION: b in gateway CPU per request"},
		"an improvement":          {[]string{base, folder(t, 2, 0.9, `{"k":1}`)}, exitOK, "Improvement: b"},
		"within the margin":       {[]string{base, folder(t, 2, 1.5, `{"k":1}`), "--margin", "25%"}, exitOK, "not surely beyond the margin"},
		"nothing to hold against": {[]string{base, invalidFolder(t)}, exitUsage, "k: 1 in the old result, (not there) in the new"},
		"both not valid":          {[]string{invalidFolder(t), invalidFolder(t)}, exitNotValid, "not a single trial is valid"},
		"another key":             {[]string{base, folder(t, 2, 1.5, `{"k":2}`)}, exitUsage, "k: 1 in the old result, 2 in the new"},
		"no result":               {[]string{base, other}, exitCannotRun, "result.json"},
		"a bad margin":            {[]string{base, base, "--margin", "2"}, exitUsage, "--margin"},
		"a margin of nothing":     {[]string{base, base, "--margin", "0%"}, exitUsage, "--margin"},
		"one folder":              {[]string{base}, exitUsage, "arg"},
		"an unknown flag here":    {[]string{base, base, "--force"}, exitUsage, "force"},
	} {
		code, stdout, stderr := gatebench(t, append([]string{"compare"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", name, code, c.code, c.says, stdout, stderr)
		}
	}
}

func TestComparePrintsJSONAlone(t *testing.T) {
	code, stdout, _ := gatebench(t, "compare", "--json", folder(t, 1, 1, `{}`), folder(t, 2, 1.5, `{}`))
	var c report.Changes
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != exitRegression {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	if c.Schema != report.ChangesSchema || !c.Regressed || len(c.Changes) != 1 || c.Changes[0].Verdict != report.Regression || !c.Changes[0].Beyond {
		t.Errorf("%+v", c)
	}
}

func TestReportFormatsAndThresholds(t *testing.T) {
	bound, err := threshold.Parse("cpu vs baseline", "<= +10%")
	if err != nil {
		t.Fatal(err)
	}
	missed, kept := folder(t, 1, 1.2, `{}`, bound), folder(t, 1, 1.05, `{}`, bound)
	for _, f := range formats() {
		code, stdout, stderr := gatebench(t, "report", missed, "--format", f.name)
		if code != exitThreshold || !strings.Contains(stderr, "cpu vs baseline <= +10% [duet] by b") {
			t.Errorf("%s of a missed threshold: exit %d: %s", f.name, code, stderr)
		}
		file, err := os.ReadFile(filepath.Join(missed, f.file))
		if err != nil {
			t.Fatal(err)
		}
		if stdout != string(file) {
			t.Errorf("report --format %s is not what the run wrote to %s", f.name, f.file)
		}
		if code, _, stderr := gatebench(t, "report", kept, "--format", f.name); code != exitOK {
			t.Errorf("%s of a kept threshold: exit %d: %s", f.name, code, stderr)
		}
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{missed, "--format", "pdf"}, exitUsage},
		{[]string{t.TempDir()}, exitCannotRun},
		{[]string{invalidFolder(t)}, exitNotValid},
	} {
		if code, stdout, stderr := gatebench(t, append([]string{"report"}, c.args...)...); code != c.code {
			t.Errorf("%v: exit %d, want %d: %s%s", c.args, code, c.code, stdout, stderr)
		}
	}
	if got, want := fmt.Sprint(fileNames()), "[result.json report.txt report.md report.html trials.csv benchstat.txt junit.xml jmeter.csv]"; got != want {
		t.Errorf("a run leaves %s, want %s", got, want)
	}
}
