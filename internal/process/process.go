// Package process says what this process has used so far: CPU time, allocations,
// memory, goroutines, descriptors, as Prometheus metrics. The gateway and the
// backend both export it, under the same names, so that whoever measures them
// over the wire finds the same figures in both.
//
// It leaves to others what a figure is per: a window, a request, an arm.
//
// The trap: the peak of resident memory must not come from getrusage. Linux hands
// ru_maxrss on through exec, and Go starts children in the parent's address
// space, so a fresh gateway would show the peak of whatever started it.
package process

import (
	"runtime/metrics"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector exports the gatebench_process_* metrics. What the operating system
// does not tell is absent, never zero. The zero value is not usable: see
// [NewCollector].
type Collector struct {
	cpu, allocs, bytes, cycles, goroutines, peak, descriptors *prometheus.Desc
}

// NewCollector returns a collector of this process. One scrape costs some
// 30 µs and stops nothing; the list of descriptors makes it grow with their number.
func NewCollector() *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gatebench_process_"+name, help, labels, nil)
	}
	return &Collector{
		cpu:         desc("cpu_seconds_total", "CPU time used, in seconds. Only the sum over modes is exact: the kernel splits it by sampling.", "mode"),
		allocs:      desc("allocs_total", "Heap objects allocated."),
		bytes:       desc("alloc_bytes_total", "Bytes allocated on the heap."),
		cycles:      desc("gc_cycles_total", "Garbage collections completed."),
		goroutines:  desc("goroutines", "Goroutines alive."),
		peak:        desc("peak_resident_bytes", "Highest resident memory so far, in bytes."),
		descriptors: desc("open_descriptors", "File descriptors open."),
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.cpu, c.allocs, c.bytes, c.cycles, c.goroutines, c.peak, c.descriptors} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	// CPU first: what the scrape itself uses falls into the next one.
	if user, system, ok := CPU(); ok {
		send(c.cpu, prometheus.CounterValue, user.Seconds(), "user")
		send(c.cpu, prometheus.CounterValue, system.Seconds(), "system")
	}
	r := readRuntime()
	send(c.allocs, prometheus.CounterValue, float64(r.allocs))
	send(c.bytes, prometheus.CounterValue, float64(r.bytes))
	send(c.cycles, prometheus.CounterValue, float64(r.cycles))
	send(c.goroutines, prometheus.GaugeValue, float64(r.goroutines))
	if b, ok := peakResident(); ok {
		send(c.peak, prometheus.GaugeValue, float64(b))
	}
	if n, ok := openDescriptors(); ok {
		send(c.descriptors, prometheus.GaugeValue, float64(n))
	}
}

// CPU returns the processor time that this process has used in user and in kernel
// mode, to the microsecond; ok is false where the system cannot tell. Only the
// sum is exact.
func CPU() (user, system time.Duration, ok bool) { return cpuTime() }

// runtimeFigures are cumulative since the start, except goroutines.
type runtimeFigures struct{ allocs, bytes, cycles, goroutines uint64 }

// readRuntime does not stop the world, unlike runtime.ReadMemStats.
func readRuntime() runtimeFigures {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"},
		{Name: "/gc/heap/tiny/allocs:objects"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sched/goroutines:goroutines"},
	}
	metrics.Read(s)
	return runtimeFigures{
		// The runtime counts tiny objects apart from the blocks that hold
		// them; MemStats.Mallocs, and so "allocs/op" of Go's benchmarks, is
		// this sum.
		allocs:     s[0].Value.Uint64() + s[1].Value.Uint64(),
		bytes:      s[2].Value.Uint64(),
		cycles:     s[3].Value.Uint64(),
		goroutines: s[4].Value.Uint64(),
	}
}
