package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marshal writes the struct v, or what it points to, as a YAML document that
// Decode reads back to the same values. Values at the paths in omit are left out,
// and so are overlays, and lists and maps that are nil.
func Marshal(v any, omit ...string) ([]byte, error) {
	m, err := treeOf(v, omit)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	m.write(&b, "")
	return b.Bytes(), nil
}

// JSON writes v as Marshal does, in JSON: durations, sizes and shares stay text
// with their unit.
func JSON(v any, omit ...string) (json.RawMessage, error) {
	m, err := treeOf(v, omit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// mapping is keys in order. A value is a mapping, a []any of such values, a
// string, a bool or a json.Number.
type mapping []entry

type entry struct {
	key   string
	value any
}

func treeOf(v any, omit []string) (mapping, error) {
	rv := reflect.Indirect(reflect.ValueOf(v))
	if !rv.IsValid() || !isMapping(rv.Type()) {
		return nil, fmt.Errorf("write %T as YAML: not a struct with keys", v)
	}
	return tree(rv, "", omit).(mapping), nil
}

func tree(v reflect.Value, path string, omit []string) any {
	t := v.Type()
	switch {
	case isScalar(t):
		return leaf(v)
	case t == jsonType:
		return jsonLeaf(v.Bytes())
	case t.Kind() == reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = tree(v.Index(i), fmt.Sprintf("%s[%d]", path, i), omit)
		}
		return items
	case t.Kind() == reflect.Map:
		m := mapping{}
		for _, key := range sortedKeys(v) {
			m = append(m, entry{key.String(), tree(v.MapIndex(key), dotted(path, key.String()), omit)})
		}
		return m
	}
	m := mapping{}
	for _, f := range fieldsOf(t) {
		at, fv := dotted(path, f.key), v.FieldByIndex(f.index)
		if !slices.Contains(omit, at) && !isAbsent(fv) {
			m = append(m, entry{f.key, tree(fv, at, omit)})
		}
	}
	return m
}

func isAbsent(v reflect.Value) bool {
	t := v.Type()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		return v.IsNil() || t.Elem() == overlayType
	}
	return t == overlayType
}

// leaf is a single value: a number or bool where YAML and JSON have them, else
// its text.
func leaf(v reflect.Value) any {
	if v.Type() != durationType && !v.Type().Implements(textWriter) {
		switch {
		case v.Kind() == reflect.Bool:
			return v.Bool()
		case v.CanInt(), v.CanUint(), v.CanFloat():
			return json.Number(written(v))
		}
	}
	return written(v)
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// write writes one key a line, mappings below their key, lists in flow style.
func (m mapping) write(b *bytes.Buffer, indent string) {
	for _, e := range m {
		if below, ok := e.value.(mapping); ok && len(below) > 0 {
			fmt.Fprintf(b, "%s%s:\n", indent, word(e.key))
			below.write(b, indent+"  ")
		} else {
			fmt.Fprintf(b, "%s%s: %s\n", indent, word(e.key), line(e.value))
		}
	}
}

// line writes what stands behind a key to the end of the line.
func line(v any) string {
	if s, ok := v.(string); ok && address.MatchString(s) {
		return s
	}
	return flow(v)
}

// flow writes a value on one line, within others or by itself.
func flow(v any) string {
	switch v := v.(type) {
	case mapping:
		items := make([]string, len(v))
		for i, e := range v {
			items[i] = word(e.key) + ": " + flow(e.value)
		}
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = flow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return word(v)
	}
	return fmt.Sprint(v)
}

// MarshalJSON keeps the order of the keys.
func (m mapping) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, e := range m {
		key, err := json.Marshal(e.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(m) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// What YAML takes for text without quotes, in flow style too, and no schema takes
// for anything else.
var (
	plain    = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./%-]*$`)
	quantity = regexp.MustCompile(`^[0-9.]+(B|KiB|MiB|GiB|%|/s)$|^([0-9.]+(ns|µs|ms|s|m|h))+$`)
	reserved = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|null|y|n)$`)
	// address has a letter or dot, since 12:30 is a number to YAML 1.1, and
	// stands by itself, since the parser takes [a:1] for a key.
	address = regexp.MustCompile(`^(https?://)?[0-9]*[A-Za-z.][A-Za-z0-9.-]*:[0-9]+$`)
)

// word writes text plain where no reader can mistake it, else in double quotes.
func word(s string) string {
	if plain.MatchString(s) && !reserved.MatchString(s) || quantity.MatchString(s) {
		return s
	}
	return strconv.Quote(s) // Go's escapes are all among YAML's
}
