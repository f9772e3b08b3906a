// Package soak holds the gateway to what only shows under many requests or long
// bodies: no answer goes to the wrong caller, memory does not grow with a body,
// and who stops the gateway loses no request. Every pair of server and client.
//
// The suite runs it small; the full size and the table that stands in
// docs/results/soak.txt come from
//
//	go test ./internal/soak -v -timeout 60m -soak.full -soak.table FILE
//
// It has no code of its own.
package soak

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gatebench/clients/registry"
	"gatebench/internal/cli"
	"gatebench/server"
)

var (
	full  = flag.Bool("soak.full", false, "20,000 requests and 1 GB a pair instead of 2,000 and 64 MB")
	table = flag.String("soak.table", "", "write what was seen to this `file`")
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// asProgram, in the environment, makes this test binary gatebench itself, so that
// a gateway has a process, and memory, of its own.
const asProgram = "SOAK_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
	flag.Parse()
	code := m.Run()
	if *table != "" && code == 0 {
		if err := os.WriteFile(*table, []byte(seen.String()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// A pair is what runs on either side of the hop.
type pair struct{ server, client string }

func (p pair) String() string { return p.server + "+" + p.client }

// eachPair runs f for all of them, one after the other: each shall have the
// machine for itself.
func eachPair(t *testing.T, f func(t *testing.T, p pair)) {
	for _, s := range server.Kinds() {
		for _, c := range registry.Names() {
			p := pair{s, c}
			t.Run(p.String(), func(t *testing.T) { f(t, p) })
		}
	}
}

// config writes a gateway's configuration; keys are further lines of its section.
func (p pair) config(t *testing.T, upstream string, keys ...string) (file string) {
	t.Helper()
	yaml := fmt.Sprintf("gateway:\n  listen: 127.0.0.1:0\n  upstream: %q\n  server: %s\n  client: %s\n", upstream, p.server, p.client)
	for _, k := range keys {
		yaml += "  " + k + "\n"
	}
	file = filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// inside runs a gateway in this process, where the race detector sees it, until
// the test ends, and returns its address.
func (p pair) inside(t *testing.T, upstream string) (addr string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stdout, in := io.Pipe()
	var log lockedBuffer
	ended := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, []string{"gateway", "-f", p.config(t, upstream)}, nil, in, &log)
		_ = in.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 || log.String() != "" {
			t.Errorf("the gateway ended with code %d: %s", code, &log)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway did not start: %s", &log)
	}
	return address(t, line)
}

func address(t *testing.T, line string) string {
	t.Helper()
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("the gateway says %q", line)
	}
	return addr
}

// A process is a gateway of its own.
type process struct {
	*exec.Cmd
	addr   string
	stderr lockedBuffer
}

// apart runs a gateway as a process.
func (p pair) apart(t *testing.T, upstream string) *process {
	t.Helper()
	g := &process{Cmd: exec.Command(os.Args[0], "gateway", "-f", p.config(t, upstream))}
	g.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	g.Stderr = &g.stderr
	stdout, err := g.StdoutPipe()
	if err == nil {
		err = g.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Process.Kill()
		_ = g.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway did not start: %s", &g.stderr)
	}
	g.addr = address(t, line)
	return g
}

// upstream serves h until the test ends, and returns its URL.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + ln.Addr().String()
}

// newCaller is an HTTP client with as many connections as asked for.
func newCaller(t *testing.T, connections int) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// seen is the table, line by line in the order of the tests.
var seen lockedBuffer

// note adds a line to the table; the first of a test has its title before it.
func note(t *testing.T, title, format string, args ...any) {
	if text := seen.String(); !strings.Contains(text, title) {
		if text == "" {
			fmt.Fprintf(&seen, "%s, %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
		}
		fmt.Fprintf(&seen, "\n%s\n", title)
	}
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(&seen, "%s\n", line)
	t.Log(line)
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
