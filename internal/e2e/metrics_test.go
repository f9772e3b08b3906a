package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"gatebench/server"
)

// docs is the folder of pages.
const docs = "../../docs"

// exposed are the metrics of a gateway with all its layers and of a backend, after a
// request and a failure.
func exposed(t *testing.T, kind string) map[string]*dto.MetricFamily {
	t.Helper()
	backend := startBackend(t, "backend: {server: "+kind+"}")
	gateway := startGateway(t, backend.addr, "gateway: {server: "+kind+"}")
	c := newClient(t)
	get(t, c, "http://"+gateway.addr+"/product")
	get(t, c, "http://"+gateway.addr+"/nothing")
	all := map[string]*dto.MetricFamily{}
	for _, url := range []string{"http://" + gateway.addr + "/-/metrics", "http://" + backend.addr + "/metrics"} {
		_, text := get(t, c, url)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, families)
	}
	return all
}

func labelsOf(f *dto.MetricFamily) []string {
	names := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			names[l.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

var metricRow = regexp.MustCompile("(?m)^\\| `(gatebench_\\w+)` \\| (\\w+) \\|((?: `\\w+`)*) \\| .+ \\|$")

// The page lists every metric that there is, with its type and labels, and no other.
func TestMetricsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		written = append(written, fmt.Sprintf("%s %s %s", row[1], row[2], strings.Join(strings.Fields(strings.ReplaceAll(row[3], "`", "")), " ")))
	}
	slices.Sort(written)
	for _, kind := range server.Kinds() {
		var there []string
		for name, f := range exposed(t, kind) {
			there = append(there, fmt.Sprintf("%s %s %s", name, strings.ToLower(f.GetType().String()), strings.Join(labelsOf(f), " ")))
		}
		slices.Sort(there)
		if diff := gocmp.Diff(there, written); diff != "" {
			t.Errorf("%s: docs/metrics.md is not what is there (-there +written):\n%s", kind, diff)
		}
	}
}

// panel is as much of a Grafana panel as is looked at.
type panel struct {
	ID         int
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ Expr string }
}

var (
	metricName = regexp.MustCompile(`gatebench_\w+`)
	labelUses  = regexp.MustCompile(`(\w+)(?:=~|!=|!~|=)"|by \(([^)]*)\)`)
)

// The dashboard asks for metrics and labels that there are, and its panels do not lie
// over each other.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title, UID string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Query string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || board.UID == "" || len(board.Panels) < 10 {
		t.Errorf("%q %q has %d panels", board.Title, board.UID, len(board.Panels))
	}
	there := exposed(t, server.NetHTTP)
	variables := []string{"__rate_interval"}
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
	}
	ask := func(where, expr string) {
		labels := []string{"job", "instance"} // Prometheus' own
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing: %q", where, expr)
		}
		for _, name := range names {
			f := there[name]
			if f == nil {
				t.Errorf("%s asks for %s, which there is not", where, name)
				continue
			}
			labels = append(labels, labelsOf(f)...)
			if counter := f.GetType() == dto.MetricType_COUNTER; counter != regexp.MustCompile(`(rate|increase|changes)\(`+name).MatchString(expr) {
				t.Errorf("%s: %s is a %s, and is asked for by %s", where, name, f.GetType(), expr)
			}
		}
		for _, use := range labelUses.FindAllStringSubmatch(expr, -1) {
			for _, label := range strings.FieldsFunc(cmp.Or(use[1], use[2]), func(r rune) bool { return r == ',' || r == ' ' }) {
				if !slices.Contains(labels, label) {
					t.Errorf("%s: no metric in it has the label %s: %s", where, label, expr)
				}
			}
		}
		for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
			if !slices.Contains(variables, v[1]) {
				t.Errorf("%s: there is no variable %s: %s", where, v[1], expr)
			}
		}
	}
	for i, p := range board.Panels {
		for _, target := range p.Targets {
			ask("panel "+p.Title, target.Expr)
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 || p.Title == "" {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		for _, o := range board.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if p.ID == o.ID || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q and %q share a place or a number", p.Title, o.Title)
			}
		}
	}
	for _, a := range board.Annotations.List {
		ask("an annotation", a.Expr)
	}
	for _, v := range board.Templating.List {
		if name := metricName.FindString(v.Query); name != "" && there[name] == nil {
			t.Errorf("the variable %s asks for %s, which there is not", v.Name, name)
		}
	}
}
