package gatebench_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lattice is the plan of the house as data, after Go's own go/build/deps_test.go:
// each package, what of ours it may import, and which modules of others. A
// package that is not here, an import that is not here, and an entry that is not
// used any more each fail the test: the plan changes in the same commit as the
// house, or not at all.
//
// Contracts stand at the bottom, wiring at the top. What it keeps apart:
// loadtest reaches the system under test by process and wire only; the gateway
// does not know the registry; each adapter knows one library.
var lattice = map[string]struct{ ours, theirs string }{
	"cmd/gatebench": {ours: "internal/cli"},

	// Bottom: values and contracts.
	"internal/conf":    {},
	"internal/deck":    {},
	"internal/lead":    {},
	"internal/doctor":  {theirs: "github.com/prometheus/procfs golang.org/x/sys"},
	"internal/process": {theirs: "github.com/prometheus/client_golang golang.org/x/sys"},
	"clients":          {ours: "internal/conf"},
	"server":           {ours: "clients", theirs: "github.com/valyala/fasthttp golang.org/x/sys"},

	// One adapter, one library.
	"clients/nethttp":       {ours: "clients"},
	"clients/resty":         {ours: "clients", theirs: "github.com/go-resty/resty/v2"},
	"clients/retryablehttp": {ours: "clients", theirs: "github.com/hashicorp/go-retryablehttp"},
	"clients/fasthttp":      {ours: "clients", theirs: "github.com/valyala/fasthttp"},
	"clients/floor":         {ours: "clients"}, // calls nobody, with no library
	"clients/clienttest":    {ours: "clients internal/conf", theirs: "go.uber.org/goleak"},
	"clients/registry":      {ours: "clients clients/nethttp clients/resty clients/retryablehttp clients/fasthttp clients/floor"},

	// The two servers under test.
	"gateway/breaker":   {ours: "clients", theirs: "github.com/sony/gobreaker/v2"},
	"gateway/admission": {ours: "clients"},
	"gateway": {
		ours:   "clients gateway/admission gateway/breaker internal/conf internal/process server",
		theirs: "github.com/prometheus/client_golang github.com/prometheus/common",
	},
	"backend/fault": {ours: "clients internal/conf internal/deck server"},
	"backend": {
		ours:   "backend/fault clients internal/conf internal/deck internal/lead internal/process internal/strictyaml server",
		theirs: "github.com/prometheus/client_golang github.com/prometheus/common golang.org/x/sys",
	},

	// The experiment: knows neither gateway nor clients nor backend.
	"loadtest/load":       {ours: "internal/conf internal/lead", theirs: "github.com/HdrHistogram/hdrhistogram-go golang.org/x/sys"},
	"loadtest/peers":      {ours: "clients/registry loadtest/report loadtest/result loadtest/stats", theirs: "github.com/HdrHistogram/hdrhistogram-go golang.org/x/sys"}, // a tool of the project
	"loadtest/stats":      {theirs: "github.com/aclements/go-moremath"},
	"loadtest/result":     {},
	"loadtest/gate":       {ours: "loadtest/result"},
	"loadtest/threshold":  {ours: "internal/conf loadtest/result"},
	"loadtest/report":     {ours: "loadtest/gate loadtest/load loadtest/result loadtest/stats loadtest/threshold", theirs: "github.com/jedib0t/go-pretty/v6 github.com/mattn/go-runewidth"},
	"loadtest/sut":        {ours: "internal/conf loadtest/result", theirs: "github.com/Shopify/toxiproxy/v2 github.com/prometheus/common github.com/prometheus/client_model github.com/prometheus/procfs github.com/rs/zerolog golang.org/x/sys"},
	"loadtest/experiment": {ours: "internal/conf internal/strictyaml loadtest/gate loadtest/load loadtest/result loadtest/stats loadtest/sut"},

	// Top: configuration and wiring.
	"configs":             {},
	"internal/strictyaml": {ours: "internal/conf", theirs: "github.com/goccy/go-yaml"},
	"internal/config": {ours: "backend backend/fault configs gateway internal/conf internal/strictyaml loadtest/experiment loadtest/load " +
		"loadtest/result loadtest/sut loadtest/threshold"},
	"internal/cli": {
		ours: "backend clients clients/registry gateway internal/conf internal/config internal/doctor " +
			"loadtest/experiment loadtest/load loadtest/report loadtest/result server",
		theirs: "github.com/mattn/go-runewidth github.com/spf13/cobra golang.org/x/term",
	},
}

type goPackage struct {
	Dir, ImportPath, Name string
	GoFiles, Imports      []string
	Standard              bool
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return ps
		case err != nil:
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 { // a package of tests only stands outside
			ps = append(ps, p)
		}
	}
}

