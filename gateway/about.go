package gateway

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"time"

	"gatebench/clients"
)

// AboutSchema names the layout of what /-/about gives.
const AboutSchema = "gatebench.about/1"

// A Library is one of the two HTTP libraries in a gateway: which it is, and what it
// cannot do.
type Library struct {
	Name       string // as in the YAML
	Module     string // Go module path, or the standard library's package
	Version    string
	Deviations []clients.Deviation
}

// about writes down what this gateway is: for the result document, which must not
// depend on somebody having kept the YAML.
func about(cfg Config, version string, client, server Library) ([]byte, error) {
	return json.MarshalIndent(struct {
		Schema  string       `json:"schema"`
		Version string       `json:"version"`
		Go      string       `json:"go"`
		Client  aboutLibrary `json:"client"`
		Server  aboutLibrary `json:"server"`
		Config  any          `json:"config"`
	}{
		AboutSchema, version, runtime.Version(), aboutOf(client), aboutOf(server),
		inForce(cfg),
	}, "", "  ")
}

type aboutLibrary struct {
	Name       string           `json:"name"`
	Module     string           `json:"module"`
	Version    string           `json:"version"`
	Deviations []aboutDeviation `json:"deviations"`
}

type aboutDeviation struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func aboutOf(l Library) aboutLibrary {
	a := aboutLibrary{Name: l.Name, Module: l.Module, Version: l.Version, Deviations: []aboutDeviation{}}
	for _, d := range l.Deviations {
		a.Deviations = append(a.Deviations, aboutDeviation(d))
	}
	return a
}

// inForce is the configuration without what has no effect: under the policy library
// the pool's other keys bound nothing, and are refused in the YAML.
func inForce(cfg Config) any {
	all := effective(reflect.ValueOf(cfg)).(map[string]any)
	if cfg.Pool.Policy == clients.PoolLibrary {
		all["pool"] = map[string]any{"policy": cfg.Pool.Policy}
	}
	return all
}

// effective gives a section of the configuration with the keys and in the notation
// of the YAML, "10s" and "16KiB" included, so that a value can be copied from one
// to the other.
func effective(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case encoding.TextMarshaler:
		return x
	}
	switch v.Kind() {
	case reflect.Struct:
		section := map[string]any{}
		for i := range v.NumField() {
			section[v.Type().Field(i).Tag.Get("yaml")] = effective(v.Field(i))
		}
		return section
	case reflect.Slice, reflect.String, reflect.Int, reflect.Bool:
		return v.Interface()
	}
	panic(fmt.Sprintf("gateway: a %v in the configuration", v.Type()))
}
