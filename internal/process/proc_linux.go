package process

import (
	"bytes"
	"os"
	"strconv"
)

// peakResident reads VmHWM, the high-water mark of this address space.
func peakResident() (size int64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	return parsePeak(status)
}

// parsePeak finds "VmHWM:	    2444 kB" in a /proc/PID/status; its kB is KiB.
func parsePeak(status []byte) (size int64, ok bool) {
	for line := range bytes.Lines(status) {
		value, found := bytes.CutPrefix(line, []byte("VmHWM:"))
		if !found {
			continue
		}
		digits, isKB := bytes.CutSuffix(bytes.TrimSpace(value), []byte(" kB"))
		kib, err := strconv.ParseInt(string(digits), 10, 64)
		return kib << 10, isKB && err == nil
	}
	return 0, false
}

// openDescriptors counts the entries of /proc/self/fd, without the one that the
// counting itself opens.
func openDescriptors() (n int, ok bool) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	return len(names) - 1, err == nil
}
