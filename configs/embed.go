// Package configs holds the bundled plans, embedded in the binary: each is a file
// that `gatebench run NAME` carries out, and a starting point for one's own.
// gateway.yaml beside them is no plan but the commented list of every key of
// gateway and backend.
package configs

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// example is the one file here that is no plan.
const example = "gateway.yaml"

// Plans returns the names of the bundled plans.
func Plans() []string {
	paths, _ := fs.Glob(files, "*.yaml") // the pattern is right
	var names []string
	for _, p := range paths {
		if p != example {
			names = append(names, strings.TrimSuffix(p, ".yaml"))
		}
	}
	return names
}

// Plan returns the file of a bundled plan and the file's name.
func Plan(name string) (file string, src []byte, ok bool) {
	if !slices.Contains(Plans(), name) {
		return "", nil, false
	}
	file = name + ".yaml"
	src, err := files.ReadFile(file)
	return file, src, err == nil
}

// Example returns the commented list of every key of gateway and backend.
func Example() []byte {
	src, _ := files.ReadFile(example) // embedded above
	return src
}
