package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gatebench/internal/config"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/report"
)

func newRun(w *world) *cobra.Command {
	var out, pprof string
	cmd := &cobra.Command{
		Use:   "run [PLAN|FILE] [--out DIR]",
		Short: "Carry out a whole experiment and report on it",
		Long: `Carries out a bundled plan (quick, standard, outage) or one from a file: starts backend and
gateways as processes of this binary, loads every arm in random order, stops
everything whatever happens, and writes result.json and reports of it as text,
Markdown, CSV, JUnit, Go benchmarks and JMeter's aggregate. Ctrl-C saves what was
measured. Where the configuration has thresholds and one is missed, the exit code is
3.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkProfileKind(pprof); err != nil {
				return err
			}
			plan := "quick"
			if len(args) > 0 {
				plan = args[0]
			}
			cfg, err := checked(config.LoadPlan(plan, w.options()))
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join("out", cfg.Name)
			}
			again := []string{"run", plan, "--out", out}
			if pprof != "" {
				again = append(again, "--pprof", pprof)
			}
			return runExperiment(cmd.Context(), w, cfg, out, pprof, w.commandLine(again...))
		},
	}
	cmd.Flags().StringVar(&pprof, "pprof", "", "after the last block, profile every arm's gateway under load into DIR/pprof: cpu or heap")
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder for the results (default out/PLAN)")
	return cmd
}

// commandLine is what repeats a command in a shell: with the variables that
// override configuration before it, and quotes where a shell needs them.
func (w *world) commandLine(args ...string) string {
	var words []string
	for _, kv := range w.environ {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, config.EnvPrefix+"_") {
			words = append(words, name+"="+shellWord(value))
		}
	}
	words = append(words, "gatebench")
	for _, a := range args {
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

// shellWord quotes s unless every character of it stands for itself.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_./:@%+,-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func runExperiment(ctx context.Context, w *world, cfg *config.Config, out, pprof, command string) error {
	kept, err := experiment.SetAside(out)
	if err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	if kept != "" {
		fmt.Fprintf(w.stderr, "the earlier result in %s is now in %s\n", out, kept)
	}
	if err := experiment.PrepareOut(out); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	binary, err := os.Executable()
	if err != nil {
		return exit(exitCannotRun, "finding this program's own file: %w", err)
	}
	show := newProgress(w, cfg.Plan)
	doc, err := experiment.Run(ctx, cfg.Plan, experiment.Options{Binary: binary, Out: out, Env: w.environ, Pprof: pprof, Progress: show.event, Live: show.live()})
	show.end()
	if doc == nil {
		return exit(exitCannotRun, "%w", err)
	}
	doc.Command = command
	doc.Machine.Version = version()
	report.Conclude(doc)
	report.Check(doc, cfg.Thresholds)
	if serr := save(doc, out); serr != nil {
		return exit(exitCannotRun, "saving the result: %w", serr)
	}
	if terr := report.Text(w.stdout, report.Summarize(doc), terminalWidth(w.stdout)); terr != nil {
		return exit(exitCannotRun, "%w", terr)
	}
	fmt.Fprintf(w.stdout, "\nwritten to %s: %s\n", out, strings.Join(fileNames(), " "))
	switch {
	case err != nil:
		return exit(exitCannotRun, "the experiment ended early, what was measured is in %s: %w", out, err)
	case doc.Interrupted:
		return exit(exitInterrupted, "interrupted, what was measured is in %s", out)
	}
	return judgement(doc)
}
