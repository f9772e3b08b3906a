package process

import "testing"

func TestParsePeak(t *testing.T) {
	for _, tc := range []struct {
		status string
		size   int64
		ok     bool
	}{
		{"Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    2444 kB\nVmRSS:\t 1 kB\n", 2444 << 10, true},
		{"VmHWM:\t1 kB", 1 << 10, true},
		{"VmHWM:\t1 MB\n", 0, false},
		{"VmHWM:\tmany kB\n", 0, false},
		{"Name:\tkernel thread\n", 0, false},
		{"", 0, false},
	} {
		size, ok := parsePeak([]byte(tc.status))
		if ok != tc.ok || ok && size != tc.size {
			t.Errorf("parsePeak(%q) = %d, %v; want %d, %v", tc.status, size, ok, tc.size, tc.ok)
		}
	}
}
