package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Marshal writes the struct v, or what it points to, as a YAML document that
// Decode reads back to the same values. Values at the paths in omit are left out,
// and so are lists and maps that are nil.
func Marshal(v any, omit ...string) ([]byte, error) {
	rv := reflect.Indirect(reflect.ValueOf(v))
	if !isMapping(rv.Type()) {
		return nil, fmt.Errorf("marshal %s as YAML: not a struct with keys", rv.Type())
	}
	var b bytes.Buffer
	writeKeys(&b, rv, "", "", omit)
	return b.Bytes(), nil
}

// JSON writes v as Marshal does, in JSON.
func JSON(v any, omit ...string) (json.RawMessage, error) {
	y, err := Marshal(v, omit...)
	if err != nil {
		return nil, err
	}
	j, err := yaml.YAMLToJSON(y)
	if err != nil {
		return nil, fmt.Errorf("turn YAML into JSON: %w", err)
	}
	return bytes.TrimSpace(j), nil
}

// writeKeys writes one key a line, nested mappings below, everything else in
// flow style.
func writeKeys(b *bytes.Buffer, v reflect.Value, path, indent string, omit []string) {
	for _, f := range fieldsOf(v.Type()) {
		at, fv := join2(path, f.key), v.FieldByIndex(f.index)
		switch {
		case slices.Contains(omit, at), isNil(fv):
		case isMapping(fv.Type()):
			fmt.Fprintf(b, "%s%s:\n", indent, f.key)
			writeKeys(b, fv, at, indent+"  ", omit)
		default:
			fmt.Fprintf(b, "%s%s: %s\n", indent, f.key, inline(fv))
		}
	}
}

func isNil(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil()
}

// inline writes v on one line.
func inline(v reflect.Value) string {
	t := v.Type()
	switch {
	case isScalar(t):
		return inlineScalar(v)
	case t == overlayType:
		o := v.Interface().(Overlay)
		if o.node == nil {
			return "{}"
		}
		return strings.TrimSpace(o.node.String())
	case t.Kind() == reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = inline(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case t.Kind() == reflect.Map:
		var items []string
		for _, key := range sortedKeys(v) {
			items = append(items, word(key.String())+": "+inline(v.MapIndex(key)))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	var items []string
	for _, f := range fieldsOf(t) {
		if fv := v.FieldByIndex(f.index); !isNil(fv) {
			items = append(items, f.key+": "+inline(fv))
		}
	}
	return "{" + strings.Join(items, ", ") + "}"
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func inlineScalar(v reflect.Value) string {
	s := written(v)
	if v.Type() == durationType {
		return s
	}
	if v.Type().Implements(textWriter) || v.Kind() == reflect.String {
		return word(s)
	}
	return s
}

// plain matches text that YAML takes for text without quotes, in flow style too,
// and no schema takes for anything else.
var (
	plain    = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./%-]*(:[A-Za-z0-9_./%-]+)*$`)
	quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|%|/s)$`)
	reserved = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|null|y|n)$`)
)

// word writes text plain where no reader can mistake it, else in double quotes.
func word(s string) string {
	if plain.MatchString(s) && !reserved.MatchString(s) || quantity.MatchString(s) {
		return s
	}
	// JSON strings are YAML's double-quoted ones.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}
