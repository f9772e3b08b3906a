package sut

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a child that runs, or ran.
type Process struct {
	name   string
	cmd    *exec.Cmd
	words  tail
	stderr *lines
	done   chan struct{}
}

// Name is the name that it was started under.
func (p *Process) Name() string { return p.name }

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU is the time that the process has used so far, to a tick of the system.
func (p *Process) CPU() (time.Duration, error) { return cpuTime(p.PID()) }

// Done is closed when the process has ended and is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how an ended process ended: nil if with status 0, else an
// *[ExitError]. It must not be called before [Process.Done] is closed.
func (p *Process) Exit() error {
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return p.Died()
}

// Died is the *[ExitError] of a process that has ended when it should have run on,
// whatever its status. It must not be called before [Process.Done] is closed.
func (p *Process) Died() error {
	return &ExitError{Name: p.name, Status: p.cmd.ProcessState.String(), LastWords: p.words.last()}
}

// Stop asks the process to end by SIGTERM, waits up to grace and then kills it. It returns
// when the process is reaped: nil if it ended by itself with status 0.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended: done tells
	select {
	case <-p.done:
		return p.Exit()
	case <-time.After(grace):
	}
	p.Kill()
	<-p.done
	return &StubbornError{Name: p.name, Grace: grace}
}

// Kill ends the process and its group at once.
func (p *Process) Kill() {
	select {
	case <-p.done: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
}

// ExitError is the end of a process that should have run on, or its failure.
type ExitError struct {
	Name string
	// Status is "exit status 1" or "signal: killed".
	Status string
	// LastWords is the last line that it wrote to standard error, or the line
	// that opens a Go crash; "" if it said nothing.
	LastWords string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended with %s: %s", e.Name, e.Status, cmp.Or(e.LastWords, "it said nothing"))
}

// StubbornError is a process that had to be killed.
type StubbornError struct {
	Name  string
	Grace time.Duration
}

func (e *StubbornError) Error() string {
	return fmt.Sprintf("%s did not stop within %v and was killed", e.Name, e.Grace)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// tailSize is what a tail holds at least, once that much was written.
const tailSize = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailSize {
		t.b = append(t.b[:0], t.b[len(t.b)-tailSize:]...)
	}
	return len(b), nil
}

// last is the most telling line: the head of a Go crash, which a long stack
// follows, or simply the last one.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for line := range strings.Lines(string(t.b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
		last = cmp.Or(line, last)
	}
	return last
}
