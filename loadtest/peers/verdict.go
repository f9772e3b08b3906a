package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gatebench/loadtest/result"
)

// plans are the experiments whose answer is known.
//
//go:embed plans/*.yaml
var plans embed.FS

// trial of the verdict: whether an experiment, carried out by the program and judged by
// its own code, finds what was put in and nothing else.
type verdictTest struct {
	gatebench string
	out       string // folder of the results
	runs      int    // of identical arms
	seed      uint64 // of the first run
	append    string // file that keeps the runs of identical arms, "" for none
	short     bool
}

// verdict carries out the tests named, all of them where none is.
func (v *verdictTest) verdict(ctx context.Context, t *table, names []string) error {
	known := []struct {
		name string
		run  func(context.Context, *table) error
	}{{"identical", v.identical}, {"dose", v.dose}, {"tail", v.tail}}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	for _, k := range known {
		if len(names) > 0 && !wanted[k.name] {
			continue
		}
		delete(wanted, k.name)
		if err := k.run(ctx, t); err != nil {
			return err
		}
	}
	for n := range wanted {
		return fmt.Errorf("there is no test %q of the verdict: identical, dose and tail are", n)
	}
	return nil
}

// run carries a plan out and reads its result. One that is not valid is a result too.
func (v *verdictTest) run(ctx context.Context, plan string, seed uint64) (*result.Document, error) {
	src, err := plans.ReadFile("plans/" + plan + ".yaml")
	if err != nil {
		return nil, err
	}
	out := filepath.Join(v.out, fmt.Sprintf("%s-%d", plan, seed))
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // results are there to be read by others
		return nil, err
	}
	file := filepath.Join(out, plan+".yaml")
	if err := os.WriteFile(file, src, 0o644); err != nil { //nolint:gosec // as the folder around it
		return nil, err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, v.gatebench, "run", file, "--out", out)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GATEBENCH_EXPERIMENT_SEED=%d", seed))
	if v.short {
		cmd.Env = append(cmd.Env, "GATEBENCH_EXPERIMENT_BLOCKS=2")
	}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it stops what it started
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	const notValid = 5
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == notValid) {
		return nil, fmt.Errorf("%s: %w: %s", plan, err, said.String())
	}
	doc, err := result.Read(out)
	if err != nil {
		return nil, err
	}
	if doc.Started.Before(began) {
		return nil, fmt.Errorf("%s left no result of its own in %s", plan, out)
	}
	return doc, nil
}

// comparison finds what the program concluded of an arm.
func comparison(doc *result.Document, arm, metric string) (result.Comparison, error) {
	for _, c := range doc.Comparisons {
		if c.Arm == arm && c.Metric == metric {
			return c, nil
		}
	}
	return result.Comparison{}, fmt.Errorf("the result says nothing of %s of %q", metric, arm)
}

// words are a comparison as people read it: "+0.4 % [-1.1, +1.9]".
func words(c result.Comparison) string {
	if c.Ratio == nil {
		return "no data"
	}
	s := fmt.Sprintf("%+.1f %%", 100*(*c.Ratio-1))
	if c.Lo != nil && c.Hi != nil {
		s += fmt.Sprintf(" [%+.1f, %+.1f]", 100*(*c.Lo-1), 100*(*c.Hi-1))
	}
	return s
}
