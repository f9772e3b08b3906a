package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatebench/loadtest/load"
)

// target answers with the paths it was asked for, 503 below /busy.
func target(t *testing.T) (url string, seen *atomic.Int64) {
	t.Helper()
	seen = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, nil, &out, &errs)
	return code, out.String(), errs.String()
}

func TestLoadShapesFromFlags(t *testing.T) {
	url, _ := target(t)
	for _, tt := range []struct {
		args     string
		executor string
		sent     int64 // 0 for any
		steps    int
	}{
		{"--vus 2 --duration 50ms", load.ConstantVUs, 0, 0},
		{"--vus 2 --duration 50ms --think-time 5ms --think-distribution exponential", load.ConstantVUs, 0, 0},
		{"--iterations 20 --vus 2", load.SharedIterations, 20, 0},
		{"--rate 200 --duration 100ms", load.ConstantArrivalRate, 20, 0},
		{"--rate 200/s --duration 100ms --arrivals poisson --seed 5", load.ConstantArrivalRate, 20, 0},
		{"--start 2 --stage 30ms:2 --stage 20ms:0", load.RampingVUs, 0, 2},
		{"--start 200/s --stage 50ms:200/s --stage 0s:400/s --stage 50ms:400/s", load.RampingArrivalRate, 30, 2},
		{"--rate 400/s --duration 50ms --search --threshold errors<1%", load.MaxRateSearch, 0, 0},
	} {
		args := append([]string{"load", "--json", "--url", url}, strings.Fields(tt.args)...)
		code, stdout, stderr := runCLI(t, args...)
		var s load.Summary
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Errorf("%s: exit %d, %v %s", tt.args, code, err, stderr)
			continue
		}
		// On a busy machine a run this short may be late, and say so.
		if code != exitOK && code != exitNotValid {
			t.Errorf("%s: exit %d: %s", tt.args, code, stderr)
		}
		if s.Executor != tt.executor || len(s.Steps) != tt.steps || tt.sent > 0 && s.Requests.Planned != tt.sent || s.Requests.Failed > 0 {
			t.Errorf("%s: %s, %d steps, %+v", tt.args, s.Executor, len(s.Steps), s.Requests)
		}
	}
}

