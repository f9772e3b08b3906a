package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gatebench/internal/conf"
	"gatebench/internal/config"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/load"
	"gatebench/loadtest/report"
)

// loadFlags are the flags of `gatebench load` as they are written.
type loadFlags struct {
	url, method, body, bodyFile string
	fields                      []string
	expectStatus                int
	expectText                  string

	file, profileName string
	saturation        float64

	vus                               int
	iterations                        int64
	rate, start, arrivals             string
	stages                            []string
	search                            bool
	duration, rampUp, warmup, timeout time.Duration
	thinkTime, gracefulStop           time.Duration
	thinkDistribution                 string
	noKeepAlive                       bool
	seed                              uint64

	thresholds []string
	histograms string
	json       bool
	live       bool
}

// shapeFlags say what a profile in a file says.
var shapeFlags = []string{
	"vus", "iterations", "rate", "stage", "start", "arrivals", "search", "duration", "ramp-up", "warmup", "timeout",
	"think-time", "think-distribution", "graceful-stop", "no-keepalive",
}

func newLoad(w *world) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load --url URL (--vus N | --iterations N --vus N | --rate R | --stage D:T … | --search | -f FILE) --duration D",
		Short: "Load any URL and say what was measured",
		Long: `Loads one URL and prints a summary. The load shapes:

  --vus N --duration D [--ramp-up D]   N users, each waits for its answer (closed)
  --stage 10s:50 --stage 1m:50 …       users that change: 0 to 50 in 10 s, a minute of 50
  --iterations N --vus M               N requests shared by M users (closed)
  --rate R --duration D [--vus CAP]    arrivals at a rate like 500/s (open)
  --stage 10s:500/s …                  arrivals at a rate that changes, a result per stage
  --search --threshold "p99<50ms" …    the highest rate that meets thresholds, as an
    --duration D                       interval; D is the length of each of its probes
  -f FILE [--profile NAME]             a profile of a configuration file, which alone can
                                       hold a mix of requests

Response times run from the moment a request was due, so that a target that stalls is
charged for every request that had to wait. Requests that were given up stand in the
quantiles as longer than their age, and failed ones as longer than anything.
--duration does not hold --warmup; what is in flight at the end is awaited up to
--timeout. A threshold that is missed ends with exit code 3.`,
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
	fs.IntVar(&f.expectStatus, "expect-status", 0, "the status that counts as ok (default any below 400)")
	fs.StringVar(&f.expectText, "expect-text", "", "text that the body of an ok answer contains")

	fs.StringVarP(&f.file, "file", "f", "", "configuration file to take a profile from")
	fs.StringVar(&f.profileName, "profile", "", "which of the file's profiles (default the only one)")
	fs.Float64Var(&f.saturation, "saturation", 0, "requests per second that rates like 45% are shares of")

	fs.IntVar(&f.vus, "vus", 0, "virtual users; with --rate their highest number")
	fs.Int64Var(&f.iterations, "iterations", 0, "requests in all, shared by the users")
	fs.StringVar(&f.rate, "rate", "", "arrival rate, like 500/s")
	fs.StringArrayVar(&f.stages, "stage", nil, "DURATION:TARGET, users like 10s:50 or a rate like 10s:500/s; may be repeated")
	fs.StringVar(&f.start, "start", "", "what the first stage starts from (default 0)")
	fs.BoolVar(&f.search, "search", false, "search for the highest rate that meets the thresholds")
	fs.StringVar(&f.arrivals, "arrivals", d.Arrivals, "how arrivals are spread: constant or poisson")
	fs.DurationVar(&f.duration, "duration", 0, "measured time")
	fs.DurationVar(&f.rampUp, "ramp-up", 0, "time over which the users start")
	fs.DurationVar(&f.warmup, "warmup", 0, "time before, loaded and not measured")
	fs.DurationVar(&f.timeout, "timeout", d.Timeout, "how long a request may take")
	fs.DurationVar(&f.gracefulStop, "graceful-stop", 0, "how long what is in flight at the end is awaited (default the timeout)")
	fs.DurationVar(&f.thinkTime, "think-time", 0, "how long a user waits between an answer and its next request")
	fs.StringVar(&f.thinkDistribution, "think-distribution", d.ThinkDistribution, "constant or exponential")
	fs.BoolVar(&f.noKeepAlive, "no-keepalive", false, "open a connection for every request")
	fs.Uint64Var(&f.seed, "seed", d.Seed, "of everything that is drawn at random")

	fs.StringArrayVar(&f.thresholds, "threshold", nil, `what is to be reached, like "p99<50ms" or "errors<0.1%"; may be repeated`)
	fs.StringVar(&f.histograms, "hdr", "", "file for the histograms, as an HdrHistogram log (V2)")
	fs.BoolVar(&f.json, "json", false, "print the summary as JSON ("+load.SummarySchema+")")
	fs.BoolVar(&f.live, "live", false, "print progress to stderr, a line of JSON each: for `gatebench run`")
	_ = fs.MarkHidden("live") // there is such a flag
	cmd.MarkFlagsMutuallyExclusive("rate", "iterations", "stage")
	cmd.MarkFlagsMutuallyExclusive("search", "iterations", "stage")
	cmd.MarkFlagsMutuallyExclusive("data", "data-file")
	for _, name := range shapeFlags {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	return cmd
}

