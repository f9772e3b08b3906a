package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatebench/clients"
	"gatebench/clients/clienttest"
	"gatebench/clients/registry"
	"gatebench/server"
)

const root = "../.."

// trapSeries is how many traps there are of each kind: what the study of the
// libraries found.
var trapSeries = map[string]int{"N": 25, "R": 20, "H": 16, "F": 37, "G": 18, "S": 24, "X": 12}

// TestTrapsAreSettled holds docs/traps.md to what exists: each trap has a row, each
// row names tests that are there or deviations that are declared, and no declared
// deviation is missing.
func TestTrapsAreSettled(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "traps.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := knownTests(t)
	declared := declaredDeviations()
	var ids, named []string
	for _, row := range tableRows(string(page)) {
		id, settled := row[0], row[len(row)-1]
		ids = append(ids, id)
		spans := codeSpan.FindAllStringSubmatch(settled, -1)
		if len(spans) == 0 && strings.TrimSpace(strings.Trim(settled, ".")) == "" {
			t.Errorf("%s is not settled", id)
		}
		for _, s := range spans {
			switch name := s[1]; {
			case strings.Contains(name, ": "):
				named = append(named, name)
				if !slices.Contains(declared, name) {
					t.Errorf("%s: nobody declares %q", id, name)
				}
			case !known[name]:
				t.Errorf("%s: there is no test %q", id, name)
			}
		}
	}
	for kind, n := range trapSeries {
		for i := range n {
			if id := fmt.Sprint(kind, i+1); !slices.Contains(ids, id) {
				t.Errorf("trap %s has no row", id)
			}
		}
	}
	slices.Sort(ids)
	if twice := slices.Compact(slices.Clone(ids)); len(twice) != len(ids) {
		t.Errorf("a row stands twice among %q", ids)
	}
	for _, d := range declared {
		if !slices.Contains(named, d) {
			t.Errorf("the declared deviation %q settles no trap", d)
		}
	}
}

// TestSourcesAreTold checks the other way: a trap or report that a case names as its
// source has a row that names the case.
func TestSourcesAreTold(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "traps.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range tableRows(string(page)) {
		rows[row[0]] = row[len(row)-1]
	}
	for _, tc := range cases() {
		told := false
		for _, id := range sourceID.FindAllString(tc.source, -1) {
			if _, ok := rows[id]; !ok {
				t.Errorf("%s: its source %s has no row", tc.name, id)
			}
			told = told || strings.Contains(rows[id], "`wire/"+tc.name+"`")
		}
		if ids := sourceID.FindAllString(tc.source, -1); len(ids) > 0 && !told {
			t.Errorf("%s: none of the rows %q names it", tc.name, ids)
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	sourceID = regexp.MustCompile(`\b(?:[NRHFGSX]|PX|UP|PL|RB|SE)\d+\b|\bTest\w+`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	ruleName = regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", "`)
)

// tableRows returns the cells of every table row in a page, heads and lines aside.
func tableRows(page string) (rows [][]string) {
	head := true
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|---"):
			head = false
		case !head:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// knownTests lists what a row may name: the cases here, the rules of clients and
// servers, and the test functions of every package.
func knownTests(t *testing.T) map[string]bool {
	known := map[string]bool{}
	for _, tc := range cases() {
		known["wire/"+tc.name] = true
	}
	for _, r := range clienttest.Rules() {
		known["clienttest/"+r.Name] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*_test.go"))
	deeper, err2 := filepath.Glob(filepath.Join(root, "*", "*", "*_test.go"))
	if err := firstOf(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, deeper...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		room, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		room = strings.TrimPrefix(filepath.ToSlash(room), "internal/wire")
		if room == "" {
			room = "wire"
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			known[room+"/"+m[1]] = true
		}
		if room == "server" {
			for _, m := range ruleName.FindAllStringSubmatch(string(text), -1) {
				known["server/"+m[1]] = true
			}
		}
	}
	return known
}

// declaredDeviations lists them as a row names them.
func declaredDeviations() (ds []string) {
	list := func(role, library string, of []clients.Deviation) {
		for _, d := range of {
			ds = append(ds, role+" "+library+": "+d.Name)
		}
	}
	for _, e := range registry.All() {
		list("client", e.Name, e.Deviations())
	}
	for _, kind := range server.Kinds() {
		list("server", kind, server.Deviations(kind))
	}
	return ds
}
