package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatebench/internal/cli"
	"gatebench/loadtest/result"
)

// asProgram, in the environment, makes this test binary gatebench itself, so that
// commands run as real processes with real signals.
const asProgram = "E2E_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is a gatebench process.
type program struct {
	*exec.Cmd
	stdout, stderr lockedBuffer
}

func newProgram(args ...string) *program {
	p := &program{Cmd: exec.Command(os.Args[0], args...)}
	// A process built with the race detector waits a second before it ends.
	p.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// run returns the exit code, -1 if a signal ended it.
func (p *program) run(t *testing.T) int {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *program) wait(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	defer late.Stop()
	err := p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// plan writes a plan of two arms with solo trials of that length.
func plan(t *testing.T, solo time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	yaml := fmt.Sprintf(`
experiment:
  arms: [{client: net/http}, {client: fasthttp}]
  blocks: 2
  duet: {connections: 4, warmup: 100ms, duration: 400ms}
profiles:
  steady: {executor: constant-arrival-rate, rate: 200/s, warmup: 100ms, duration: %v}
`, solo)
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunMeasuresAndWritesTheFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := newProgram("run", plan(t, 500*time.Millisecond), "--out", out)
	// A machine that others use, or too busy for the generator to be on time,
	// makes solo trials void, which is right, and no fault of the run.
	if code := p.run(t); code != 0 && code != 5 {
		t.Fatalf("exit code %d\n%s\n%s", code, &p.stdout, &p.stderr)
	}
	doc, err := result.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	// Two phases and two blocks of two arms and the sentinel.
	if len(doc.Trials) != 12 || doc.Interrupted {
		t.Errorf("%d trials, interrupted %v", len(doc.Trials), doc.Interrupted)
	}
	for _, trial := range doc.Trials {
		busy := trial.Phase == result.Solo && (strings.Contains(trial.VoidReason, "generator") || strings.Contains(trial.VoidReason, "CPU"))
		if !trial.Valid && !busy || trial.Requests == 0 || trial.Errors != 0 {
			t.Errorf("%+v", trial)
		}
		want := []string{"cpu_us_per_request", "allocs_per_request"}
		if trial.Phase == result.Solo {
			want = []string{"response_time_p50", "throughput", "connections_opened", "memory_peak_bytes"}
			if c := trial.Metrics["connections_opened"]; c != trial.Metrics["backend_connections_accepted"] {
				t.Errorf("%s: the dialer opened %v connections, the backend accepted %v", trial.Arm, c, trial.Metrics["backend_connections_accepted"])
			}
		}
		for _, m := range want {
			if trial.Metrics[m] <= 0 {
				t.Errorf("%s %s: %s = %v", trial.Phase, trial.Arm, m, trial.Metrics[m])
			}
		}
	}
	for _, name := range []string{"report.txt", "trials.csv"} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	nothingLeft(t, out)
}

// started finds the processes of a run that said they are up, by what they are.
func started(t *testing.T, out, what string) (pid int) {
	t.Helper()
	line := regexp.MustCompile(what + `.*pid (\d+)`)
	eventually(t, what+" has started", func() bool {
		log, _ := os.ReadFile(filepath.Join(out, "processes.log"))
		all := line.FindAllSubmatch(log, -1)
		if len(all) == 0 {
			return false
		}
		pid, _ = strconv.Atoi(string(all[len(all)-1][1]))
		return true
	})
	return pid
}

// nothingLeft checks that no process of the run is left.
func nothingLeft(t *testing.T, out string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(out, "processes.log"))
	if err != nil {
		t.Fatal(err)
	}
	pids := regexp.MustCompile(`pid (\d+)`).FindAllSubmatch(log, -1)
	if len(pids) == 0 {
		t.Error("no process was ever started")
	}
	for _, m := range pids {
		pid, _ := strconv.Atoi(string(m[1]))
		eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
	}
	// The log may not know all. (Dialing the ports proves nothing: a test beside
	// this one may have been given them since.)
	eventually(t, "no process works for "+out, func() bool { return len(workingFor(t, out)) == 0 })
}

// workingFor lists the processes that have the run's folder among their arguments,
// as the gateways and backends have; their ports go with them.
func workingFor(t *testing.T, out string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		pid := filepath.Base(filepath.Dir(path))
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(out+"/")) && pid != strconv.Itoa(os.Getpid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

// inSolo starts a run and waits until its first solo load is under way.
func inSolo(t *testing.T) (p *program, out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	p = newProgram("run", plan(t, time.Minute), "--out", out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	eventually(t, "a solo trial", func() bool {
		log, _ := os.ReadFile(filepath.Join(out, "processes.log"))
		return bytes.Contains(log, []byte("--profile steady"))
	})
	if n := len(workingFor(t, out)); n != 3 {
		t.Errorf("%d processes work for the run, want a gateway, a backend and a load", n)
	}
	return p, out
}

func TestInterruptSavesWhatWasMeasured(t *testing.T) {
	p, out := inSolo(t)
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, &p.stderr)
	}
	if !strings.Contains(p.stderr.String(), "interrupted, what was measured is in "+out) {
		t.Errorf("stderr: %s", &p.stderr)
	}
	saved(t, out, true)
	nothingLeft(t, out)
}

// saved reads what a run that ended early left: the duet before it is whole.
func saved(t *testing.T, out string, interrupted bool) {
	t.Helper()
	doc, err := result.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Interrupted != interrupted {
		t.Errorf("interrupted: %v, want %v", doc.Interrupted, interrupted)
	}
	duets := 0
	for _, trial := range doc.Trials {
		// Whether a busy machine leaves them valid is not the question.
		if trial.Phase == result.Duet && trial.Metrics["cpu_us_per_request"] > 0 {
			duets++
		}
	}
	if duets != 3 {
		t.Errorf("%d of 3 duet trials were saved", duets)
	}
}

func TestDeadProcessEndsTheRunByName(t *testing.T) {
	for _, what := range []string{"gateway", "backend", "load"} {
		t.Run(what, func(t *testing.T) {
			p, out := inSolo(t)
			if err := syscall.Kill(started(t, out, what), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(t); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			stderr := p.stderr.String()
			if !strings.Contains(stderr, what) || !strings.Contains(stderr, "killed") || !strings.Contains(stderr, out) {
				t.Errorf("the message does not name the dead %s, how it died and where the result is: %s", what, stderr)
			}
			saved(t, out, false)
			nothingLeft(t, out)
		})
	}
}

func TestKilledRunLeavesNoProcess(t *testing.T) {
	p, out := inSolo(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	nothingLeft(t, out)
}

// Bad input: one sentence that names the thing, the right exit code, nothing
// half-written.
func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // not defer: the cases run after this function
	busy := taken.Addr().String()
	file := func(yaml string) string {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notAFolder := file("")
	refused := "http://" + refusedAddr(t) + "/"
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"wrong client":      {[]string{"gateway", "-f", file("gateway: {client: fasthtpp}")}, 2, []string{`"fasthtpp"`, "did you mean fasthttp?", "c.yaml:1:"}},
		"unknown key":       {[]string{"validate", "-f", file("gateway:\n  pol: {max_conns: 1}\n")}, 2, []string{"gateway.pol", "did you mean pool?", "c.yaml:2:3"}},
		"repeated key":      {[]string{"validate", "-f", file("gateway:\n  client: resty\n  client: resty\n")}, 2, []string{"c.yaml:3", "twice"}},
		"bad unit":          {[]string{"validate", "-f", file("gateway: {timeouts: {connect: 5}}")}, 2, []string{"gateway.timeouts.connect", "5s"}},
		"no such plan":      {[]string{"run", "quik", "--out", t.TempDir()}, 2, []string{"quik", "did you mean quick?"}},
		"no such file":      {[]string{"gateway", "-f", filepath.Join(t.TempDir(), "none.yaml")}, 2, []string{"none.yaml"}},
		"no such command":   {[]string{"gatway"}, 2, []string{"gatway"}},
		"no such flag":      {[]string{"load", "--ur", "x"}, 2, []string{"--ur"}},
		"gateway port":      {[]string{"gateway", "-f", file("gateway: {listen: '" + busy + "'}")}, 1, []string{busy, "address already in use", "gateway"}},
		"backend port":      {[]string{"backend", "-f", file("backend: {listen: '" + busy + "'}")}, 1, []string{busy, "address already in use", "backend"}},
		"admin port":        {[]string{"gateway", "-f", file("gateway: {listen: '127.0.0.1:0', admin: {listen: '" + busy + "'}}")}, 1, []string{busy, "address already in use"}},
		"output is a file":  {[]string{"run", plan(t, time.Second), "--out", notAFolder}, 1, []string{notAFolder}},
		"output impossible": {[]string{"run", plan(t, time.Second), "--out", filepath.Join(notAFolder, "sub")}, 1, []string{notAFolder}},
		"no load":           {[]string{"load", "--url", "http://127.0.0.1:1/"}, 2, []string{"--vus", "--rate"}},
		"no url":            {[]string{"load", "--vus", "1", "--duration", "1s"}, 2, []string{"--url"}},
		"upstream down":     {[]string{"load", "--url", refused, "--vus", "1", "--duration", "100ms"}, 1, []string{refused, "refused"}},
		"no result":         {[]string{"report", t.TempDir()}, 1, []string{"result.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(c.args...)
			if code := p.run(t); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			stderr := p.stderr.String()
			for _, s := range c.says {
				if !strings.Contains(stderr, s) {
					t.Errorf("no word of %q: %s", s, stderr)
				}
			}
			if strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine") {
				t.Errorf("a panic: %s", stderr)
			}
		})
	}
}

// refusedAddr is an address that nobody listens on.
func refusedAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// The first signal drains: what is in flight is answered, and the exit code is 0.
func TestTermDrainsTheGateway(t *testing.T) {
	up := newRawUpstream(t)
	cfg := filepath.Join(t.TempDir(), "g.yaml")
	if err := os.WriteFile(cfg, []byte("gateway: {listen: '127.0.0.1:0', upstream: 'http://"+up.addr+"'}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram("gateway", "-f", cfg)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Process.Kill() }()
	var addr string
	eventually(t, "the gateway listens", func() bool {
		_, after, ok := strings.Cut(p.stdout.String(), "listening on ")
		addr = strings.TrimSpace(after)
		return ok && strings.HasSuffix(after, "\n")
	})
	status := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := newClient(t)
	go func() {
		code := 0
		if resp, err := getContext(ctx, c, "http://"+addr+"/slow"); err == nil {
			code = resp.StatusCode
			_ = resp.Body.Close()
		}
		status <- code
	}()
	_, answer := up.next(t)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	answer()
	if got := <-status; got != 204 {
		t.Errorf("the request in flight got %d, want 204", got)
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, &p.stderr)
	}
}
