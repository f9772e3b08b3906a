package sut

import (
	"os"
	"path/filepath"
	"testing"
)

// TestThrottledFindsTheControlGroup: of either version, inside a container or out.
func TestThrottledFindsTheControlGroup(t *testing.T) {
	for _, c := range []struct {
		name, membership string
		files            map[string]string
		want             *int64
	}{
		{"version 2", "0::/user.slice\n", map[string]string{"user.slice/cpu.stat": "3", "cpu.stat": "8"}, new(int64(3))},
		{"version 2 in a container", "0::/host/path\n", map[string]string{"cpu.stat": "4"}, new(int64(4))},
		{"version 1", "5:memory:/m\n4:cpu,cpuacct:/job\n0::/\n", map[string]string{"cpu,cpuacct/job/cpu.stat": "5", "memory/m/cpu.stat": "8"}, new(int64(5))},
		{"version 1 in a container", "4:cpu:/host/path\n", map[string]string{"cpu/cpu.stat": "0"}, new(int64(0))},
		{"another controller", "4:cpuset:/\n", map[string]string{"cpuset/cpu.stat": "8"}, nil},
		{"none", "", map[string]string{"cpu.stat": "8"}, nil},
		{"a number that is none", "0::/\n", map[string]string{"cpu.stat": "many"}, nil},
	} {
		root := t.TempDir()
		for path, n := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("nr_periods 9\nnr_throttled "+n+"\nthrottled_time 5\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := throttled(root, []byte(c.membership))
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
