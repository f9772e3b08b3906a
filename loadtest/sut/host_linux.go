package sut

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ReadHost looks at the machine.
func ReadHost() (Host, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Host{}, fmt.Errorf("look at the machine: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return Host{}, fmt.Errorf("look at the machine: %w", err)
	}
	c := stat.CPUTotal // guest time stands in user and nice already
	busy, stolen := seconds(c.User+c.Nice+c.System+c.IRQ+c.SoftIRQ), seconds(c.Steal)
	h := Host{
		Busy:       busy,
		Stolen:     stolen,
		All:        busy + stolen + seconds(c.Idle+c.Iowait), // rounded each, so that the parts stay below the sum
		TimeWait:   timeWait(fs),
		LocalPorts: localPorts(),
	}
	if membership, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		h.Throttled = throttled("/sys/fs/cgroup", membership)
	}
	return h, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func timeWait(fs procfs.FS) int {
	stat, err := fs.NetSockstat()
	if err != nil {
		return 0
	}
	for _, p := range stat.Protocols {
		if p.Protocol == "TCP" && p.TW != nil {
			return *p.TW
		}
	}
	return 0
}

func localPorts() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	var first, last int
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil || last < first {
		return 0
	}
	return last - first + 1
}

// throttled reads nr_throttled of the control group that membership, which is a
// /proc/PID/cgroup, names under root: of version 2 ("0::/path"), or of the cpu
// controller of version 1 ("4:cpu,cpuacct:/path"). Nil where no quota can be.
func throttled(root string, membership []byte) *int64 {
	for line := range bytes.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers, path := parts[1], parts[2]
		if controllers != "" && !slices.Contains(strings.Split(controllers, ","), "cpu") {
			continue
		}
		// Inside a container the path may be the host's, and the group is the
		// root of what shows.
		for _, dir := range []string{path, ""} {
			if n := stopped(filepath.Join(root, controllers, dir, "cpu.stat")); n != nil {
				return n
			}
		}
	}
	return nil
}

// stopped is nr_throttled of a cpu.stat, nil if there is none.
func stopped(path string) *int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		value, found := strings.CutPrefix(line, "nr_throttled ")
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); found && err == nil {
			return &n
		}
	}
	return nil
}

// ownCPU is this process's CPU time and that of its children that have ended.
func ownCPU() (time.Duration, error) {
	total := time.Duration(0)
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			return 0, fmt.Errorf("own CPU time: %w", err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total, nil
}

// cpuTime is a running process's.
func cpuTime(pid int) (time.Duration, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0, err
	}
	return seconds(stat.CPUTime()), nil
}