func TestLoadTakesAProfileFromAFile(t *testing.T) {
	url, seen := target(t)
	file := filepath.Join(t.TempDir(), "mix.yaml")
	if err := os.WriteFile(file, []byte(`
version: 1
profiles:
  mix:
    executor: shared-iterations
    vus: 2
    iterations: 40
    requests:
      - {weight: 3, get: /a, expect: {contains: "GET /a"}}
      - {weight: 1, name: make, post: /b, json: {name: a, price: 2}, expect: {status: 200}}
  share: {executor: constant-arrival-rate, rate: 50%, duration: 100ms}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runCLI(t, "load", "--json", "--url", url, "-f", file, "--profile", "mix")
	var s load.Summary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v %s", code, err, stderr)
	}
	if s.Requests.OK != 40 || seen.Load() != 40 || len(s.ByRequest) != 2 || s.ByRequest[1].Name != "make" {
		t.Errorf("%+v %+v, the server saw %d", s.Requests, s.ByRequest, seen.Load())
	}
	if code, _, stderr = runCLI(t, "load", "--url", url, "-f", file, "--profile", "share"); code != exitUsage || !strings.Contains(stderr, "saturation") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	_, stdout, stderr = runCLI(t, "load", "--json", "--url", url, "-f", file, "--profile", "share", "--saturation", "400")
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || s.Requests.Planned != 20 {
		t.Errorf("%v %s: %+v", err, stderr, s.Requests)
	}
}

func TestLoadThresholdsDecideTheExit(t *testing.T) {
	url, _ := target(t)
	for _, tt := range []struct {
		path, args string
		code       int
		says       string
	}{
		{"/", "--threshold errors<1% --threshold p99<10s", exitOK, ""},
		{"/", "--threshold p50<0.001ms", exitThreshold, "p50 is to be < 0.001ms"},
		{"/busy", "--threshold errors<1%", exitThreshold, "errors is to be < 1%, and is 100%"},
		{"/busy", "--expect-status 503 --threshold errors<1%", exitOK, ""},
		{"/", "--expect-text nothing --threshold goodput>1/s", exitThreshold, "goodput"},
		{"/", "--threshold p98<1s", exitUsage, "p98 is not a figure"},
		{"/", "--threshold p99", exitUsage, "--threshold"},
	} {
		args := append([]string{"load", "--url", url + tt.path, "--iterations", "50", "--vus", "1"}, strings.Fields(tt.args)...)
		if code, _, stderr := runCLI(t, args...); code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s %s: exit %d: %s", tt.path, tt.args, code, stderr)
		}
	}
}

func TestLoadRefusesWhatItWouldIgnore(t *testing.T) {
	url, seen := target(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := file("none.yaml", "version: 1\n")
	two := file("two.yaml", `
version: 1
profiles:
  search: {executor: max-rate-search, duration: 1s, objective: {p99: "< 1s"}}
  steady: {executor: constant-vus, vus: 1, duration: 1s}
`)
	for _, tt := range []struct{ args, says string }{
		{"", "how much?"},
		{"--vus 1", "--duration"},
		{"--vus 1 --duration 1s --arrivals poisson", "--arrivals"},
		{"--rate 10/s --stage 1s:5", "rate"},
		{"--stage 1s", "--stage"},
		{"--stage 1s:5 --stage 1s:5/s", "--stage"},
		{"--search --duration 1s", "--threshold: is needed"},
		{"-f x.yaml --vus 1", "file"},
		{"--profile x --vus 1 --duration 1s", "--profile"},
		{"-f /no/such.yaml", "no/such"},
		{"-f " + none, none + ": there is no profile in this file"},
		{"-f " + none + " --profile x", none + ": there is no profile in this file"},
		{"-f " + two, two + ": which of the 2 profiles? they are search, steady"},
		{"-f " + two + " --profile steadi", "did you mean steady?"},
		{"-f " + two + " --profile search --threshold p99<1s", "--threshold: is not used with a profile of executor max-rate-search"},
		{"-f " + two + " --profile steady --saturation 400", "--saturation: is not used"},
		{"--rate 10/s --duration 1s --saturation 400", "--saturation: is not used"},
		{"--vus 1 --duration 1s --saturation 400", "--saturation: is not used"},
		{"--rate 45% --duration 1s --saturation 0", "--saturation: must be above 0"},
		{"--rate 45% --duration 1s --saturation -3", "--saturation: must be above 0"},
		{"--vus 1 --duration 1s --start 5", "--start: is what the first stage starts from"},
		{"--rate 10/s --duration 1s --start 5/s", "--start: is what the first stage starts from"},
		{"--search --threshold p99<1s --duration 1s --start 5/s", "--start: is what the first stage starts from"},
	} {
		args := append([]string{"load", "--url", url}, strings.Fields(tt.args)...)
		if code, _, stderr := runCLI(t, args...); code != exitUsage || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: exit %d: %s", tt.args, code, stderr)
		}
	}
	if seen.Load() != 0 {
		t.Error("it sent requests all the same")
	}
}

// A file that cannot be written is noticed before the time is spent, and a run that does
// not come about leaves none behind and an old one as it was.
func TestHistogramFileIsOpenedBeforeTheRun(t *testing.T) {
	url, seen := target(t)
	dir := t.TempDir()
	run := func(url, file string) (code int, stderr string) {
		code, _, stderr = runCLI(t, "load", "--url", url, "--iterations", "10", "--vus", "1", "--hdr", file)
		return code, stderr
	}
	if code, stderr := run(url, filepath.Join(dir, "no", "such.hlog")); code != exitCannotRun || !strings.Contains(stderr, "such.hlog") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if seen.Load() != 0 {
		t.Errorf("%d requests were sent for a file that cannot be written", seen.Load())
	}
	fresh, old := filepath.Join(dir, "fresh.hlog"), filepath.Join(dir, "old.hlog")
	before := strings.Repeat("old\n", 10_000)
	if err := os.WriteFile(old, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{fresh, old} {
		if code, stderr := run("ftp://127.0.0.1", file); code != exitUsage {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that was refused left a file: %v", err)
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != before {
		t.Errorf("a run that was refused left %d bytes of the old file, %v", len(b), err)
	}
	if code, stderr := run(url, old); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if b, err := os.ReadFile(old); err != nil || !strings.Contains(string(b), "Tag=response,") || strings.Contains(string(b), "old") {
		t.Errorf("%v: %s", err, b)
	}
}

func TestLoadWritesHistograms(t *testing.T) {
	url, _ := target(t)
	file := filepath.Join(t.TempDir(), "out.hlog")
	start := time.Now()
	if code, _, stderr := runCLI(t, "load", "--url", url, "--iterations", "10", "--vus", "1", "--hdr", file); code != exitOK {
		t.Fatalf("exit %d after %v: %s", code, time.Since(start), stderr)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), "Tag=response,") {
		t.Errorf("%v: %s", err, b)
	}
}