// profile reads the flags as a load shape, or takes it from the file.
func (f loadFlags) profile(cmd *cobra.Command, w *world) (load.Profile, error) {
	p, err := f.shape()
	if f.file != "" {
		cfg, err := checked(config.Load(f.file, w.options()))
		if err != nil {
			return p, err
		}
		if p, err = cfg.Profile(f.profileName); err != nil {
			return p, exit(exitUsage, "%s: %w", f.file, err)
		}
	} else if f.profileName != "" {
		return p, conf.Problem{Path: "profile", Message: "names a profile of a file: give that with -f"}
	}
	if f.file == "" || cmd.Flags().Changed("seed") {
		p.Seed = f.seed
	}
	var c conf.Check
	c.That(f.file == "" || p.Executor != load.MaxRateSearch || len(f.thresholds) == 0, "threshold",
		"is not used with a profile of executor %s: its objective says what is to be met", load.MaxRateSearch)
	if cmd.Flags().Changed("saturation") {
		c.That(f.saturation > 0, "saturation", "must be above 0")
		c.That(err != nil || p.OfSaturation(), "saturation", "is not used: no rate is a share of it, like 45%%")
		p = p.At(f.saturation)
	}
	return p, errors.Join(err, c.Err())
}

// shape reads the flags as a load shape; which executor is meant follows from the
// flags given.
func (f loadFlags) shape() (load.Profile, error) {
	p := load.DefaultProfile()
	p.VUs, p.Iterations, p.RampUp = f.vus, f.iterations, f.rampUp
	p.Duration, p.Warmup, p.Timeout, p.GracefulStop = f.duration, f.warmup, f.timeout, f.gracefulStop
	p.ThinkTime, p.ThinkDistribution, p.Arrivals = f.thinkTime, f.thinkDistribution, f.arrivals
	p.KeepAlive = !f.noKeepAlive
	if f.rate != "" {
		r, err := conf.ParseRate(bareRate(f.rate))
		if err != nil {
			return p, conf.Problem{Path: "rate", Message: err.Error()}
		}
		p.Rate = r
	}
	if f.start != "" && len(f.stages) == 0 {
		return p, conf.Problem{Path: "start", Message: "is what the first stage starts from: give stages with --stage"}
	}
	switch {
	case f.file != "":
	case f.search:
		p.Executor = load.MaxRateSearch
		var err error
		p.Objective, err = f.objective()
		return p, err
	case f.rate != "":
		p.Executor = load.ConstantArrivalRate
	case len(f.stages) > 0:
		return p, f.course(&p)
	case f.iterations != 0:
		p.Executor = load.SharedIterations
	case f.vus != 0:
		p.Executor = load.ConstantVUs
	default:
		return p, conf.Problem{Path: "load", Message: "how much? give --vus N, --iterations N --vus M, --rate R, --stage D:T, --search or -f FILE"}
	}
	return p, nil
}

// course reads the stages. Rates make it open load.
func (f loadFlags) course(p *load.Profile) error {
	p.Executor = load.RampingVUs
	if f.start != "" {
		if err := p.Start.UnmarshalText([]byte(f.start)); err != nil {
			return conf.Problem{Path: "start", Message: err.Error()}
		}
	}
	for _, text := range f.stages {
		s, err := load.ParseStage(text)
		if err != nil {
			return conf.Problem{Path: "stage", Message: err.Error()}
		}
		if !s.Target.Rate.IsZero() {
			p.Executor = load.RampingArrivalRate
		}
		p.Stages = append(p.Stages, s)
	}
	return nil
}

