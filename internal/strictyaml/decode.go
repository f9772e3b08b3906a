package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Decode stores the document, and over it what env holds, in the struct that
// into points to, which holds the defaults. The values that are right are stored
// even where others are not.
func (d *Document) Decode(into any, env Environment) (*Values, error) {
	vs := d.values(into, "")
	dec := decoder{vs: vs}
	if d.root != nil {
		dec.value("", d.root, vs.root)
	}
	dec.environment(env)
	return vs, join(dec.faults)
}

type decoder struct {
	vs     *Values
	faults []*Error
}

// fault notes a problem with the node at path.
func (dec *decoder) fault(n ast.Node, path, message, hint string) {
	dec.faults = append(dec.faults, dec.vs.doc.fault(position(n), path, message, hint))
}

// value decodes n, whose key is at path, into v.
func (dec *decoder) value(path string, n ast.Node, v reflect.Value) {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		dec.fault(n, path, "anchors (&), aliases (*) and merge keys (<<) are not read", "write the value out")
		return
	case *ast.TagNode, *ast.DirectiveNode:
		dec.fault(n, path, "tags (!) are not read", "write the plain value")
		return
	}
	dec.vs.origins[path] = origin{position: position(n)}
	switch t := v.Type(); {
	case t == overlayType:
		dec.overlay(path, n, v)
	case t == jsonType:
		dec.anyJSON(path, n, v)
	case isMapping(t):
		dec.mapping(path, n, v)
	case t.Kind() == reflect.Map && !isScalar(t):
		dec.table(path, n, v)
	case t.Kind() == reflect.Slice && !isScalar(t):
		dec.list(path, n, v)
	default:
		dec.scalar(path, n, v)
	}
}

// mapping decodes known keys into a struct.
func (dec *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	for key, kv := range dec.entries(path, n) {
		at := dotted(path, key)
		var found bool
		for _, f := range fields {
			if f.key == key {
				found = true
				dec.value(at, kv.Value, v.FieldByIndex(f.index))
			}
		}
		if !found {
			dec.fault(kv.Key, at, "unknown key", knownKeys(key, v, fields))
		}
	}
}

// knownKeys is the hint for a key that fields do not have.
func knownKeys(key string, v reflect.Value, fields []field) string {
	keys := keysOf(fields)
	if near, ok := Nearest(key, keys); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for path := range leaves(v, "") {
		if above, last, nested := cutLast(path); nested && last == key {
			return fmt.Sprintf("%s stands below %s", key, above)
		}
	}
	return "the keys here are " + strings.Join(keys, ", ")
}

func cutLast(path string) (above, last string, nested bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// table decodes keys of the user's own into a map.
func (dec *decoder) table(path string, n ast.Node, v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	if v.Len() > 0 { // defaults stay, key by key
		for it := v.MapRange(); it.Next(); {
			m.SetMapIndex(it.Key(), it.Value())
		}
	}
	for key, kv := range dec.entries(path, n) {
		entry := reflect.New(v.Type().Elem()).Elem()
		dec.value(dotted(path, key), kv.Value, entry)
		m.SetMapIndex(reflect.ValueOf(key), entry)
	}
	v.Set(m)
}

func (dec *decoder) list(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		hint := ""
		if s, ok := scalarOf(n); ok {
			hint = fmt.Sprintf("write [%s] for a list of one", s.text)
		}
		dec.fault(n, path, "must be a list, not "+kind(n), hint)
		return
	}
	list := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		dec.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	v.Set(list)
}

func (dec *decoder) scalar(path string, n ast.Node, v reflect.Value) {
	s, ok := scalarOf(n)
	if !ok {
		if _, null := n.(*ast.NullNode); null {
			dec.fault(n, path, "has no value", "give it one, or take the key out to leave the default")
		} else {
			hint := ""
			if _, keys := n.(ast.MapNode); keys {
				hint = "text that holds a colon needs quotes"
			}
			dec.fault(n, path, "must be a single value, not "+kind(n), hint)
		}
		return
	}
	if err := s.into(v); err != nil {
		dec.misfit(n, path, err)
	}
}

func (dec *decoder) misfit(n ast.Node, path string, err error) {
	hint := ""
	if m, ok := errors.AsType[*misfit](err); ok {
		hint = m.hint
	}
	dec.fault(n, path, err.Error(), hint)
}

func (dec *decoder) overlay(path string, n ast.Node, v reflect.Value) {
	o := Overlay{doc: dec.vs.doc, path: path}
	defer func() { v.Set(reflect.ValueOf(o)) }()
	switch n.(type) {
	case *ast.NullNode, ast.MapNode:
		o.node = n
	default:
		dec.fault(n, path, "must hold keys, not "+kind(n), "")
	}
}

// entries goes over the keys of a mapping and reports the ones that repeat.
// Nothing at all (`gateway:` with every line below it commented out) is a mapping
// without keys.
func (dec *decoder) entries(path string, n ast.Node) func(yield func(string, *ast.MappingValueNode) bool) {
	return func(yield func(string, *ast.MappingValueNode) bool) {
		if _, null := n.(*ast.NullNode); null {
			return
		}
		m, ok := n.(ast.MapNode)
		if !ok {
			dec.fault(n, path, "must hold keys, not "+kind(n), "")
			return
		}
		first := map[string]int{}
		for it := m.MapRange(); it.Next(); {
			kv := it.KeyValue()
			s, ok := scalarOf(kv.Key)
			switch at := position(kv.Key); {
			case kv.Key.IsMergeKey():
				dec.value(dotted(path, "<<"), kv.Key, reflect.Value{})
			case !ok:
				dec.fault(kv.Key, path, "a key must be a single word", "")
			case first[s.text] > 0:
				dec.fault(kv.Key, dotted(path, s.text), fmt.Sprintf("the key is given twice, first in line %d", first[s.text]), "")
			default:
				first[s.text] = at.Line
				if !yield(s.text, kv) {
					return
				}
			}
		}
	}
}

// scalarOf returns the single value that n is.
func scalarOf(n ast.Node) (scalar, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		if t := n.Token.Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			return scalar{n.Value, quoted}, true
		}
		return scalar{n.Value, text}, true
	case *ast.LiteralNode:
		return scalar{n.Value.Value, quoted}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return scalar{n.GetToken().Value, number}, true
	case *ast.BoolNode:
		return scalar{n.Token.Value, boolean}, true
	}
	return scalar{}, false
}

// kind names what n is, for a sentence.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "keys"
	}
	if s, ok := scalarOf(n); ok {
		return s.String()
	}
	return "a " + strings.ToLower(n.Type().String())
}

// position is where n begins. The parser's token of a mapping is its first
// colon, which says nothing to a reader: its first key does.
func position(n ast.Node) *token.Position {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return position(m.Values[0])
		}
	case *ast.MappingValueNode:
		return position(m.Key)
	}
	if tk := n.GetToken(); tk != nil {
		return tk.Position
	}
	return nil
}
