package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

// fileWidth is the width of reports in files and pipes, in columns.
const fileWidth = 100

// htmlFile is the page in the output folder.
const htmlFile = "report.html"

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
		{"html", htmlFile, fixed(func(w io.Writer, doc *result.Document) error { return report.HTML(w, doc) })},
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
	var open bool
	cmd := &cobra.Command{
		Use:   "report DIR... [--format text|md|html|csv|benchstat|junit|jmeter] [--open]",
		Short: "Report anew on a result folder",
		Long: `Prints the report on a result that a run left, in the form asked for. The exit code is
that of the run: 3 where a threshold was missed, 5 where the result is not valid.

--format html prints one page that needs nothing else; of several folders it makes one
page with all of them, oldest first. --open writes the page (DIR/report.html, or a
temporary file of several) and shows it in a browser.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if open && !cmd.Flags().Changed("format") {
				name = "html"
			}
			f, err := formatNamed(name)
			if err != nil {
				return err
			}
			switch {
			case open && f.file != htmlFile:
				return exit(exitUsage, "--open shows the page: leave --format out, or write --format html")
			case len(args) > 1 && f.file != htmlFile:
				return exit(exitUsage, "only --format html takes several folders; `gatebench compare OLD NEW` judges what changed between two")
			}
			docs, err := readAll(args)
			if err != nil {
				return err
			}
			if open {
				err = openPage(cmd.Context(), w, args, docs)
			} else if len(docs) == 1 {
				err = f.write(w.stdout, docs[0], terminalWidth(w.stdout))
			} else {
				err = report.HTML(w.stdout, docs...)
			}
			if err != nil {
				return exit(exitCannotRun, "%w", err)
			}
			for _, doc := range docs {
				if err := judgement(doc); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "format", "text", "text, md, html, csv, benchstat, junit or jmeter")
	cmd.Flags().BoolVar(&open, "open", false, "write the page and show it in a browser")
	return cmd
}

func readAll(dirs []string) ([]*result.Document, error) {
	var docs []*result.Document
	for _, dir := range dirs {
		doc, err := result.Read(dir)
		if err != nil {
			return nil, exit(exitCannotRun, "%w", err)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// openPage writes the page and has the system show it.
func openPage(ctx context.Context, w *world, dirs []string, docs []*result.Document) error {
	var page strings.Builder
	if err := report.HTML(&page, docs...); err != nil {
		return err
	}
	path := filepath.Join(dirs[0], htmlFile)
	if len(dirs) > 1 {
		f, err := os.CreateTemp("", "gatebench-*.html")
		if err != nil {
			return err
		}
		path = f.Name()
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := result.WriteFile(path, []byte(page.String())); err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, path)
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.CommandContext(ctx, opener, path).Run(); err != nil {
		return fmt.Errorf("no browser could be started (%w): open %s yourself", err, path)
	}
	return nil
}
