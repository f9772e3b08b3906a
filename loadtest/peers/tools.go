package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// figures are what a tool says of a run, and what it cost.
type figures struct {
	requests                  float64
	uncounted                 float64 // requests before the first that it counts
	rate                      float64 // per second
	mean, p50, p95, p99, p999 float64 // ms, 0 where the tool does not say
	used
}

func (f figures) microseconds() float64 {
	return float64(f.cpu) / float64(time.Microsecond) / f.requests
}

// load runs gatebench and reads its summary.
func (b *bench) load(ctx context.Context, core int, args ...string) (figures, summary, error) {
	out, u, err := b.run(ctx, core, "", append([]string{b.gatebench, "load", "--json"}, args...)...)
	if err != nil {
		return figures{}, summary{}, err
	}
	var s summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return figures{}, s, fmt.Errorf("gatebench load: %w", err)
	}
	f := figures{requests: float64(s.Requests.Sent), rate: s.Throughput, used: u}
	if t := s.ResponseTime; t != nil {
		f.mean, f.p50, f.p95, f.p99, f.p999 = t.Mean, t.P50, t.P95, t.P99, t.P999
	}
	return f, s, nil
}

// summary is as much of gatebench.load/1 as is looked at.
type summary struct {
	Requests struct {
		Planned, Sent, Completed, OK, Failed, Dropped int64
	}
	Throughput   float64
	ResponseTime *struct {
		Mean, P50, P90, P95, P99 float64
		P999                     float64 `json:"p99.9"`
	} `json:"response_time"`
	ServiceTime    *struct{ Mean, P95 float64 } `json:"service_time"`
	OKResponseTime *struct{ P99 float64 }       `json:"ok_response_time"`
	Errors         map[string]int64
	Generator      struct {
		OnWire int64 `json:"on_wire"`
	}
	Search struct{ Lo, Hi *float64 }

	Saturated, Valid bool
	Warnings         []string
}

func (b *bench) peer(name string) (string, error) {
	if b.peers[name] == "" {
		return "", fmt.Errorf("%s %w", name, errMissing)
	}
	return b.peers[name], nil
}

// closed runs a peer with users who never wait.
func (b *bench) closed(ctx context.Context, name string, core, users int, d time.Duration, url string) (figures, error) {
	path, err := b.peer(name)
	if err != nil {
		return figures{}, err
	}
	c, seconds := strconv.Itoa(users), strconv.Itoa(int(d.Seconds()))
	switch name {
	case "wrk":
		out, u, err := b.run(ctx, core, "", path, "-t1", "-c"+c, "-d"+seconds+"s", "--latency", url)
		return readWrk(out, u, err)
	case "ab":
		out, u, err := b.run(ctx, core, "", path, "-k", "-q", "-c", c, "-t", seconds, "-n", "100000000", url)
		return readAB(out, u, err)
	case "hey":
		out, u, err := b.run(ctx, core, "", path, "-z", seconds+"s", "-c", c, url)
		return readHey(out, u, err)
	case "vegeta":
		return b.vegeta(ctx, path, core, url, "-rate=0", "-max-workers="+c, "-workers="+c, "-duration="+d.String())
	}
	return figures{}, fmt.Errorf("%s has no closed load", name)
}

// open runs a peer at a rate.
func (b *bench) open(ctx context.Context, name string, rate int, d time.Duration, url string) (figures, error) {
	path, err := b.peer(name)
	if err != nil {
		return figures{}, err
	}
	switch name {
	case "vegeta":
		return b.vegeta(ctx, path, -1, url, fmt.Sprintf("-rate=%d", rate), "-duration="+d.String())
	case "fortio":
		// Its buckets are one resolution wide only for the first twenty above the
		// offset, a quarter of the value beyond: without one, 20 ms are anything
		// from 20 to 25.
		const users = 20
		out, u, err := b.run(ctx, -1, "", path, "load", "-quiet", "-uniform", "-qps", strconv.Itoa(rate), "-c", strconv.Itoa(users), "-r", "0.0001", "-offset", "19ms",
			"-p", "50,95,99,99.9", "-t", d.String(), "-json", "-", url)
		f, err := readFortio(out, u, err)
		f.uncounted = users // each connection warms up by one
		return f, err
	}
	return figures{}, fmt.Errorf("%s has no open load", name)
}

