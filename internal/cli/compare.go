package cli

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"gatebench/internal/conf"
	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

func newCompare(w *world) *cobra.Command {
	var margin string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare OLD NEW [--margin 5%] [--json]",
		Short: "Say what changed between two runs of the same arms",
		Long: `Compares two result folders: the same arms on two dates, or with two versions of a
library. Each arm is judged by its ratio to the baseline of its own run, so that a
machine that was slower on one of the days is no regression; the figures themselves
are shown beside.

The exit code is 4 for a regression that is certain and certainly larger than the
margin, 5 where one of the results is not valid, and 2 where the two were not
configured alike; then the keys that differ are named.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			least, err := parseMargin(margin)
			if err != nil {
				return err
			}
			return runCompare(w, args[0], args[1], least, asJSON)
		},
	}
	cmd.Flags().StringVar(&margin, "margin", "", "smallest change that matters, like 5% (default each metric's own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the changes as JSON ("+report.ChangesSchema+")")
	return cmd
}

// parseMargin reads the flag; 0 is its default.
func parseMargin(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	r, err := conf.ParseRatio(s)
	if err != nil {
		return 0, exit(exitUsage, "--margin: %w", err)
	}
	if r == 0 {
		return 0, exit(exitUsage, "--margin: no change is so small that it does not matter: write a percentage above 0%%, like 5%%")
	}
	return float64(r), nil
}

func runCompare(w *world, oldDir, newDir string, margin float64, asJSON bool) error {
	old, oldErr := result.Read(oldDir)
	latest, newErr := result.Read(newDir)
	if err := errors.Join(oldErr, newErr); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	c, err := report.Compare(old, latest, margin)
	if err != nil {
		return exit(exitUsage, "%w", err)
	}
	if asJSON {
		e := json.NewEncoder(w.stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(c)
	} else {
		err = report.ChangesText(w.stdout, c, terminalWidth(w.stdout))
	}
	switch {
	case err != nil:
		return exit(exitCannotRun, "%w", err)
	case !c.Valid:
		return exit(exitNotValid, "not both results are valid")
	case c.Regressed:
		return exit(exitRegression, "a regression beyond the margin")
	}
	return nil
}
