package cli

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients/registry"
	"gatebench/server"
)

var updateDeviations = flag.Bool("update", false, "write docs/deviations.md anew")

// TestDeviationsPageIsCurrent: docs/deviations.md shows what the command shows,
// without the versions of whoever built it.
func TestDeviationsPageIsCurrent(t *testing.T) {
	const page = "../../docs/deviations.md"
	var b bytes.Buffer
	b.WriteString(`# What each client and server can and cannot do

The same configuration gives the same behaviour on the wire with every client and
behind every server; how a library does it is what is being compared. Where a library
cannot do something, it is declared in its package with the reason
(` + "`Deviations`" + ` in clients/* and server), and the suites check that it is still so: a
new version that can turns them red. What is not listed here, all of them can.

A point bears the name of its case: of clients in ` + "`clients/clienttest`" + `, of servers in
` + "`server/*_test.go`" + `. A gateway says its own at ` + "`/-/about`" + `, and ` + "`gatebench clients`" + ` prints
this page with the libraries' versions.

`)
	for _, r := range roles() {
		b.WriteString("```text\n")
		var text bytes.Buffer
		r.describe(&text)
		b.WriteString(strings.TrimSpace(text.String()) + "\n```\n\n")
	}
	want := strings.TrimSpace(b.String()) + "\n"
	if *updateDeviations {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is not current; go test ./internal/cli -run Deviations -update writes it anew (-want +got):\n%s", diff)
	}
}

func TestClientsShowsEveryDeviationWithin80Columns(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"clients"}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	flat := strings.Join(strings.Fields(out.String()), " ")
	for line := range strings.Lines(out.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, e := range registry.All() {
		for _, d := range e.Deviations() {
			if !strings.Contains(flat, d.Name+": "+d.Reason) {
				t.Errorf("%s: the reason of %s is not shown", e.Name, d.Name)
			}
		}
	}
	for _, kind := range server.Kinds() {
		for _, d := range server.Deviations(kind) {
			if !strings.Contains(flat, d.Name+": "+d.Reason) {
				t.Errorf("%s: the reason of %s is not shown", kind, d.Name)
			}
		}
	}
	for _, row := range []string{"upgrade yes yes yes no", "point net/http resty retryablehttp fasthttp", "date yes no"} {
		if !strings.Contains(flat, row) {
			t.Errorf("there is no row %q:\n%s", row, &out)
		}
	}
}
