// Package e2e holds the tests of the whole: real commands, real sockets, the
// configuration as a user writes it. It has no code of its own.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatebench/internal/cli"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// A command is one gatebench command running inside the test.
type command struct {
	t      *testing.T
	addr   string // of its listener
	file   string // its configuration
	stop   context.CancelFunc
	done   chan int // its exit code
	stderr *lockedBuffer
}

// start runs `gatebench kind -f FILE` in this process on a free port, with yaml as
// its file, until the test ends.
func start(t *testing.T, kind, yaml string, env ...string) *command {
	t.Helper()
	file := filepath.Join(t.TempDir(), kind+".yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	env = append(env, "GATEBENCH_"+strings.ToUpper(kind)+"_LISTEN=127.0.0.1:0")
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	c := &command{t: t, file: file, stop: stop, done: make(chan int, 1), stderr: new(lockedBuffer)}
	go func() {
		code := cli.Run(ctx, []string{kind, "-f", file}, env, in, c.stderr)
		_ = in.Close()
		c.done <- code
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			c.addr = addr
			break
		}
	}
	if c.addr == "" {
		t.Fatalf("%s did not start: %s", kind, c.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() { c.end() })
	return c
}

// end asks the command to stop and waits for it.
func (c *command) end() {
	c.stop()
	select {
	case code := <-c.done:
		c.done <- code
		if code != 0 {
			c.t.Errorf("ended with exit code %d: %s", code, c.stderr)
		}
	case <-time.After(patience):
		c.t.Errorf("did not end: %s", c.stderr)
	}
}

func startBackend(t *testing.T, yaml string) *command {
	t.Helper()
	return start(t, "backend", yaml)
}

// startGateway starts a gateway in front of upstream, an address.
func startGateway(t *testing.T, upstream, yaml string) *command {
	t.Helper()
	return start(t, "gateway", yaml, "GATEBENCH_GATEWAY_UPSTREAM=http://"+upstream)
}

// newClient is an HTTP client that shows what is on the wire: nothing followed,
// nothing decoded, nothing kept.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get returns status and body of a GET.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// eventually waits for ok, asking again every few milliseconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func getContext(ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}