func TestLattice(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, "gatebench/")
		rule, ok := lattice[room]
		if !ok {
			t.Errorf("%s is not in the lattice: enter it with what it may import", room)
			continue
		}
		seen[room] = true
		ours, theirs := allowance(rule.ours), allowance(rule.theirs)
		for _, imp := range p.Imports {
			if inner, ok := strings.CutPrefix(imp, "gatebench/"); ok {
				if !ours.use(func(a string) bool { return a == inner }) {
					t.Errorf("%s may not import %s", room, inner)
				}
			} else if strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
				if !theirs.use(func(a string) bool { return imp == a || strings.HasPrefix(imp, a+"/") }) {
					t.Errorf("%s may not import %s", room, imp)
				}
			}
		}
		for _, a := range append(ours.unused(), theirs.unused()...) {
			t.Errorf("the lattice lets %s import %s, which it does not: take the entry out", room, a)
		}
	}
	for room := range maps.Keys(lattice) {
		if !seen[room] {
			t.Errorf("the lattice names %s, which does not exist", room)
		}
	}
}

// TestThePlanNamesEveryRoom: ARCHITECTURE.md says of each room what it is for.
func TestThePlanNamesEveryRoom(t *testing.T) {
	plan, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for room := range lattice {
		names := []string{"`" + room + "`", "`" + room + "/`"}
		if inner, ok := strings.CutPrefix(room, "clients/"); ok {
			names = append(names, "`"+inner+"`") // the adapters share a line
		}
		if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(string(plan), n) }) {
			t.Errorf("ARCHITECTURE.md does not name %s", room)
		}
	}
}

type allowed map[string]bool // entry → used

func allowance(s string) allowed {
	a := allowed{}
	for _, f := range strings.Fields(s) {
		a[f] = false
	}
	return a
}

func (a allowed) use(match func(string) bool) bool {
	ok := false
	for entry := range a {
		if match(entry) {
			a[entry], ok = true, true
		}
	}
	return ok
}

func (a allowed) unused() []string {
	var u []string
	for entry, used := range a {
		if !used {
			u = append(u, entry)
		}
	}
	slices.Sort(u)
	return u
}

// TestNoHiddenState: no init function, and a package-level variable never changes
// after its declaration: what a package does depends on what it is given.
// Flags, environment and signals are read in internal/cli and nowhere else.
func TestNoHiddenState(t *testing.T) {
	for _, p := range listPackages(t) {
		fset, files := parse(t, p)
		packageLevel, names := map[any]bool{}, map[string]bool{}
		for _, f := range files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
							packageLevel[v] = true
							for _, id := range v.Names {
								names[id.Name] = true
							}
						}
					}
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						t.Errorf("%s: init function", fset.Position(d.Pos()))
					}
				}
			}
		}
		changed := func(lhs ast.Expr) {
			id := root(lhs)
			// An identifier declared in another file has no Obj.
			if id != nil && id.Name != "_" && names[id.Name] && (id.Obj == nil || packageLevel[id.Obj.Decl]) {
				t.Errorf("%s: package-level variable %s is changed", fset.Position(lhs.Pos()), id.Name)
			}
		}
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, lhs := range n.Lhs {
						if n.Tok != token.DEFINE {
							changed(lhs)
						}
					}
				case *ast.IncDecStmt:
					changed(n.X)
				case *ast.SelectorExpr:
					pkg, ok := n.X.(*ast.Ident)
					if !ok || pkg.Obj != nil || strings.HasPrefix(p.ImportPath, "gatebench/internal/cli") || p.Name == "main" {
						break
					}
					if what, bad := readsWorld[pkg.Name+"."+n.Sel.Name]; bad {
						t.Errorf("%s: %s belongs to internal/cli", fset.Position(n.Pos()), what)
					}
				}
				return true
			})
		}
	}
}

// root is the variable that an assignable expression is part of: v of v.f[i].
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default: // through a pointer, it is not the variable that changes
			return nil
		}
	}
}

var readsWorld = map[string]string{
	"os.Getenv": "the environment", "os.LookupEnv": "the environment", "os.Environ": "the environment",
	"os.Args": "arguments", "flag.Parse": "flags",
	"signal.Notify": "signals", "signal.NotifyContext": "signals",
}

// TestNoSwitchOnClientNames: a client's name in code outside its own package and
// the registry means that one client is treated differently.
func TestNoSwitchOnClientNames(t *testing.T) {
	homes := []string{"clients/", "internal/config"}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, "gatebench/")
		if slices.ContainsFunc(homes, func(h string) bool { return strings.HasPrefix(room, h) }) {
			continue
		}
		fset, files := parse(t, p)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && (lit.Value == `"resty"` || lit.Value == `"retryablehttp"`) {
					t.Errorf("%s: the client name %s outside the registry", fset.Position(lit.Pos()), lit.Value)
				}
				return true
			})
		}
	}
}

func parse(t *testing.T, p goPackage) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}
