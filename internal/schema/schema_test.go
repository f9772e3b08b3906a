// Package schema keeps the published JSON Schemas in docs/schema equal to the Go
// types that are written. `go test ./internal/schema -update` rewrites them.
package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"gatebench/loadtest/load"
	"gatebench/loadtest/report"
	"gatebench/loadtest/result"
)

var update = flag.Bool("update", false, "rewrite the published schemas")

// published are the documents that scripts read, by their schema's file.
var published = map[string]struct {
	id  string
	doc any
}{
	"result.json":  {result.Schema, &result.Document{}},
	"load.json":    {load.SummarySchema, &load.Summary{}},
	"compare.json": {report.ChangesSchema, &report.Changes{}},
}

func TestPublishedSchemasAreTheTypes(t *testing.T) {
	for name, p := range published {
		got := generate(t, p.id, p.doc)
		path := filepath.Join("..", "..", "docs", "schema", name)
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what the types say (-published +types):\n%s", path, diff)
		}
	}
}

// generate describes a type; the fields' Go comments become descriptions.
func generate(t *testing.T, id string, doc any) []byte {
	t.Helper()
	r := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true}
	// Comments are found by package path, from the module's root.
	t.Chdir(filepath.Join("..", ".."))
	if err := r.AddGoComments("gatebench", "./loadtest"); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(doc)
	s.ID = jsonschema.ID("https://gatebench.invalid/schema/" + id)
	s.Title = id
	nullable(s, reflect.TypeOf(doc))
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("internal", "schema"))
	return append(b, '\n')
}

// nullable lets a value be null that the types hold by pointer and always write: not
// measured. The reflector shows a pointer as its element.
func nullable(s *jsonschema.Schema, doc reflect.Type) {
	for typ := range structs(doc) {
		d := s.Definitions[typ.Name()]
		if d == nil {
			continue
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Type.Kind() != reflect.Pointer || options != "" {
				continue
			}
			if p, ok := d.Properties.Get(name); ok {
				d.Properties.Set(name, &jsonschema.Schema{
					Description: p.Description,
					OneOf:       []*jsonschema.Schema{valueOf(p), {Type: "null"}},
				})
			}
		}
	}
}

// valueOf is what p says of the value, without its description.
func valueOf(p *jsonschema.Schema) *jsonschema.Schema {
	v := *p
	v.Description = ""
	return &v
}

// structs are the struct types that a document is made of.
func structs(root reflect.Type) map[reflect.Type]bool {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() { //nolint:exhaustive // the rest hold nothing
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for i := range t.NumField() {
				visit(t.Field(i).Type)
			}
		}
	}
	visit(root)
	return seen
}

// TestRealDocumentsFit validates the results that docs/results shows.
func TestRealDocumentsFit(t *testing.T) {
	fits := func(schemaFile string, docs ...string) {
		s := compile(t, schemaFile)
		for _, path := range docs {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	results, err := filepath.Glob(filepath.Join("..", "..", "docs", "results", "*", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 {
		t.Fatal("docs/results shows no result")
	}
	fits("result.json", results...)
}

// TestEmptyDocumentsFit: what measured nothing is still what the schemas promise.
func TestEmptyDocumentsFit(t *testing.T) {
	d := &result.Document{
		Schema: result.Schema, Config: json.RawMessage("{}"), About: map[string]json.RawMessage{}, Warnings: []string{},
		Arms:   []result.Arm{{Name: "a"}, {Name: "b"}},
		Trials: []result.Trial{{Arm: "a", Phase: result.Duet, Profile: "duet", ErrorClasses: map[string]int64{}, Metrics: map[string]float64{}}},
	}
	report.Conclude(d)
	d.Thresholds = []result.Threshold{{Arm: "a", Threshold: "cpu < 1ms", Metric: "cpu_us_per_request", Profile: "duet", Outcome: result.Unmeasured}}
	changes, err := report.Compare(d, d, 0)
	if err != nil {
		t.Fatal(err)
	}
	changes.Changes = append(changes.Changes, report.Change{Arm: "b", Verdict: report.CannotTellChange})
	for file, doc := range map[string]any{"result.json": d, "compare.json": changes} {
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := validator.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(t, file).Validate(parsed); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func compile(t *testing.T, name string) *validator.Schema {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A wrong document must not fit, or the schema says nothing.
func TestSchemaRefuses(t *testing.T) {
	for name := range published {
		s := compile(t, name)
		for _, bad := range []string{`{}`, `{"schema": 1}`, `[]`} {
			doc, err := validator.UnmarshalJSON(strings.NewReader(bad))
			if err != nil {
				t.Fatal(err)
			}
			if s.Validate(doc) == nil {
				t.Errorf("%s fits %s", bad, name)
			}
		}
	}
}
