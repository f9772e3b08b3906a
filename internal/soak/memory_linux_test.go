package soak

import (
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// TestMemoryDoesNotGrowWithBodies sends one large body up and one down. The bound
// is of the gateway's whole resident memory, at its highest: the kernel's own
// mark, which no sampling misses.
func TestMemoryDoesNotGrowWithBodies(t *testing.T) {
	size, bound := int64(64<<20), int64(32<<20)
	if *full {
		size, bound = 1<<30, 64<<20
	}
	eachPair(t, func(t *testing.T, p pair) {
		g := p.apart(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/up" {
				_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
				return
			}
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			_, _ = io.CopyN(w, zeros{}, size)
		}))
		caller := newCaller(t, 1)
		for range 20 { // what any traffic needs is not the body's doing
			upload(t, caller, g, 1<<10)
		}
		idle := g.memory(t).VmRSS
		upload(t, caller, g, size)
		up := int64(g.memory(t).VmHWM - idle)
		download(t, caller, g, size)
		both := int64(g.memory(t).VmHWM - idle)
		note(t, "Gateway memory above idle, at its highest", "%-24s %5d MB up: +%.1f MB   %5d MB down: +%.1f MB   (idle %.1f MB)",
			p, size>>20, mb(up), size>>20, mb(both), mb(int64(idle)))
		if both > bound {
			t.Errorf("%.1f MB above idle for bodies of %d MB, at most %d MB are allowed", mb(both), size>>20, bound>>20)
		}
	})
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (g *process) memory(t *testing.T) procfs.ProcStatus {
	t.Helper()
	proc, err := procfs.NewProc(g.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// zeros never end. That they compress is of no account: nobody compresses.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func upload(t *testing.T, c *http.Client, g *process, size int64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/up", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	if got := exchange(t, c, req, 20); got != strconv.FormatInt(size, 10) {
		t.Fatalf("upstream got %s bytes of %d", got, size)
	}
}

func download(t *testing.T, c *http.Client, g *process, size int64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.addr+"/down", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Fatalf("got %d bytes of %d, %v", n, size, err)
	}
}

// exchange returns the first bytes of a 200.
func exchange(t *testing.T, c *http.Client, req *http.Request, most int64) string {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %q, %v", resp.Status, b, err)
	}
	return string(b)
}
