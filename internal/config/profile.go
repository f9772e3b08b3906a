package config

import (
	"errors"
	"fmt"
	"strings"

	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// Profile is the load shape of a name. Without a name it is the only one that the
// file has. The error does not name the file: its caller knows it.
func (c *Config) Profile(name string) (load.Profile, error) {
	var names []string
	for _, p := range c.profiles {
		if p.name == name {
			if len(p.shape.Faults) > 0 {
				return load.Profile{}, fmt.Errorf("the profile %q %w", name, errFaults)
			}
			return p.shape.Profile, nil
		}
		if c.values.Set("profiles." + p.name) {
			names = append(names, p.name)
		}
	}
	if name == "" && len(names) == 1 {
		return c.Profile(names[0])
	}
	switch {
	case len(names) == 0:
		return load.Profile{}, errors.New("there is no profile in this file")
	case name == "":
		return load.Profile{}, fmt.Errorf("which of the %d profiles? they are %s", len(names), strings.Join(names, ", "))
	}
	hint := ""
	if near, ok := strictyaml.Nearest(name, names); ok {
		hint = fmt.Sprintf("\nhint: did you mean %s?", near)
	}
	return load.Profile{}, fmt.Errorf("there is no profile %q; the profiles are %s%s", name, strings.Join(names, ", "), hint)
}
