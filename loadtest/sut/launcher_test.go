package sut_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gatebench/loadtest/sut"
)

// log is a journal that can be read while it is written.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newLauncher(t *testing.T) (*sut.Launcher, *log) {
	t.Helper()
	var journal log
	l := sut.NewLauncher(&journal)
	t.Cleanup(l.Close)
	return l, &journal
}

func TestServeReturnsWhenReady(t *testing.T) {
	l, journal := newLauncher(t)
	for _, role := range []string{"server", "late"} {
		s, err := l.Serve(t.Context(), child(role), "/ready")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Fetch(t.Context(), "/ready"); err != nil {
			t.Errorf("%s: %v", role, err)
		}
		if err := s.Stop(5 * time.Second); err != nil {
			t.Errorf("stop %s: %v", role, err)
		}
	}
	for _, want := range []string{"server: started, pid ", "server: warming up", "server: ended, exit status 0"} {
		if !strings.Contains(journal.String(), want) {
			t.Errorf("the journal does not say %q:\n%s", want, journal)
		}
	}
}

func TestServeNamesWhatAServerDiedOf(t *testing.T) {
	for role, want := range map[string]sut.ExitError{
		"early": {Name: "early", Status: "exit status 3", LastWords: "listen 127.0.0.1:80: permission denied"},
		"crash": {Name: "crash", Status: "exit status 2", LastWords: "panic: out of cheese"},
	} {
		l, _ := newLauncher(t)
		_, err := l.Serve(t.Context(), child(role), "/ready")
		exit, ok := errors.AsType[*sut.ExitError](err)
		if !ok || *exit != want {
			t.Errorf("%s: got %v, want %+v", role, err, want)
		}
	}
}

func TestServeGivesUpWithItsContext(t *testing.T) {
	for role, path := range map[string]string{"silent": "/ready", "unready": "/nowhere"} {
		l, journal := newLauncher(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := l.Serve(ctx, child(role), path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", role, err)
		}
		if want := "ended, signal: killed"; !strings.Contains(journal.String(), want) {
			t.Errorf("%s was left behind:\n%s", role, journal)
		}
	}
}

func TestStartNamesAMissingProgram(t *testing.T) {
	l, _ := newLauncher(t)
	_, err := l.Start(sut.Command{Name: "ghost", Path: "/no/such/program"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "ghost") {
		t.Errorf("got %v", err)
	}
}

func TestStopKillsWhoDoesNotStop(t *testing.T) {
	l, _ := newLauncher(t)
	s, err := l.Serve(t.Context(), child("stubborn"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Stop(100 * time.Millisecond)
	if _, ok := errors.AsType[*sut.StubbornError](err); !ok {
		t.Errorf("got %v", err)
	}
	awaitGone(t, s.PID())
}

func TestDeathBySignalIsSeen(t *testing.T) {
	l, _ := newLauncher(t)
	s, err := l.Serve(t.Context(), child("server"), "/ready")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the death was not seen")
	}
	want := "server ended with signal: killed: it said nothing"
	if err := s.Exit(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// What is dead can be stopped and killed, to no effect.
	s.Kill()
	if err := s.Stop(time.Second); err == nil {
		t.Error("a killed process stopped well")
	}
}

func TestLastWordsAreTheEndOfMuch(t *testing.T) {
	l, _ := newLauncher(t)
	p, err := l.Start(child("chatty"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	exit, _ := errors.AsType[*sut.ExitError](p.Exit())
	if exit == nil || exit.LastWords != "line 199999" {
		t.Errorf("got %v", p.Exit())
	}
}

// facts starts a child that says what it is given.
func facts(t *testing.T, l *sut.Launcher, cpus []int) string {
	t.Helper()
	var out bytes.Buffer
	c := child("facts", "GIVEN=1")
	c.CPUs, c.Stdout = cpus, &out
	p, err := l.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Exit(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestChildrenInheritNothing(t *testing.T) {
	t.Setenv("GATEBENCH_GATEWAY_CLIENT", "fasthttp")
	l, _ := newLauncher(t)
	got := facts(t, l, nil)
	for _, want := range []string{"own group true\n", "environment GIVEN=1 " + childMark + "=facts " + raceEnd + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
}

func TestChildrenArePinned(t *testing.T) {
	all := sut.CPUs()
	if len(all) < 2 {
		t.Skip("needs two processors")
	}
	l, _ := newLauncher(t)
	last := all[len(all)-1:]
	want := func(cpus []int) string { return fmt.Sprintf("gomaxprocs %d\ncpus %v\n", len(cpus), cpus) }
	if got := facts(t, l, last); !strings.HasPrefix(got, want(last)) {
		t.Errorf("pinned to %v:\n%s", last, got)
	}
	if got := facts(t, l, nil); !strings.HasPrefix(got, want(all)) {
		t.Errorf("after a pinned one, not pinned itself:\n%s", got)
	}
	if got := sut.CPUs(); !slices.Equal(got, all) {
		t.Errorf("this process has processors %v left, of %v", got, all)
	}
}

// TestChildrenOutliveTheCallersThread: the parent-death signal is sent when the
// thread that forked ends, and that must not be the caller's.
func TestChildrenOutliveTheCallersThread(t *testing.T) {
	l, _ := newLauncher(t)
	started := make(chan *sut.Process)
	go func() {
		runtime.LockOSThread() // and so the thread ends with this goroutine
		p, err := l.Start(child("silent"))
		if err != nil {
			t.Error(err)
		}
		started <- p
	}()
	p := <-started
	if p == nil {
		return
	}
	// The children of a thread that ends are killed in its exit: churn a few
	// more and give them time.
	for range 20 {
		done := make(chan bool)
		go func() { runtime.LockOSThread(); close(done) }()
		<-done
	}
	select {
	case <-p.Done():
		t.Errorf("the child died with the thread: %v", p.Exit())
	case <-time.After(200 * time.Millisecond):
	}
}

func TestChildrenDieWithAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the parent-death signal")
	}
	c := child("parent")
	parent := exec.Command(c.Path)
	parent.Env = c.Env
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Wait()
	defer parent.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(grandchild) {
		t.Fatalf("no grandchild: %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, grandchild)
}

func TestCloseLeavesNothing(t *testing.T) {
	l := sut.NewLauncher(io.Discard)
	var pids []int
	for _, role := range []string{"silent", "stubborn", "silent"} {
		p, err := l.Start(child(role))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p.PID())
	}
	l.Close()
	l.Close()
	for _, pid := range pids {
		awaitGone(t, pid)
	}
	if _, err := l.Start(child("silent")); err == nil {
		t.Error("a closed launcher started a process")
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.State != "Z"
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}
