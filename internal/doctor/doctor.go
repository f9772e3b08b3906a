// Package doctor says, before a run, what about the machine would spoil it: too few
// descriptors or ports, a neighbour that takes processor time, a clock that is slow
// to read. It reads and judges; how much a finding did cost a run that was made all
// the same is for the run's own gates to measure.
//
// Its limits are those from which on the gates of a run warn. The trap: a machine
// that is quiet for this second may be busy in the next.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Facts are what was read of the machine. A pointer that is nil, a string that is
// empty, could not be read here.
type Facts struct {
	// Cores that this process may run on.
	Cores int
	// Quota is how many cores' worth of time the control group may use; 0 is
	// no limit.
	Quota *float64
	// Descriptors that a process may have open.
	Descriptors *uint64
	// Ports is how many local ports outgoing connections may have, TimeWait how
	// many connections wait before theirs is free again.
	Ports, TimeWait *int
	// MemoryFree, in bytes, is what can be had without swapping.
	MemoryFree *uint64
	// Load is the number of processes that wanted to run, over a minute.
	Load *float64
	// Steal is the share of all processor time that other virtual machines
	// took, Busy the share that everything but this process used, over the
	// moment of watching.
	Steal, Busy *float64
	// Others are the processes that were seen to use it, as shares of one
	// core. They may be less than Busy: what lived only in between, or lives in
	// another container, has no name here.
	Others []Process
	// Clock is the kernel's clock source, Governor its frequency policy.
	Clock, Governor string
	// Taken are addresses that servers would listen on by default and cannot,
	// with the reason.
	Taken map[string]string
}

// Process is another process that is busy.
type Process struct {
	PID   int
	Name  string
	Share float64
}

// Finding is one thing looked at.
type Finding struct {
	Name, Value string
	// Warn is set where a run would suffer.
	Warn bool
	// Cure is what to do about it, "" where all is well.
	Cure string
}

// The limits.
const (
	fewDescriptors = 4096
	fewPorts       = 10_000
	waitingShare   = 0.5 // of the ports in TIME_WAIT
	littleMemory   = 512 << 20
	loadPerCore    = 0.5
	stealShare     = 0.01 // of the machine
	foreignShare   = 0.03 // of the machine
	busyShare      = 0.01 // of one core: worth a name
	namedProcesses = 5
)

// Examine judges facts, in the order in which people would look.
func Examine(f Facts) []Finding {
	findings := []Finding{f.cores(), f.quota()}
	findings = append(findings, f.neighbours()...)
	findings = append(findings, f.clock(), f.governor(), f.memory(), f.descriptors(), f.ports(), f.timeWait())
	return append(findings, f.addresses()...)
}

func unknown(name string) Finding { return Finding{Name: name, Value: "not known on this system"} }

// warnIf adds the cure where it is needed.
func (f Finding) warnIf(bad bool, cure string) Finding {
	if f.Warn = bad; bad {
		f.Cure = cure
	}
	return f
}

func (f Facts) cores() Finding {
	return Finding{Name: "cores", Value: fmt.Sprint(f.Cores)}.warnIf(f.Cores < 2,
		"gateway, load and backend will share one core, so that their costs mix: use a machine with at least 2")
}

func (f Facts) quota() Finding {
	if f.Quota == nil {
		return unknown("cpu quota")
	}
	if *f.Quota == 0 {
		return Finding{Name: "cpu quota", Value: "none"}
	}
	return Finding{Name: "cpu quota", Value: fmt.Sprintf("%.2f cores", *f.Quota)}.warnIf(*f.Quota < float64(f.Cores),
		"the control group will be throttled in mid-measurement: raise its quota (docker: --cpus) to the number of cores")
}

