package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"gatebench/internal/doctor"
)

// watchFor is how long the doctor watches who uses the machine: of a second, one
// tick of processor time is 1 %.
const watchFor = time.Second

func newDoctor(w *world) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "doctor [-f FILE]",
		Short: "Look for what would spoil a run, before it",
		Long: `Looks at limits, ports, cores, clock, memory and, for a second, at who else uses the
machine. Every line says ok or warn, and how to cure it. The exit code is 1 if there
is a warning.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := w.load(file)
			if err != nil {
				return err
			}
			facts := doctor.Read(cmd.Context(), watchFor, cfg.Gateway.Listen, cfg.Backend.Listen)
			if cmd.Context().Err() != nil {
				return &exitError{code: exitInterrupted}
			}
			return prescribe(w, doctor.Examine(facts))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "configuration file, for the addresses to listen on")
	return cmd
}

func prescribe(w *world, findings []doctor.Finding) error {
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	warnings := 0
	for _, f := range findings {
		state := "ok"
		if f.Warn {
			state, warnings = "warn", warnings+1
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", state, f.Name, printable(f.Value))
		if f.Cure != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", f.Cure)
		}
	}
	if err := t.Flush(); err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	if warnings > 0 {
		return exit(exitCannotRun, "%d of %d findings would spoil a run", warnings, len(findings))
	}
	return nil
}

// printable drops what would move a terminal's cursor or a table's column: the
// names of processes are anyone's to choose.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
