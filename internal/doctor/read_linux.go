package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// readSystem fills in what /proc and /sys tell.
func readSystem(ctx context.Context, watch time.Duration, f *Facts) {
	f.Cores = runtime.NumCPU() // heeds the affinity
	f.Quota = quota("/sys/fs/cgroup")
	f.Clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	f.Governor = line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		f.Descriptors = &limit.Cur
	}
	var low, high int
	if n, _ := fmt.Sscan(line("/proc/sys/net/ipv4/ip_local_port_range"), &low, &high); n == 2 {
		f.Ports = new(high - low + 1)
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return
	}
	f.TimeWait = timeWait(fs)
	if m, err := fs.Meminfo(); err == nil {
		f.MemoryFree = m.MemAvailableBytes
	}
	if l, err := fs.LoadAvg(); err == nil {
		f.Load = &l.Load1
	}
	f.watch(ctx, fs, watch)
}

// line is the content of a small file, "" if there is none.
func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// quota is the limit of this process's control group as far as it shows under root,
// of version 2 or 1: a container sees its own there.
func quota(root string) *float64 {
	if fields := strings.Fields(line(root + "/cpu.max")); len(fields) == 2 {
		return quotient(fields[0], fields[1])
	}
	return quotient(line(root+"/cpu/cpu.cfs_quota_us"), line(root+"/cpu/cpu.cfs_period_us"))
}

// quotient is 0, no limit, for the limits "max" and "-1", and where there is no
// file to limit anything.
func quotient(limit, period string) *float64 {
	us, err := strconv.ParseFloat(limit, 64)
	of, perr := strconv.ParseFloat(period, 64)
	if err != nil || perr != nil || us <= 0 || of <= 0 {
		return new(0.0)
	}
	return new(us / of)
}

func timeWait(fs procfs.FS) *int {
	stat, err := fs.NetSockstat()
	if err != nil {
		return nil
	}
	for _, p := range stat.Protocols {
		if p.Protocol == "TCP" {
			return p.TW
		}
	}
	return nil
}

// used is what was used of the processors up to a moment.
type used struct {
	at        time.Time
	steal     float64             // seconds, over all cores
	busy      float64             // the same, by whomever in this machine
	processes map[int]processUsed // by id
}

// processUsed is one process's seconds; started tells it from a later one of its
// id.
type processUsed struct {
	name    string
	started uint64
	seconds float64
}

// watch finds who uses the machine.
func (f *Facts) watch(ctx context.Context, fs procfs.FS, d time.Duration) {
	before, ok := usedNow(fs)
	if !ok {
		return
	}
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	after, ok := usedNow(fs)
	seconds := after.at.Sub(before.at).Seconds()
	if !ok || seconds <= 0 {
		return
	}
	own := after.processes[os.Getpid()].seconds - before.processes[os.Getpid()].seconds
	f.Steal = new(max(0, after.steal-before.steal) / seconds / float64(f.Cores))
	f.Busy = new(max(0, after.busy-before.busy-own) / seconds / float64(f.Cores))
	for pid, now := range after.processes {
		was := before.processes[pid]
		if was.started != now.started { // it began meanwhile
			was = processUsed{}
		}
		if share := (now.seconds - was.seconds) / seconds; share > 0 && pid != os.Getpid() {
			f.Others = append(f.Others, Process{PID: pid, Name: now.name, Share: share})
		}
	}
}

func usedNow(fs procfs.FS) (used, bool) {
	stat, err := fs.Stat()
	if err != nil {
		return used{}, false
	}
	all, err := fs.AllProcs()
	if err != nil {
		return used{}, false
	}
	c := stat.CPUTotal // user and nice hold guest time already
	u := used{
		at: time.Now(), steal: c.Steal, busy: c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ,
		processes: map[int]processUsed{},
	}
	for _, p := range all {
		if s, err := p.Stat(); err == nil { // it may have ended
			u.processes[p.PID] = processUsed{s.Comm, s.Starttime, s.CPUTime()}
		}
	}
	return u, true
}
