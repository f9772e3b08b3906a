package strictyaml

import (
	"encoding/json"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// jsonType is a value of any shape, kept as the JSON that it says. Text that is
// itself a JSON object or list, as in '{"a": 1}', is taken as that.
var jsonType = reflect.TypeFor[json.RawMessage]()

func (dec *decoder) anyJSON(path string, n ast.Node, v reflect.Value) {
	if s, ok := scalarOf(n); ok && s.form == quoted && json.Valid([]byte(s.text)) {
		if c := s.text[firstMark(s.text)]; c == '{' || c == '[' {
			v.SetBytes([]byte(s.text))
			return
		}
	}
	if _, null := n.(*ast.NullNode); null {
		dec.fault(n, path, "has no value", "give it one, or take the key out to leave the default")
		return
	}
	value, ok := dec.jsonValue(path, n)
	if !ok {
		return
	}
	b, err := json.Marshal(value)
	if err != nil { // jsonValue lets nothing through that could not be written
		dec.fault(n, path, err.Error(), "")
		return
	}
	v.SetBytes(b)
}

// jsonLeaf is b as a value that anyJSON reads back: an object or list as its text.
func jsonLeaf(b []byte) any {
	switch b[firstMark(string(b))] {
	case '{', '[':
		return string(b)
	case '"':
		var s string
		_ = json.Unmarshal(b, &s) // it was valid when it was read
		return s
	case 't', 'f':
		return b[0] == 't'
	}
	return json.Number(b)
}

// firstMark is where valid JSON begins behind its blanks.
func firstMark(s string) int {
	for i := range len(s) {
		if s[i] > ' ' {
			return i
		}
	}
	return 0
}

// jsonValue is n as encoding/json writes it, keys in their order.
func (dec *decoder) jsonValue(path string, n ast.Node) (value any, ok bool) {
	switch is := n.(type) {
	case *ast.NullNode:
		return nil, true
	case *ast.SequenceNode:
		list := make([]any, len(is.Values))
		for i, item := range is.Values {
			if list[i], ok = dec.jsonValue(path, item); !ok {
				return nil, false
			}
		}
		return list, true
	case ast.MapNode:
		m := mapping{}
		for key, kv := range dec.entries(path, n) {
			at := dotted(path, key)
			value, ok := dec.jsonValue(at, kv.Value)
			if !ok {
				return nil, false
			}
			m = append(m, entry{key, value})
		}
		return m, true
	}
	s, ok := scalarOf(n)
	if !ok {
		dec.fault(n, path, "must be something that JSON can say", "anchors, aliases and tags are not read")
		return nil, false
	}
	return dec.jsonScalar(path, n, s)
}

func (dec *decoder) jsonScalar(path string, n ast.Node, s scalar) (value any, ok bool) {
	switch s.form {
	case number:
		if !json.Valid([]byte(s.text)) {
			dec.fault(n, path, s.text+" is a number that JSON cannot say", "write it in decimal digits, or in quotes for text")
			return nil, false
		}
		return json.Number(s.text), true
	case boolean:
		if s.text == "true" || s.text == "false" {
			return s.text == "true", true
		}
	}
	return s.text, true
}