// objective reads the thresholds.
func (f loadFlags) objective() (load.Objective, error) {
	o := load.Objective{}
	var c conf.Check
	for _, text := range f.thresholds {
		err := o.Parse(text)
		c.That(err == nil, "threshold", "%v", err)
	}
	for _, p := range conf.Problems(o.Validate()) {
		c.That(false, "threshold", "%s %s", p.Path, p.Message)
	}
	return o, c.Err()
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
	t.Expect.Status, t.Expect.Contains = f.expectStatus, f.expectText
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
	p, perr := f.profile(cmd, w)
	if _, exiting := errors.AsType[*exitError](perr); exiting {
		return perr
	}
	t, terr := f.target()
	thresholds, oerr := f.objective()
	if err := errors.Join(terr, perr, oerr); err != nil {
		return flagError(err)
	}
	histograms, err := openHistograms(f.histograms)
	if err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	defer histograms.abandon()
	show := showProgress(w, f.json)
	if f.live {
		show = tellProgress(w)
	}
	s, err := load.Run(cmd.Context(), t, p, show)
	if show != nil && !f.live {
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
	if err := histograms.write(s); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	return concluded(s, thresholds)
}

// showProgress redraws one line on a terminal, and does nothing elsewhere.
func showProgress(w *world, asJSON bool) func(load.Progress) {
	if asJSON || !isTerminal(w.stderr, w.env()) {
		return nil
	}
	return func(p load.Progress) {
		of, state := "", ""
		if p.Total > 0 {
			of = fmt.Sprintf(" of %s", p.Total)
		}
		if p.Warmup {
			state = " (warm-up)"
		}
		fmt.Fprintf(w.stderr, "\r\x1b[K%s%s%s: %d done, %d failed", p.Elapsed.Round(100*time.Millisecond), of, state, p.Done, p.Failed)
	}
}

// tellProgress says how far a load is to the run that started it.
func tellProgress(w *world) func(load.Progress) {
	return func(p load.Progress) {
		if b, err := json.Marshal(p); err == nil {
			fmt.Fprintf(w.stderr, "%s%s\n", experiment.ProgressPrefix, b)
		}
	}
}

// concluded is how the command ends, given what was measured.
func concluded(s *load.Summary, thresholds load.Objective) error {
	searched := s.Search != nil
	switch {
	case s.Interrupted:
		return &exitError{code: exitInterrupted}
	case s.Requests.Sent > 0 && s.Requests.Completed == 0:
		return exit(exitCannotRun, "no request to %s was answered: %v", s.URL, s.Errors)
	case s.Saturated && len(thresholds.Missed(s)) > 0: // no doubt about that
	case !s.Valid:
		return exit(exitNotValid, "the result is not valid: %s", strings.Join(s.Warnings, "; "))
	case searched && s.Search.Lo == nil:
		return exit(exitThreshold, "threshold missed at every rate that was tried")
	case searched:
		return nil
	}
	if missed := thresholds.Missed(s); len(missed) > 0 {
		return exit(exitThreshold, "threshold missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

// histogramFile is the file of --hdr, nil where none was asked for.
type histogramFile struct {
	*os.File
	made bool // and not written yet
}

// openHistograms opens the file before the run: that it cannot be written is to be
// known before the time is spent. What it held stays until there is something new.
func openHistograms(path string) (*histogramFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = os.Create(path)
	}
	if err != nil {
		return nil, err
	}
	return &histogramFile{f, made}, nil
}

func (h *histogramFile) write(s *load.Summary) error {
	if h == nil {
		return nil
	}
	h.made = false
	// A pipe or a terminal has nothing to cut off.
	if info, err := h.Stat(); err == nil && info.Mode().IsRegular() {
		if err := h.Truncate(0); err != nil {
			return err
		}
	}
	return errors.Join(s.WriteHistograms(h), h.Close())
}

// abandon closes the file, and removes one that was made for nothing.
func (h *histogramFile) abandon() {
	if h == nil {
		return
	}
	_ = h.Close() // of a written one it is closed already
	if h.made {
		_ = os.Remove(h.Name())
	}
}

func writeSummary(w *world, s *load.Summary, asJSON bool) error {
	if !asJSON {
		return report.Load(w.stdout, s, terminalWidth(w.stdout))
	}
	e := json.NewEncoder(w.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// flagError words problems with values as problems with flags.
func flagError(err error) error {
	var lines []string
	for _, p := range conf.Problems(err) {
		flag := flagOf(p.Path)
		if p.Path == "load" {
			lines = append(lines, p.Message)
			continue
		}
		lines = append(lines, flag+": "+p.Message)
	}
	return exit(exitUsage, "%s", strings.Join(lines, "\n"))
}

// flagOf is the flag that says what a path says.
func flagOf(path string) string {
	name, _, _ := strings.Cut(path, "[")
	switch name {
	case "stages":
		name = "stage"
	case "fields":
		name = "header"
	case "objective":
		name = "threshold"
	}
	if strings.HasPrefix(path, "requests") {
		return path
	}
	return "--" + strings.ReplaceAll(name, "_", "-")
}
