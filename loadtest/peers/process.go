package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is what all measurements share.
type bench struct {
	gatebench, self string
	short           bool
	peers           map[string]string // path by name; a peer that could not be had is absent
}

// modules are the peers that are Go modules. Newer versions of fortio need a module
// that is not to be had everywhere.
var modules = map[string]string{
	"hey":    "github.com/rakyll/hey@v0.1.5",
	"vegeta": "github.com/tsenart/vegeta/v12@v12.13.0",
	"fortio": "fortio.org/fortio@v1.63.0",
}

// packages are the peers that Debian has.
var packages = map[string]string{"wrk": "wrk", "ab": "apache2-utils"}

func newBench(ctx context.Context, gatebench, tools string, short bool, need []string) (*bench, error) {
	path, err := filepath.Abs(gatebench)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: build it first", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bench{gatebench: path, self: self, short: short, peers: map[string]string{}}
	for name, module := range modules {
		if !slices.Contains(need, name) {
			continue
		}
		b.peers[name] = install(ctx, filepath.Join(tools, name), "go", "install", module)
	}
	for name, pkg := range packages {
		if !slices.Contains(need, name) {
			continue
		}
		b.peers[name] = install(ctx, "/usr/bin/"+name, "apt-get", "install", "-y", "--no-install-recommends", pkg)
	}
	return b, nil
}

// install returns path, after running the command that brings it if it is not there,
// or "" if that fails.
func install(ctx context.Context, path, command string, args ...string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Dir(path))
	cmd.Dir = os.TempDir() // no module of ours decides about versions
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %s: %v\n%s", cmd, err, out)
		return ""
	}
	return path
}

var errMissing = errors.New("could not be installed")

// used is what a process cost and how long it took.
type used struct {
	cpu, wall time.Duration
	memory    int64 // peak resident, bytes
}

// The two cores that bench pins to: the target's and the tool's.
const targetCore, toolCore = 0, 1

// on makes a command line that runs on one core with one thread of Go, or as it is
// where core is negative or there are not two.
func on(core int, args []string) []string {
	if core < 0 || runtime.NumCPU() < 2 {
		return args
	}
	return append([]string{"taskset", "-c", fmt.Sprint(core), "env", "GOMAXPROCS=1"}, args...)
}

// run runs a command to its end. An exit code is an error unless the command printed
// something: gatebench's tells of thresholds and validity.
func (b *bench) run(ctx context.Context, core int, stdin string, args ...string) (string, used, error) {
	args = on(core, args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	begin := time.Now()
	err := cmd.Run()
	u := used{wall: time.Since(begin)}
	if p := cmd.ProcessState; p != nil {
		u.cpu = p.UserTime() + p.SystemTime()
		if r, ok := p.SysUsage().(*syscall.Rusage); ok {
			u.memory = r.Maxrss * 1024
		}
	}
	if err != nil && out.Len() == 0 {
		return "", u, fmt.Errorf("%s: %w: %s", filepath.Base(args[0]), err, errs.String())
	}
	return out.String(), u, nil
}

// server is a target that runs.
type server struct {
	addr string
	cmd  *exec.Cmd
}

func (s *server) url() string { return "http://" + s.addr + "/product" }

// stop ends the server at once.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// target starts this program's own server.
func (b *bench) target(ctx context.Context, core int, args ...string) (*server, error) {
	return b.start(ctx, core, nil, append([]string{b.self, "serve"}, args...)...)
}

// backend starts gatebench's backend with single keys set.
func (b *bench) backend(ctx context.Context, keys ...string) (*server, error) {
	return b.backendOn(ctx, -1, keys...)
}

func (b *bench) backendOn(ctx context.Context, core int, keys ...string) (*server, error) {
	env := append(os.Environ(), "GATEBENCH_BACKEND_LISTEN=127.0.0.1:0")
	return b.start(ctx, core, append(env, keys...), b.gatebench, "backend")
}

// start waits for the line that says where the server listens.
func (b *bench) start(ctx context.Context, core int, env []string, args ...string) (*server, error) {
	args = on(core, args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = env
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		s.stop()
		return nil, fmt.Errorf("%v did not say where it listens: %q, %w", args, line, err)
	}
	s.addr = addr
	return s, nil
}
