package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// scrape returns every figure by name, labels included.
func scrape(t testing.TB) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector())
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			parts := []string{strings.TrimPrefix(f.GetName(), "gatebench_process_")}
			for _, l := range m.GetLabel() {
				parts = append(parts, l.GetValue())
			}
			name := strings.Join(parts, ",")
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				figures[name] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				figures[name] = m.GetGauge().GetValue()
			default:
				t.Errorf("%s is a %v", f.GetName(), f.GetType())
			}
		}
	}
	return figures
}

func TestEveryFigureIsThereOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere some are absent")
	}
	figures := scrape(t)
	for _, name := range []string{
		"cpu_seconds_total,user", "cpu_seconds_total,system", "allocs_total", "alloc_bytes_total",
		"gc_cycles_total", "goroutines", "peak_resident_bytes", "open_descriptors",
	} {
		if _, ok := figures[name]; !ok {
			t.Errorf("no %s", name)
		}
		delete(figures, name)
	}
	for name := range figures {
		t.Errorf("unexpected %s", name)
	}
}

func TestCPUCountsWhatThisProcessUsed(t *testing.T) {
	u0, s0, ok := CPU()
	if !ok {
		t.Skip("no CPU times on this system")
	}
	spins := uint64(1)
	start := time.Now()
	for time.Since(start) < 30*time.Millisecond {
		for range 1000 {
			spins = spins*6364136223846793005 + 1
		}
	}
	wall := time.Since(start)
	runtime.KeepAlive(spins)
	u1, s1, _ := CPU()
	used := u1 + s1 - u0 - s0
	// A shared machine may take the core away, so only a loose lower bound;
	// above, all cores could have been busy with this process.
	if used <= wall/20 || used > wall*time.Duration(runtime.NumCPU()+1) {
		t.Errorf("spinning for %v used %v", wall, used)
	}
}

// kept keeps the allocations of a test on the heap.
var kept [][]byte

func TestAllocationsAreThoseOfMemStats(t *testing.T) {
	const objects, size = 2000, 4096
	kept = make([][]byte, 0, objects)
	runtime.GC() // flushes the per-core counts
	before := readRuntime()
	for range objects {
		kept = append(kept, make([]byte, size))
	}
	runtime.GC()
	after := readRuntime()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)

	if n := after.allocs - before.allocs; n < objects || n > objects+1000 {
		t.Errorf("%d objects counted as %d", objects, n)
	}
	if n := after.bytes - before.bytes; n < objects*size || n > objects*size+1<<20 {
		t.Errorf("%d bytes counted as %d", objects*size, n)
	}
	if after.cycles <= before.cycles {
		t.Errorf("collections went from %d to %d", before.cycles, after.cycles)
	}
	if diff := int64(ms.Mallocs) - int64(after.allocs); diff < -1000 || diff > 1000 {
		t.Errorf("MemStats has %d allocations, we have %d", ms.Mallocs, after.allocs)
	}
	kept = nil
}

// Objects below 16 bytes without pointers share a block, and the runtime counts
// them elsewhere.
func TestTinyAllocationsCount(t *testing.T) {
	const objects = 20_000
	tiny := make([]*byte, objects)
	runtime.GC()
	before := readRuntime()
	for i := range tiny {
		tiny[i] = new(byte)
	}
	runtime.GC()
	after := readRuntime()
	runtime.KeepAlive(tiny)
	if n := after.allocs - before.allocs; n < objects || n > objects+2000 {
		t.Errorf("%d tiny objects counted as %d", objects, n)
	}
}

func TestGoroutinesAndDescriptorsFollow(t *testing.T) {
	const n = 200
	before := scrape(t)
	release := make(chan struct{})
	for range n {
		go func() { <-release }()
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	during := scrape(t)
	close(release)
	// Gathering has a few goroutines of its own, which end in their own time.
	if d := during["goroutines"] - before["goroutines"]; d < n-20 || d > n+20 {
		t.Errorf("%d more goroutines counted as %v", n, d)
	}
	if _, ok := openDescriptors(); !ok {
		return
	}
	if d := during["open_descriptors"] - before["open_descriptors"]; d != n {
		t.Errorf("%d more descriptors counted as %v", n, d)
	}
}

// A child must not inherit the peak of the process that started it.
func TestPeakIsThisProcessAlone(t *testing.T) {
	if os.Getenv("PROCESS_TEST_CHILD") == "1" {
		b, _ := peakResident()
		fmt.Print(b)
		os.Exit(0)
	}
	if _, ok := peakResident(); !ok {
		t.Skip("no peak on this system")
	}
	const size = 256 << 20
	big := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		big[i] = 1
	}
	if b, _ := peakResident(); b < size {
		t.Errorf("touching %d bytes gives a peak of %d", size, b)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPeakIsThisProcessAlone$")
	cmd.Env = append(os.Environ(), "PROCESS_TEST_CHILD=1")
	out, err := cmd.Output()
	runtime.KeepAlive(big)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil || child <= 0 || child > size/2 {
		t.Errorf("the child's peak is %d bytes (%q)", child, out)
	}
}

func BenchmarkScrape(b *testing.B) {
	c := NewCollector()
	ch := make(chan prometheus.Metric, 16)
	b.ReportAllocs()
	for b.Loop() {
		c.Collect(ch)
		for len(ch) > 0 {
			<-ch
		}
	}
}