// vegeta is charged for its attack, not for its report.
func (b *bench) vegeta(ctx context.Context, path string, core int, url string, args ...string) (figures, error) {
	dir, err := os.MkdirTemp("", "vegeta-")
	if err != nil {
		return figures{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	results := filepath.Join(dir, "results.bin")
	_, u, err := b.run(ctx, core, "GET "+url, append([]string{path, "attack", "-output=" + results}, args...)...)
	if err != nil {
		return figures{}, err
	}
	out, _, err := b.run(ctx, -1, "", path, "report", "-type=json", results)
	if err != nil {
		return figures{}, err
	}
	var r struct {
		Latencies struct {
			Mean, Max float64
			P50       float64 `json:"50th"`
			P95       float64 `json:"95th"`
			P99       float64 `json:"99th"`
		}
		Requests, Rate float64
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return figures{}, fmt.Errorf("vegeta: %w", err)
	}
	return figures{requests: r.Requests, rate: r.Rate, mean: r.Latencies.Mean / 1e6, p50: r.Latencies.P50 / 1e6, p95: r.Latencies.P95 / 1e6, p99: r.Latencies.P99 / 1e6, used: u}, nil
}

func readFortio(out string, u used, err error) (figures, error) {
	if err != nil {
		return figures{}, err
	}
	var r struct {
		RequestedDuration string
		DurationHistogram struct {
			Count, Avg  float64
			Percentiles []struct{ Percentile, Value float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return figures{}, fmt.Errorf("fortio: %w", err)
	}
	// Its connections start one after another, spread over the time between two
	// requests of one of them, and each keeps to the length asked for. What it calls
	// the actual rate counts that spread as time without requests.
	length, err := time.ParseDuration(r.RequestedDuration)
	if err != nil || length <= 0 {
		return figures{}, fmt.Errorf("fortio: a run of %q", r.RequestedDuration)
	}
	f := figures{requests: r.DurationHistogram.Count, rate: r.DurationHistogram.Count / length.Seconds(), mean: r.DurationHistogram.Avg * 1000, used: u}
	for _, p := range r.DurationHistogram.Percentiles {
		switch p.Percentile {
		case 50:
			f.p50 = p.Value * 1000
		case 95:
			f.p95 = p.Value * 1000
		case 99:
			f.p99 = p.Value * 1000
		}
	}
	return f, nil
}

var (
	wrkCount = regexp.MustCompile(`(\d+) requests in ([\d.]+)s`)
	wrkMean  = regexp.MustCompile(`Latency +([\d.]+)(us|ms|s) `)
	wrkP50   = regexp.MustCompile(`50% +([\d.]+)(us|ms|s)`)
	wrkP99   = regexp.MustCompile(`99% +([\d.]+)(us|ms|s)`)

	abCount = regexp.MustCompile(`Complete requests: +(\d+)`)
	abRate  = regexp.MustCompile(`Requests per second: +([\d.]+)`)
	abMean  = regexp.MustCompile(`Time per request: +([\d.]+) \[ms\] \(mean\)`)

	heyTotal = regexp.MustCompile(`Total:\s+([\d.]+) secs`)
	heyRate  = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
)

// number is the first group of a match, 0 without one.
func number(re *regexp.Regexp, out string) float64 {
	m := re.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	f, _ := strconv.ParseFloat(m[1], 64)
	return f
}

// inMillis is a match of a number and its unit.
func inMillis(re *regexp.Regexp, out string) float64 {
	m := re.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	d, _ := time.ParseDuration(m[1] + m[2])
	return float64(d) / float64(time.Millisecond)
}

// readable turns what could not be read into an error: a figure of 0 would pass.
func readable(name, out string, f figures, err error) (figures, error) {
	if err == nil && (f.requests == 0 || f.rate == 0) {
		err = errors.New(name + " printed something else: " + out)
	}
	return f, err
}

func readWrk(out string, u used, err error) (figures, error) {
	f := figures{requests: number(wrkCount, out), mean: inMillis(wrkMean, out), p50: inMillis(wrkP50, out), p99: inMillis(wrkP99, out), used: u}
	if m := wrkCount.FindStringSubmatch(out); m != nil {
		seconds, _ := strconv.ParseFloat(m[2], 64)
		f.rate = f.requests / seconds
	}
	return readable("wrk", out, f, err)
}

func readAB(out string, u used, err error) (figures, error) {
	return readable("ab", out, figures{requests: number(abCount, out), rate: number(abRate, out), mean: number(abMean, out), used: u}, err)
}

func readHey(out string, u used, err error) (figures, error) {
	f := figures{rate: number(heyRate, out), used: u}
	f.requests = f.rate * number(heyTotal, out)
	return readable("hey", out, f, err)
}
