package config

import (
	"fmt"
	"strings"

	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// Profile is the load shape of a name. Without a name it is the only one that the
// file has.
func (c *Config) Profile(name string) (load.Profile, error) {
	var names []string
	for _, p := range c.profiles {
		if p.name == name {
			return p.shape, nil
		}
		if c.values.Set("profiles." + p.name) {
			names = append(names, p.name)
		}
	}
	if name == "" && len(names) == 1 {
		return c.Profile(names[0])
	}
	e := &strictyaml.Error{Path: "profiles", Message: fmt.Sprintf("there is no profile %q; the profiles are %s", name, strings.Join(names, ", "))}
	if name == "" {
		e.Message = fmt.Sprintf("which of the %d profiles? they are %s", len(names), strings.Join(names, ", "))
	}
	if near, ok := strictyaml.Nearest(name, names); ok {
		e.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return load.Profile{}, e
}
