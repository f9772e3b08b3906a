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
	"gatebench/loadtest/result"
)

// reportFile is the report as text, in the output folder.
const reportFile = "report.txt"

// fileWidth is the width of reports in files and pipes, in columns.
const fileWidth = 100

func newRun(w *world) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "run [PLAN|FILE] [--out DIR]",
		Short: "Carry out a whole experiment and report on it",
		Long: `Carries out a bundled plan (quick, standard) or one from a file: starts backend and
gateways as processes of this binary, loads every arm in random order, stops
everything whatever happens, and writes result.json, report.txt and trials.csv.
Ctrl-C saves what was measured.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			return runExperiment(cmd.Context(), w, cfg.Plan, out, fmt.Sprintf("gatebench run %s --out %s", plan, out))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder for the results (default out/PLAN)")
	return cmd
}

func runExperiment(ctx context.Context, w *world, plan experiment.Plan, out, command string) error {
	if err := experiment.PrepareOut(out); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	binary, err := os.Executable()
	if err != nil {
		return exit(exitCannotRun, "finding this program's own file: %w", err)
	}
	show := newProgress(w)
	doc, err := experiment.Run(ctx, plan, experiment.Options{Binary: binary, Out: out, Env: w.environ, Progress: show.event})
	show.end()
	if doc == nil {
		return exit(exitCannotRun, "%w", err)
	}
	doc.Command = command
	doc.Machine.Version = version()
	report.Conclude(doc)
	if serr := save(doc, out); serr != nil {
		return exit(exitCannotRun, "saving the result: %w", serr)
	}
	if terr := report.Text(w.stdout, report.Summarize(doc), terminalWidth(w.stdout, fileWidth)); terr != nil {
		return exit(exitCannotRun, "%w", terr)
	}
	fmt.Fprintf(w.stdout, "\nwritten to %s: %s %s %s\n", out, result.DocumentFile, reportFile, result.TrialsFile)
	switch {
	case err != nil:
		return exit(exitCannotRun, "the experiment ended early, what was measured is in %s: %w", out, err)
	case doc.Interrupted:
		return exit(exitInterrupted, "interrupted, what was measured is in %s", out)
	case !doc.Valid:
		return exit(exitNotValid, "the result is not valid: %s", strings.Join(doc.InvalidReasons, "; "))
	}
	return nil
}

// save writes everything that a run leaves in its folder.
func save(doc *result.Document, dir string) error {
	if err := doc.Write(dir); err != nil {
		return err
	}
	var trials, text strings.Builder
	if err := doc.WriteTrials(&trials); err != nil {
		return err
	}
	if err := result.WriteFile(filepath.Join(dir, result.TrialsFile), []byte(trials.String())); err != nil {
		return err
	}
	if err := report.Text(&text, report.Summarize(doc), fileWidth); err != nil {
		return err
	}
	return result.WriteFile(filepath.Join(dir, reportFile), []byte(text.String()))
}

func newReport(w *world) *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Report anew on a result folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			doc, err := result.Read(args[0])
			if err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			if err := report.Text(w.stdout, report.Summarize(doc), terminalWidth(w.stdout, fileWidth)); err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			if !doc.Valid {
				return exit(exitNotValid, "the result is not valid: %s", strings.Join(doc.InvalidReasons, "; "))
			}
			return nil
		},
	}
}
