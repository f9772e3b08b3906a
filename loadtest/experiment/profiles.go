package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// profileFiles are the files from which load generators read their profile, as
// profiles/N-NAME.yaml in the output folder: with the rates that were really sent,
// so that whoever has the folder can send the same.
type profileFiles struct {
	dir     string
	written map[string]profileFile // by the profile's name
}

type profileFile struct {
	path    string
	content []byte
}

func newProfileFiles(out string) (*profileFiles, error) {
	dir := filepath.Join(out, "profiles")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the folder around it
		return nil, fmt.Errorf("make the folder of profiles: %w", err)
	}
	return &profileFiles{dir: dir, written: map[string]profileFile{}}, nil
}

// write gives the path of the file with p, and writes it where it is not there as p
// now stands: generators that start at once may be reading it.
func (fs *profileFiles) write(p Profile) (string, error) {
	var omit []string
	if p.Rate.IsZero() { // which is no text
		omit = append(omit, "profiles."+p.Name+".rate")
	}
	content, err := strictyaml.Marshal(struct {
		Profiles map[string]load.Profile `yaml:"profiles"`
	}{map[string]load.Profile{p.Name: p.Profile}}, omit...)
	if err != nil {
		return "", fmt.Errorf("write profile %s: %w", p.Name, err)
	}
	f, known := fs.written[p.Name]
	if known && bytes.Equal(f.content, content) {
		return f.path, nil
	}
	if !known {
		f.path = filepath.Join(fs.dir, fmt.Sprintf("%d-%s.yaml", len(fs.written), fileName(p.Name)))
	}
	if err := os.WriteFile(f.path, content, 0o644); err != nil { //nolint:gosec // as the folder around it
		return "", fmt.Errorf("write profile %s: %w", p.Name, err)
	}
	f.content = content
	fs.written[p.Name] = f
	return f.path, nil
}
