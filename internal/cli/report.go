package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

// fileWidth is the width of reports in files and pipes, in columns.
const fileWidth = 100

// format is one form of the report: the name of --format, the file in the output
// folder, and what writes it at a width in columns.
type format struct {
	name, file string
	write      func(w io.Writer, doc *result.Document, width int) error
}

// formats lists every form but result.json itself, the default first.
func formats() []format {
	fixed := func(write func(io.Writer, *result.Document) error) func(io.Writer, *result.Document, int) error {
		return func(w io.Writer, doc *result.Document, _ int) error { return write(w, doc) }
	}
	return []format{
		{"text", "report.txt", func(w io.Writer, doc *result.Document, width int) error {
			return report.Text(w, report.Summarize(doc), width)
		}},
		{"md", "report.md", fixed(func(w io.Writer, doc *result.Document) error {
			return report.Markdown(w, report.Summarize(doc))
		})},
		{"csv", result.TrialsFile, fixed(func(w io.Writer, doc *result.Document) error { return doc.WriteTrials(w) })},
		{"benchstat", "benchstat.txt", fixed(report.Benchstat)},
		{"junit", "junit.xml", fixed(report.JUnit)},
		{"jmeter", "jmeter.csv", fixed(report.JMeter)},
	}
}

func formatNamed(name string) (format, error) {
	var names []string
	for _, f := range formats() {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return format{}, exit(exitUsage, "--format: %q is no format; the formats are %s", name, strings.Join(names, ", "))
}

// fileNames are the files that a run leaves for its readers.
func fileNames() []string {
	names := []string{result.DocumentFile}
	for _, f := range formats() {
		names = append(names, f.file)
	}
	return names
}

// save writes everything that a run leaves in its folder for its readers, the
// document itself first.
func save(doc *result.Document, dir string) error {
	if err := doc.Write(dir); err != nil {
		return err
	}
	for _, f := range formats() {
		var b strings.Builder
		if err := f.write(&b, doc, fileWidth); err != nil {
			return fmt.Errorf("%s: %w", f.file, err)
		}
		if err := result.WriteFile(filepath.Join(dir, f.file), []byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}

// judgement is a result's exit code: what is not valid says nothing about
// thresholds either.
func judgement(doc *result.Document) error {
	if !doc.Valid {
		return exit(exitNotValid, "the result is not valid: %s", strings.Join(doc.InvalidReasons, "; "))
	}
	missed := report.MissedThresholds(doc)
	if len(missed) == 0 {
		return nil
	}
	words := make([]string, len(missed))
	for i, m := range missed {
		words[i] = fmt.Sprintf("%s [%s] by %s", m.Threshold, m.Profile, m.Arm)
	}
	return exit(exitThreshold, "thresholds missed: %s", strings.Join(words, "; "))
}

func newReport(w *world) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "report DIR [--format text|md|csv|benchstat|junit|jmeter]",
		Short: "Report anew on a result folder",
		Long: `Prints the report on a result that a run left, in the form asked for. The exit code is
that of the run: 3 where a threshold was missed, 5 where the result is not valid.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := formatNamed(name)
			if err != nil {
				return err
			}
			doc, err := result.Read(args[0])
			if err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			if err := f.write(w.stdout, doc, terminalWidth(w.stdout, fileWidth)); err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			return judgement(doc)
		},
	}
	cmd.Flags().StringVar(&name, "format", "text", "text, md, csv, benchstat, junit or jmeter")
	return cmd
}