// neighbours are all that take processor time from a run.
func (f Facts) neighbours() []Finding {
	load, steal := unknown("load average"), unknown("steal")
	if f.Load != nil {
		load = Finding{Name: "load average", Value: fmt.Sprintf("%.2f over a minute", *f.Load)}.warnIf(*f.Load > loadPerCore*float64(f.Cores),
			"something ran a moment ago and may run still: wait until the load has gone down")
	}
	if f.Steal != nil {
		steal = Finding{Name: "steal", Value: percent(*f.Steal)}.warnIf(*f.Steal > stealShare,
			"other virtual machines take this one's time: use a host of your own, or more blocks")
	}
	return []Finding{load, steal, f.others()}
}

func (f Facts) others() Finding {
	if f.Busy == nil {
		return unknown("other processes")
	}
	byShare := slices.SortedFunc(slices.Values(f.Others), func(a, b Process) int { return cmp.Compare(b.Share, a.Share) })
	var names []string
	for _, p := range byShare {
		if p.Share >= busyShare && len(names) < namedProcesses {
			names = append(names, fmt.Sprintf("%s (%d) %s of a core", p.Name, p.PID, percent(p.Share)))
		}
	}
	value := percent(*f.Busy) + " of the machine"
	if len(names) > 0 {
		value += ": " + strings.Join(names, ", ")
	}
	return Finding{Name: "other processes", Value: value}.warnIf(*f.Busy > foreignShare,
		"end or pause them: what they take, the arms of a run lose unequally")
}

// quickClocks can be read without entering the kernel, or nearly so.
var quickClocks = []string{"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "riscv_clocksource"}

func (f Facts) clock() Finding {
	if f.Clock == "" {
		return unknown("clock source")
	}
	return Finding{Name: "clock source", Value: f.Clock}.warnIf(!slices.Contains(quickClocks, f.Clock),
		"every time stamp costs a call into the kernel or worse: boot with clocksource=tsc, if the machine's is sound")
}

func (f Facts) governor() Finding {
	if f.Governor == "" {
		return Finding{Name: "frequency governor", Value: "not this system's to set"}
	}
	return Finding{Name: "frequency governor", Value: f.Governor}.warnIf(f.Governor != "performance",
		"the frequency follows the load, so that light loads look slow: cpupower frequency-set -g performance")
}

func (f Facts) memory() Finding {
	if f.MemoryFree == nil {
		return unknown("free memory")
	}
	return Finding{Name: "free memory", Value: fmt.Sprintf("%d MiB", *f.MemoryFree>>20)}.warnIf(*f.MemoryFree < littleMemory,
		"a run may swap: free at least 512 MiB")
}

func (f Facts) descriptors() Finding {
	if f.Descriptors == nil {
		return unknown("open files limit")
	}
	return Finding{Name: "open files limit", Value: fmt.Sprint(*f.Descriptors)}.warnIf(*f.Descriptors < fewDescriptors,
		"a gateway needs two for every request in flight: ulimit -n 65536")
}

func (f Facts) ports() Finding {
	if f.Ports == nil {
		return unknown("local ports")
	}
	return Finding{Name: "local ports", Value: fmt.Sprint(*f.Ports)}.warnIf(*f.Ports < fewPorts,
		`an arm that opens a connection for every request will run out of them: sysctl -w net.ipv4.ip_local_port_range="1024 65000"`)
}

func (f Facts) timeWait() Finding {
	if f.TimeWait == nil || f.Ports == nil {
		return unknown("ports in TIME_WAIT")
	}
	return Finding{Name: "ports in TIME_WAIT", Value: fmt.Sprint(*f.TimeWait)}.warnIf(float64(*f.TimeWait) > waitingShare*float64(*f.Ports),
		"left by an earlier load: wait a minute")
}

func (f Facts) addresses() []Finding {
	var findings []Finding
	addresses := make([]string, 0, len(f.Taken))
	for address := range f.Taken {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	for _, address := range addresses {
		found := Finding{Name: address, Value: "free"}
		if why := f.Taken[address]; why != "" {
			found = Finding{Name: address, Value: why}.warnIf(true,
				"end what listens there (ss -ltnp shows it), or give the gateway and the backend another listen address; a run takes free ports by itself")
		}
		findings = append(findings, found)
	}
	return findings
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
