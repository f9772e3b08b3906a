package strictyaml

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"gatebench/internal/conf"
)

// Values are decoded values that remember where they came from.
type Values struct {
	doc     *Document
	path    string // of root, in the document
	root    reflect.Value
	origins map[string]origin // by full path; what is absent has its default
}

// origin is where a value was set.
type origin struct {
	position *token.Position
	variable string // the environment variable; position is then nil
}

func (d *Document) values(into any, path string) *Values {
	return &Values{doc: d, path: path, root: reflect.ValueOf(into).Elem(), origins: map[string]origin{}}
}

// Set reports whether the value at path, counted from the decoded struct, was
// given, in the file or by the environment.
func (vs *Values) Set(path string) bool {
	_, ok := vs.origins[vs.full(path)]
	return ok
}

func (vs *Values) full(path string) string {
	if path == "" {
		return vs.path
	}
	return dotted(vs.path, path)
}

// Below returns an overlay without keys at path, counted from the decoded struct,
// for what has its defaults because nobody wrote it.
func (vs *Values) Below(path string) Overlay { return Overlay{doc: vs.doc, path: vs.full(path)} }

// A Value is one effective value.
type Value struct {
	Path   string // from the document's root
	Text   string // as it is written in YAML
	Origin string // "default", "FILE:LINE" or "env NAME"
}

// All goes over every effective value in the order of the structs.
func (vs *Values) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for path, v := range leaves(vs.root, vs.path) {
			if !vs.each(path, v, yield) {
				return
			}
		}
	}
}

// each yields a leaf; a list or map of more than single values yields what it
// holds.
func (vs *Values) each(path string, v reflect.Value, yield func(Value) bool) bool {
	switch t := v.Type(); {
	case t == jsonType && v.Len() == 0: // nobody wrote one, and there is no default
		return true
	case t == overlayType:
		o := v.Interface().(Overlay)
		return o.node == nil || o.doc.raw(path, o.node, yield)
	case t.Kind() == reflect.Map && v.Len() > 0:
		for _, key := range sortedKeys(v) {
			for p, leaf := range leaves(v.MapIndex(key), dotted(path, key.String())) {
				if !vs.each(p, leaf, yield) {
					return false
				}
			}
		}
		return true
	case t.Kind() == reflect.Slice && !isScalar(t.Elem()) && v.Len() > 0:
		for i := range v.Len() {
			for p, leaf := range leaves(v.Index(i), fmt.Sprintf("%s[%d]", path, i)) {
				if !vs.each(p, leaf, yield) {
					return false
				}
			}
		}
		return true
	}
	return yield(Value{path, line(tree(v, path, nil)), vs.origin(path)})
}

// raw yields the leaves of a mapping that is not decoded.
func (d *Document) raw(path string, n ast.Node, yield func(Value) bool) bool {
	if m, ok := n.(ast.MapNode); ok {
		for it := m.MapRange(); it.Next(); {
			key, _ := scalarOf(it.Key())
			if !d.raw(dotted(path, key.text), it.Value(), yield) {
				return false
			}
		}
		return true
	}
	return yield(Value{path, strings.TrimSpace(n.String()), d.at(position(n))})
}

func (d *Document) at(p *token.Position) string {
	if p == nil {
		return d.name
	}
	return fmt.Sprintf("%s:%d", d.name, p.Line)
}

func (vs *Values) origin(path string) string {
	o, ok := vs.origins[path]
	switch {
	case !ok:
		return "default"
	case o.variable != "":
		return "env " + o.variable
	}
	return vs.doc.at(o.position)
}

// Locate turns the [conf.Problem]s in err, whose paths count from prefix within
// the decoded struct, into errors that point at the file or name the variable.
func (vs *Values) Locate(prefix string, err error) error {
	var faults []*Error
	for _, p := range conf.Problems(err) {
		if prefix != "" {
			p.Path = dotted(prefix, p.Path)
		}
		faults = append(faults, vs.locate(p))
	}
	return join(faults)
}

// Fault is a located problem that somebody else than a section's check found.
func (vs *Values) Fault(path, hint, format string, args ...any) error {
	e := vs.locate(conf.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	e.Hint = hint
	return e
}

func (vs *Values) locate(p conf.Problem) *Error {
	path := vs.full(p.Path)
	if o, ok := vs.origins[path]; ok {
		if o.variable != "" {
			return &Error{Variable: o.variable, Path: path, Message: p.Message}
		}
		return vs.doc.fault(o.position, path, p.Message, "")
	}
	// A default, or an item of a list the environment gave: the nearest value
	// above that was set stands for it.
	for above := path; above != ""; {
		above, _ = parent(above)
		if o, ok := vs.origins[above]; ok && above != "" {
			if o.variable != "" {
				return &Error{Variable: o.variable, Path: path, Message: p.Message}
			}
			return vs.doc.fault(o.position, path, p.Message+vs.unset(), "")
		}
	}
	return &Error{File: vs.doc.name, Path: path, Message: p.Message + vs.unset()}
}

// unset explains a problem with a value that nobody wrote. What an overlay lacks
// may come from its base.
func (vs *Values) unset() string {
	if vs.path != "" {
		return " (not set here)"
	}
	return " (not set: the default)"
}

// parent cuts the last key or index off a path.
func parent(path string) (above string, ok bool) {
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return "", false
	}
	return path[:i], true
}
