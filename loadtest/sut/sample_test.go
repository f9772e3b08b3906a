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
