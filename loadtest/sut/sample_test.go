package sut_test

import (
	"runtime"
	"testing"
	"time"

	"gatebench/loadtest/sut"
)

func TestScrapeReadsMetricsByOneConnectionEach(t *testing.T) {
	l, _ := newLauncher(t)
	s, err := l.Serve(t.Context(), child("server"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Scrape(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"requests_total": 42, "goroutines": 7} {
		if got, ok := before.Sum(name); !ok || got != want {
			t.Errorf("%s: got %v, %v", name, got, ok)
		}
	}
	if got, ok := before.Sum("unheard_of"); ok || got != 0 {
		t.Errorf("a metric that is not there: got %v, %v", got, ok)
	}
	by := before.By("requests_total", "code")
	if len(by) != 2 || by["200"] != 40 || by["502"] != 2 {
		t.Errorf("requests by code: got %v", by)
	}
	if by := before.By("requests_total", "route"); len(by) != 1 || by[""] != 42 {
		t.Errorf("requests by a label that they do not have: got %v", by)
	}
	after, err := s.Scrape(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	from, _ := before.Sum("connections_total")
	to, _ := after.Sum("connections_total")
	if to-from != 1 {
		t.Errorf("a scrape opened %v connections, not 1", to-from)
	}
	if _, err := s.Scrape(t.Context(), "/broken"); err == nil {
		t.Error("damaged metrics were read")
	}
	if _, err := s.Scrape(t.Context(), "/nowhere"); err == nil {
		t.Error("a 404 was read as metrics")
	}
}

func TestFetchDoesNotWaitForAStuckServer(t *testing.T) {
	t.Parallel() // it takes its bound
	l, _ := newLauncher(t)
	s, err := l.Serve(t.Context(), child("server"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	want := "ask server for /stuck: no answer within 3s"
	if _, err := s.Fetch(t.Context(), "/stuck"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUsageOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	l, _ := newLauncher(t)
	s, err := l.Serve(t.Context(), child("server"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	// A Go server: some MiB, a listener, a poller and the standard streams.
	if u.PeakResident < 1<<20 || u.PeakResident > 1<<30 || u.Descriptors < 4 || u.Threads < 2 {
		t.Errorf("got %+v", u)
	}
	if err := s.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if u, err := s.Usage(); err == nil {
		t.Errorf("an ended process uses %+v", u)
	}
}

func TestMachine(t *testing.T) {
	m := sut.Machine()
	if m.OS != runtime.GOOS || m.Arch != runtime.GOARCH || m.Go != runtime.Version() || m.Cores < 1 {
		t.Errorf("got %+v", m)
	}
	if runtime.GOOS == "linux" && (m.Kernel == "" || m.MemoryB < 1<<20 || m.FDLimit < 3) {
		t.Errorf("got %+v", m)
	}
}

// TestCPUCountsTheLivingAndTheDead: once, and the rest of the machine not at all.
func TestCPUCountsTheLivingAndTheDead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	l, _ := newLauncher(t)
	cpu := func() time.Duration {
		used, err := l.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	before := cpu()
	s, err := l.Serve(t.Context(), child("burner"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	alive := cpu()
	if used := alive - before; used < burnt-20*time.Millisecond { // two ticks
		t.Errorf("with a process that has used %v, %v are counted", burnt, used)
	}
	if err := s.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if used := cpu() - alive; used < -20*time.Millisecond || used > burnt/2 {
		t.Errorf("its end changed the sum by %v", used)
	}
}

// TestHostAddsUp: what is used is a part of all there is, and nothing runs
// backwards.
func TestHostAddsUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	before, err := sut.ReadHost()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	after := before
	for after.All == before.All && time.Now().Before(deadline) {
		if after, err = sut.ReadHost(); err != nil {
			t.Fatal(err)
		}
	}
	if all, busy := after.All-before.All, after.Busy-before.Busy; all <= 0 || busy < 0 || busy > all {
		t.Errorf("%v busy of %v", busy, all)
	}
	if after.LocalPorts < 1000 || after.TimeWait < 0 {
		t.Errorf("%d connections in TIME_WAIT, %d ports", after.TimeWait, after.LocalPorts)
	}
}
