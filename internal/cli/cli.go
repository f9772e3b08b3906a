// Package cli is the command line: it reads arguments, environment and signals,
// which nothing else does, wires the packages together and turns errors into one
// sentence and an exit code. Every command is a function of a context, arguments,
// environment and writers, so that a test can run it whole.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes, the same for every command.
const (
	exitOK          = 0
	exitCannotRun   = 1   // could not run
	exitUsage       = 2   // bad configuration or usage
	exitThreshold   = 3   // a threshold was missed
	exitRegression  = 4   // a regression was found
	exitNotValid    = 5   // the result is not valid
	exitInterrupted = 130 // interrupted; what was measured is saved
)

// Main runs the program: the first SIGINT or SIGTERM asks the command to stop (a
// server drains, a measurement saves what it has), a second one ends the process
// at once.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		<-signals
		fmt.Fprintln(stderr, "gatebench: second signal: ending at once")
		os.Exit(exitInterrupted)
	}()
	return Run(ctx, args, environ, stdout, stderr)
}

// Run carries out one command and returns its exit code. The end of ctx asks it to
// stop.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(&world{environ: environ, stdout: stdout, stderr: stderr})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage // what cobra itself refuses: commands, flags, arguments
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(stderr, "gatebench: %s\n", strings.TrimRight(msg, "\n"))
		if code == exitUsage && !errors.As(err, new(*exitError)) {
			fmt.Fprintf(stderr, "Try `gatebench help`.\n")
		}
	}
	return code
}

// world is what a command sees of the outside.
type world struct {
	environ        []string
	stdout, stderr io.Writer
}

// env returns the environment as a map.
func (w *world) env() map[string]string {
	m := make(map[string]string, len(w.environ))
	for _, kv := range w.environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// exitError ends a command with a code; err nil says nothing, because it was said
// already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exit(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

func newRoot(w *world) *cobra.Command {
	root := &cobra.Command{
		Use:   "gatebench",
		Short: "Which outbound HTTP client should my gateway use, under my load?",
		Long: `gatebench compares outbound HTTP clients inside a gateway, with evidence.

A product backend stands behind a gateway whose outbound client is switched by one
line of YAML among net/http, resty, retryablehttp and fasthttp, with a circuit
breaker around each. "gatebench run" loads all of them in random order and says
which is better, by how much and how sure.

Exit codes: 0 fine, 1 could not run, 2 bad configuration or usage, 3 threshold
missed, 4 regression, 5 result not valid, 130 interrupted with what was measured
saved.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newRun(w), newReport(w), newCompare(w), newGateway(w), newBackend(w), newLoad(w), newValidate(w), newClients(w), newDoctor(w),
	)
	return root
}
