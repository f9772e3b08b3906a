package gatebench_test

import (
	"os"
	"strings"
	"testing"
)

// The README shows a real report, and the one that docs/results keeps.
func TestReadmeShowsTheReportOfDocs(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile("docs/results/quick/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), strings.TrimSpace(string(report))) {
		t.Error("the report in README.md is not docs/results/quick/report.txt")
	}
}
