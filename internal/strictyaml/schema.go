package strictyaml

import (
	"encoding"
	"iter"
	"reflect"
	"strings"
	"time"
)

// A field is one key that a struct takes.
type field struct {
	key   string
	index []int
}

// fieldsOf lists the keys of a struct in order: its fields with a yaml tag, and
// those of the structs it inlines.
func fieldsOf(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, tagged := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() && !f.Anonymous, key == "-":
		case tagged && options == "inline":
			for _, inner := range fieldsOf(f.Type) {
				fs = append(fs, field{inner.key, append([]int{i}, inner.index...)})
			}
		case key != "":
			fs = append(fs, field{key, []int{i}})
		}
	}
	return fs
}

func keysOf(fs []field) []string {
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	overlayType  = reflect.TypeFor[Overlay]()
	textReader   = reflect.TypeFor[encoding.TextUnmarshaler]()
	textWriter   = reflect.TypeFor[encoding.TextMarshaler]()
)

// isMapping reports whether t is written as keys that are known beforehand.
func isMapping(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != overlayType && !reflect.PointerTo(t).Implements(textReader)
}

// isScalar reports whether t is written as a single value.
func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(textReader) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return false
	}
	return true
}

// leaves goes over every value below v that is not itself a mapping of known
// keys, with its path.
func leaves(v reflect.Value, path string) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) { eachLeaf(v, path, yield) }
}

func eachLeaf(v reflect.Value, path string, yield func(string, reflect.Value) bool) bool {
	if !isMapping(v.Type()) {
		return yield(path, v)
	}
	for _, f := range fieldsOf(v.Type()) {
		if !eachLeaf(v.FieldByIndex(f.index), dotted(path, f.key), yield) {
			return false
		}
	}
	return true
}

// dotted is a path and one key below it.
func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
