package strictyaml

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// An Environment overrides single values: the variable PREFIX_SECTION_KEY holds
// section.key, in upper case with _ for every dot. Keys outside a section, and
// lists and maps of more than single values, cannot be overridden. A list of
// single values is written with commas.
type Environment struct {
	Prefix string   // without the last _
	Vars   []string // NAME=value, as from os.Environ
}

// serviceLink matches what Kubernetes and Docker put into the environment of
// their own accord for a service called PREFIX-SECTION.
var serviceLink = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// name is the variable that holds the value at path.
func (env Environment) name(path string) string {
	return strings.ToUpper(env.Prefix + "_" + strings.ReplaceAll(path, ".", "_"))
}

// Names gives for every value in the struct that v points to which can be
// overridden its variable, by path.
func (env Environment) Names(v any) map[string]string {
	names := map[string]string{}
	for path := range env.overridable(reflect.ValueOf(v).Elem()) {
		names[path] = env.name(path)
	}
	return names
}

// overridable gives the values that a variable may hold, by path.
func (env Environment) overridable(root reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for path, v := range leaves(root, "") {
		single := isScalar(v.Type()) || v.Kind() == reflect.Slice && isScalar(v.Type().Elem())
		if single && strings.Contains(path, ".") {
			out[path] = v
		}
	}
	return out
}

func (dec *decoder) environment(env Environment) {
	if env.Prefix == "" {
		return
	}
	values := env.overridable(dec.vs.root)
	known := map[string]string{} // variable → path
	for path := range values {
		known[env.name(path)] = path
	}
	for _, v := range env.Vars {
		name, value, _ := strings.Cut(v, "=")
		if path, ok := known[name]; ok {
			dec.override(name, path, value, values[path])
		} else if section, rest, ok := env.cutSection(name, dec.vs.root.Type()); ok && !serviceLink.MatchString(rest) {
			dec.faults = append(dec.faults, &Error{
				Variable: name, Message: "no such setting", Hint: nearestSetting(section, rest, slices.Sorted(maps.Keys(known))),
			})
		}
	}
}

// cutSection tells whether a variable is meant for a section of ours: others may
// share the prefix.
func (env Environment) cutSection(name string, root reflect.Type) (section, rest string, ok bool) {
	for _, f := range fieldsOf(root) {
		section = env.name(f.key) + "_"
		if rest, ok := strings.CutPrefix(name, section); ok && !isScalar(root.FieldByIndex(f.index).Type) {
			return section, rest, true
		}
	}
	return "", "", false
}

// nearestSetting looks within the section only: what all names share would make
// them all near.
func nearestSetting(section, rest string, names []string) string {
	var keys []string
	for _, n := range names {
		if key, ok := strings.CutPrefix(n, section); ok {
			keys = append(keys, key)
		}
	}
	if near, ok := Nearest(rest, keys); ok {
		return fmt.Sprintf("did you mean %s%s?", section, near)
	}
	return ""
}

func (dec *decoder) override(name, path, value string, v reflect.Value) {
	dec.vs.origins[path] = origin{variable: name}
	err := overrideValue(v, value)
	if err == nil {
		return
	}
	e := &Error{Variable: name, Path: path, Message: err.Error()}
	if m, ok := errors.AsType[*misfit](err); ok {
		e.Hint = m.hint
	}
	dec.faults = append(dec.faults, e)
}

func overrideValue(v reflect.Value, value string) error {
	if isScalar(v.Type()) {
		return scalar{value, variable}.into(v)
	}
	var items []string
	if value != "" {
		items = strings.Split(value, ",")
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := (scalar{strings.TrimSpace(item), variable}).into(list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}
