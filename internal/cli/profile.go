package cli

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// profile is one profile that a gateway writes of itself, when it is asked to stop: a
// file rather than a path under /-/, so that nobody who reaches the gateway can have
// one made.
type profile struct{ kind, file string }

// The kinds of profile.
const (
	profileCPU  = "cpu"
	profileHeap = "heap"
)

func (p *profile) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.kind, "pprof", "", "write a profile of this process when it is stopped: cpu (from start to stop) or heap (what is in use then, and all that was allocated)")
	cmd.Flags().StringVar(&p.file, "pprof-file", "", "where to")
	cmd.MarkFlagsRequiredTogether("pprof", "pprof-file")
}

// checkProfileKind refuses what is no kind of profile; "" is none.
func checkProfileKind(kind string) error {
	switch kind {
	case "", profileCPU, profileHeap:
		return nil
	}
	return exit(exitUsage, "--pprof %s: there is no such profile: write cpu or heap", kind)
}

// start begins the profile, which is written as soon as ctx is done. finish waits for
// that, and writes at once where ctx is not done.
func (p *profile) start(ctx context.Context) (finish func() error, err error) {
	if err := checkProfileKind(p.kind); err != nil || p.kind == "" {
		return func() error { return nil }, err
	}
	f, err := os.Create(p.file)
	if err != nil {
		return nil, exit(exitCannotRun, "opening the profile: %w", err)
	}
	if p.kind == profileCPU {
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, exit(exitCannotRun, "starting the profile: %w", errors.Join(err, f.Close()))
		}
	}
	written := make(chan error, 1)
	write := func() { written <- p.write(f) }
	early := context.AfterFunc(ctx, write)
	return func() error {
		if early() {
			write()
		}
		if err := <-written; err != nil {
			return exit(exitCannotRun, "writing the profile: %w", err)
		}
		return nil
	}, nil
}

func (p *profile) write(f *os.File) error {
	var err error
	if p.kind == profileCPU {
		pprof.StopCPUProfile()
	} else {
		err = pprof.Lookup(profileHeap).WriteTo(f, 0)
	}
	return errors.Join(err, f.Close())
}
