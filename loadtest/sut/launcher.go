package sut

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Command says what to start.
type Command struct {
	// Name is what messages and the log call the process, "gateway resty".
	Name string
	Path string
	Args []string

	// Env is the whole environment, "KEY=value"; nothing is inherited.
	Env []string

	// CPUs are the processors that the process may use; none is any. A Go
	// program sizes GOMAXPROCS by them.
	CPUs []int

	// Stdout gets what the process prints; nil sends it to the log.
	Stdout io.Writer

	// Takes is shown every line that the process writes to stderr, and returns
	// whether it keeps it from the log. Nil takes none.
	Takes func(line string) bool
}

// Launcher starts processes that end with it at the latest, and with this process
// however that ends. Make one with [NewLauncher] and Close it.
type Launcher struct {
	log  *journal
	jobs chan func()
	all  []int // processors that this process may use

	mu     sync.Mutex
	closed bool
	live   map[*Process]struct{}
}

// NewLauncher returns a launcher that writes to log, line by line, what the
// processes say and when they begin and end.
func NewLauncher(log io.Writer) *Launcher {
	l := &Launcher{log: &journal{w: log}, jobs: make(chan func()), all: CPUs(), live: map[*Process]struct{}{}}
	go func() {
		// Never unlocked: the thread ends with this goroutine, and any
		// child still there with the thread.
		runtime.LockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// errClosed is what Start returns after Close.
var errClosed = errors.New("launcher is closed")

// Start starts a process in a process group of its own, so that a terminal's
// Ctrl-C does not reach it.
func (l *Launcher) Start(c Command) (*Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("start %s: %w", c.Name, errClosed)
	}
	p := &Process{name: c.Name, done: make(chan struct{}), cmd: exec.Command(c.Path, c.Args...)} //nolint:noctx // a process ends by Stop, Kill or Close: a context could only kill it
	p.cmd.Env = append([]string{}, c.Env...)                                                     // nil would inherit
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = time.Second // a grandchild that holds the pipes holds nobody up
	p.stderr = &lines{each: func(line string) {
		if c.Takes != nil && c.Takes(line) {
			return
		}
		_, _ = io.WriteString(&p.words, line+"\n") // it keeps, and cannot fail
		l.log.say(c.Name, line)
	}}
	p.cmd.Stderr = p.stderr
	stdout := c.Stdout
	if stdout == nil {
		stdout = &lines{each: func(line string) { l.log.say(c.Name, line) }}
	}
	p.cmd.Stdout = stdout

	cpus := c.CPUs
	if len(cpus) == 0 {
		cpus = l.all
	}
	errc := make(chan error)
	l.jobs <- func() {
		if err := pinThread(cpus); err != nil {
			errc <- err
			return
		}
		errc <- p.cmd.Start()
	}
	if err := <-errc; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	l.live[p] = struct{}{}
	l.log.say(c.Name, fmt.Sprintf("started, pid %d: %s", p.PID(), p.cmd))
	go l.reap(p)
	return p, nil
}

// reap waits for p, the only place that does.
func (l *Launcher) reap(p *Process) {
	// The state says all; an error of the copying says nothing of the process.
	_ = p.cmd.Wait()
	p.stderr.end()
	l.log.say(p.name, "ended, "+p.cmd.ProcessState.String())
	l.mu.Lock()
	delete(l.live, p)
	l.mu.Unlock()
	close(p.done)
}

// Close kills what still runs and returns when all of it is reaped.
func (l *Launcher) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.jobs)
	}
	var left []*Process
	for p := range l.live {
		left = append(left, p)
	}
	l.mu.Unlock()
	for _, p := range left {
		p.Kill()
	}
	for _, p := range left {
		<-p.done
	}
}
