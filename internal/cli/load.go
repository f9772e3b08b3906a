package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gatebench/internal/conf"
	"gatebench/loadtest/load"
	"gatebench/loadtest/report"
)

// loadFlags are the flags of `gatebench load` as they are written.
type loadFlags struct {
	url, method, body, bodyFile, rate string
	fields                            []string
	vus                               int
	iterations                        int64
	duration, rampUp, warmup, timeout time.Duration
	noKeepAlive, json                 bool
}

func newLoad(w *world) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load --url URL (--vus N | --iterations N --vus N | --rate R) --duration D",
		Short: "Load any URL and say what was measured",
		Long: `Loads one URL and prints a summary. Three load shapes:

  --vus N --duration D [--ramp-up D]   N users, each waits for its answer (closed)
  --iterations N --vus M               N requests shared by M users (closed)
  --rate R --duration D [--vus CAP]    arrivals at a rate like 500/s (open)

Response times run from the moment a request was due, so that a target that stalls is
charged for every request that had to wait. --duration does not hold --warmup; what
is in flight at the end is awaited up to --timeout.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLoad(cmd, w, f) },
	}
	fs := cmd.Flags()
	d := load.DefaultProfile()
	fs.StringVar(&f.url, "url", "", "where to send requests, http or https (required)")
	fs.StringVarP(&f.method, "method", "X", "", "request method (default GET, or POST with a body)")
	fs.StringArrayVarP(&f.fields, "header", "H", nil, `header field, "Name: value"; may be repeated`)
	fs.StringVarP(&f.body, "data", "d", "", "request body")
	fs.StringVar(&f.bodyFile, "data-file", "", "file with the request body")
	fs.IntVar(&f.vus, "vus", 0, "virtual users; with --rate their highest number")
	fs.Int64Var(&f.iterations, "iterations", 0, "requests in all, shared by the users")
	fs.StringVar(&f.rate, "rate", "", "arrival rate, like 500/s")
	fs.DurationVar(&f.duration, "duration", 0, "measured time")
	fs.DurationVar(&f.rampUp, "ramp-up", 0, "time over which the users start")
	fs.DurationVar(&f.warmup, "warmup", 0, "time before, loaded and not measured")
	fs.DurationVar(&f.timeout, "timeout", d.Timeout, "how long after it was due a request may take")
	fs.BoolVar(&f.noKeepAlive, "no-keepalive", false, "open a connection for every request")
	fs.BoolVar(&f.json, "json", false, "print the summary as JSON ("+load.SummarySchema+")")
	cmd.MarkFlagsMutuallyExclusive("rate", "iterations")
	cmd.MarkFlagsMutuallyExclusive("data", "data-file")
	return cmd
}

// profile reads the flags as a load shape; which executor is meant follows from
// the flags given.
func (f loadFlags) profile() (load.Profile, error) {
	p := load.DefaultProfile()
	p.VUs, p.Iterations, p.RampUp = f.vus, f.iterations, f.rampUp
	p.Duration, p.Warmup, p.Timeout = f.duration, f.warmup, f.timeout
	p.KeepAlive = !f.noKeepAlive
	switch {
	case f.rate != "":
		r, err := conf.ParseRate(bareRate(f.rate))
		if err != nil {
			return p, conf.Problem{Path: "rate", Message: err.Error()}
		}
		p.Executor, p.Rate = load.ConstantArrivalRate, r
	case f.iterations != 0:
		p.Executor = load.SharedIterations
	case f.vus != 0:
		p.Executor = load.ConstantVUs
	default:
		return p, conf.Problem{Path: "load", Message: "how much? give --vus N, --iterations N --vus M, or --rate R"}
	}
	return p, nil
}

// bareRate lets a plain number mean requests per second on the command line.
func bareRate(s string) string {
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		return s + "/s"
	}
	return s
}

func (f loadFlags) target() (load.Target, error) {
	t := load.Target{URL: f.url, Method: f.method, Body: []byte(f.body)}
	if f.url == "" {
		return t, conf.Problem{Path: "url", Message: "where to? give --url http://host:port/path"}
	}
	for _, line := range f.fields {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return t, conf.Problem{Path: "header", Message: fmt.Sprintf("%q is not a field: write it as \"Name: value\"", line)}
		}
		t.Fields = append(t.Fields, load.Field{Name: name, Value: strings.TrimSpace(value)})
	}
	if f.bodyFile != "" {
		b, err := os.ReadFile(f.bodyFile)
		if err != nil {
			return t, conf.Problem{Path: "data-file", Message: err.Error()}
		}
		t.Body = b
	}
	if t.Method == "" && len(t.Body) > 0 {
		t.Method = "POST"
	}
	return t, nil
}

func runLoad(cmd *cobra.Command, w *world, f loadFlags) error {
	p, perr := f.profile()
	t, terr := f.target()
	if err := errors.Join(terr, perr); err != nil {
		return flagError(err)
	}
	var show func(load.Progress)
	if isTerminal(w.stderr, w.env()) && !f.json {
		show = func(p load.Progress) {
			fmt.Fprintf(w.stderr, "\r\x1b[K%s: %d done, %d failed", p.Elapsed.Round(100*time.Millisecond), p.Done, p.Failed)
		}
	}
	s, err := load.Run(cmd.Context(), t, p, show)
	if show != nil {
		fmt.Fprint(w.stderr, "\r\x1b[K")
	}
	if len(conf.Problems(err)) > 0 {
		return flagError(err)
	}
	if err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	if err := writeSummary(w, s, f.json); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	switch {
	case s.Interrupted:
		return &exitError{code: exitInterrupted}
	case s.Requests.Sent > 0 && s.Requests.Completed == 0:
		return exit(exitCannotRun, "no request to %s was answered: %v", s.URL, s.Errors)
	case !s.Valid:
		return exit(exitNotValid, "the result is not valid: %s", strings.Join(s.Warnings, "; "))
	}
	return nil
}

func writeSummary(w *world, s *load.Summary, asJSON bool) error {
	if !asJSON {
		return report.Load(w.stdout, s, terminalWidth(w.stdout, 100))
	}
	e := json.NewEncoder(w.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// flagError words problems with values as problems with flags.
func flagError(err error) error {
	var lines []string
	for _, p := range conf.Problems(err) {
		flag := "--" + strings.ReplaceAll(p.Path, "_", "-")
		if p.Path == "load" {
			lines = append(lines, p.Message)
			continue
		}
		lines = append(lines, flag+": "+p.Message)
	}
	return exit(exitUsage, "%s", strings.Join(lines, "\n"))
}
