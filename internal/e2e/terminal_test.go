//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a terminal of the kernel's: what is written to the terminal end is read from the
// other.
func pty(t *testing.T, columns, rows uint16) (other, terminal *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	fd := int(other.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return other, terminal
}

// On a terminal a run is watched, and Ctrl-C leaves it usable; in a pipe no escape
// sequence is written.
func TestARunIsWatchedOnATerminal(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte(`version: 1
experiment: {arms: [{client: net/http}, {client: fasthttp}], blocks: 20, duet: {warmup: 100ms, duration: 600ms}, profiles: []}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	other, terminal := pty(t, 40, 24)
	p := newProgram("run", plan, "--out", filepath.Join(t.TempDir(), "out"))
	p.Env = append(p.Env, "TERM=xterm", "CI=")
	p.Stderr = terminal
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	var mu sync.Mutex
	var seen strings.Builder
	go func() {
		_, _ = io.Copy(writer(func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			seen.Write(b)
		}), other)
	}()
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen.String()
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(said(), "/s, CPU") || !strings.Contains(said(), "█"); {
		if time.Now().After(deadline) {
			t.Fatalf("neither a load nor a block that is done: %q", said())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 130 {
		t.Errorf("exit %d: %s", code, said())
	}
	if strings.Contains(said(), "\x1b[?25l") {
		t.Error("the cursor was hidden")
	}
	if strings.Contains(p.stdout.String(), "\x1b") {
		t.Error("an escape sequence in what is no terminal")
	}
}

// Where nobody can look at a frame (in CI, on a dumb terminal, in a pipe) a run tells its
// progress in lines, without an escape sequence.
func TestARunTellsLinesWhereNobodyWatches(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte(`version: 1
experiment: {arms: [{client: net/http}, {client: fasthttp}], blocks: 1, duet: {warmup: 100ms, duration: 300ms}, profiles: []}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"CI": {"TERM=xterm", "CI=true"}, "dumb": {"TERM=dumb", "CI="}, "pipe": {"TERM=xterm", "CI="}} {
		t.Run(name, func(t *testing.T) {
			p := newProgram("run", plan, "--out", filepath.Join(t.TempDir(), "out"))
			p.Env = append(p.Env, env...)
			said := func() string { return p.stderr.String() }
			if name != "pipe" {
				other, terminal := pty(t, 80, 24)
				defer terminal.Close()
				p.Stderr = terminal
				var mu sync.Mutex
				var seen strings.Builder
				go func() {
					_, _ = io.Copy(writer(func(b []byte) {
						mu.Lock()
						defer mu.Unlock()
						seen.Write(b)
					}), other)
				}()
				said = func() string {
					mu.Lock()
					defer mu.Unlock()
					return seen.String()
				}
			}
			if code := p.run(t); code != 0 && code != 5 {
				t.Fatalf("exit %d: %s", code, said())
			}
			eventually(t, "lines of progress", func() bool { return strings.Contains(said(), "block 1/1: duet") })
			if strings.Contains(said(), "\x1b") {
				t.Errorf("an escape sequence: %q", said())
			}
		})
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
