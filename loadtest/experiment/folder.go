package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gatebench/loadtest/result"
)

// PrepareOut makes the output folder, if it is not there, and finds out whether it
// can be written before anything is started.
func PrepareOut(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are there to be read by others
		return fmt.Errorf("make the output folder: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("write to the output folder: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("write to the output folder: %w", err)
	}
	return nil
}

// SetAside keeps what an earlier run left in the output folder: the folder gets another
// name, the first free of DIR.1, DIR.2 and so on, and that is returned; "" where there
// was no result in it.
func SetAside(dir string) (kept string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("keep the earlier result: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, result.DocumentFile)); err != nil {
		return "", nil //nolint:nilerr // there is nothing to lose
	}
	for n := 1; ; n++ {
		kept = fmt.Sprintf("%s.%d", dir, n)
		if _, err := os.Lstat(kept); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return "", fmt.Errorf("keep the earlier result: %w", err)
		}
	}
	if err := os.Rename(dir, kept); err != nil {
		return "", fmt.Errorf("keep the earlier result (name another folder with --out): %w", err)
	}
	return kept, nil
}

// sections are the paths of one arm's files.
type sections struct{ gateway, backend string }

// writeArms writes what every arm's processes read, as arms/N-NAME/gateway.yaml
// and backend.yaml: whoever has the folder can start the same processes.
func writeArms(dir string, arms []Arm) ([]sections, error) {
	files := make([]sections, len(arms))
	for i, a := range arms {
		folder := filepath.Join(dir, "arms", fmt.Sprintf("%d-%s", i, fileName(a.Name)))
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as the folder around it
			return nil, fmt.Errorf("write the configuration of arm %q: %w", a.Name, err)
		}
		files[i] = sections{filepath.Join(folder, "gateway.yaml"), filepath.Join(folder, "backend.yaml")}
		for path, content := range map[string][]byte{files[i].gateway: a.Gateway, files[i].backend: a.Backend} {
			if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // as the folder around it
				return nil, fmt.Errorf("write the configuration of arm %q: %w", a.Name, err)
			}
		}
	}
	return files, nil
}

// fileName keeps of a name what every file system takes.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}
