package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gatebench/internal/config"
)

func newValidate(w *world) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "validate [PLAN | -f FILE]",
		Short: "Check a configuration and print every effective value with its origin",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if file != "" && len(args) > 0 {
				return exit(exitUsage, "give a plan or -f FILE, not both")
			}
			var cfg *config.Config
			var err error
			if len(args) > 0 {
				cfg, err = checked(config.LoadPlan(args[0], w.options()))
			} else {
				cfg, err = w.load(file)
			}
			if err != nil {
				return err
			}
			t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
			for v := range cfg.Values() {
				fmt.Fprintf(t, "%s\t%s\t%s\n", v.Path, v.Text, v.Origin)
			}
			if err := t.Flush(); err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "configuration file")
	return cmd
}
