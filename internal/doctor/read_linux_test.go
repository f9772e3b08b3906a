package doctor

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// spinning, in the environment, makes this test binary a busy neighbour until its
// input is closed.
const spinning = "DOCTOR_TEST_SPIN"

func TestMain(m *testing.M) {
	if os.Getenv(spinning) == "" {
		os.Exit(m.Run())
	}
	var ended atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	for !ended.Load() { // burning is what it is for
	}
}

func TestReadSeesTheMachineAndItsNeighbours(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), spinning+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	f := Read(t.Context(), 500*time.Millisecond, taken.Addr().String(), "127.0.0.1:0", "192.0.2.1:80")

	if f.Cores < 1 || f.Descriptors == nil || f.Ports == nil || *f.Ports < 1 || f.MemoryFree == nil || *f.MemoryFree < 1<<20 || f.Load == nil || f.Steal == nil {
		t.Errorf("not all was read: %+v", f)
	}
	share := 0.0
	for _, p := range f.Others {
		if p.PID == cmd.Process.Pid {
			share = p.Share
		}
		if p.PID == os.Getpid() {
			t.Error("it is its own neighbour")
		}
	}
	// On a busy machine a process that always wants gets less than a core.
	if share < 0.1 || share > 3 || f.Busy == nil || *f.Busy < share/float64(f.Cores)/2 {
		t.Errorf("a process that spins has a share of %v, everybody %v", share, f.Busy)
	}
	for address, want := range map[string]string{
		taken.Addr().String(): "taken", "127.0.0.1:0": "", "192.0.2.1:80": "cannot be listened on",
	} {
		if got := f.Taken[address]; !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"version 2":           {map[string]string{"cpu.max": "150000 100000\n"}, 1.5},
		"version 2, no limit": {map[string]string{"cpu.max": "max 100000\n"}, 0},
		"version 1":           {map[string]string{"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5},
		"version 1, no limit": {map[string]string{"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0},
		"no control group":    {nil, 0},
	} {
		root := t.TempDir()
		for file, content := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := quota(root); got == nil || *got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
