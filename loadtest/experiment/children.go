package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gatebench/loadtest/load"
	"gatebench/loadtest/sut"
)

// placement keeps gateways and load apart, so that a gateway's CPU time is its
// own. Both nil is no placement.
type placement struct{ gateways, others []int }

// placeOn gives gateways the last processor and everybody else the rest.
func placeOn(cpus []int) placement {
	if len(cpus) < 2 {
		return placement{}
	}
	last := len(cpus) - 1
	return placement{gateways: cpus[last:], others: cpus[:last]}
}

func (p placement) String() string {
	if p.gateways == nil {
		return ""
	}
	list := func(cpus []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]") }
	return fmt.Sprintf("gateways on cpu %s, load and backend on cpu %s", list(p.gateways), list(p.others))
}

// Paths that a gateway and a backend answer themselves.
const (
	gatewayReady, gatewayMetrics, gatewayAbout = "/-/healthz", "/-/metrics", "/-/about"
	backendReady, backendMetrics               = "/healthz", "/metrics"
)

// target is what the load asks for.
const target = "/product?type=T"

// Bounds on ends: a process that takes longer is killed. Together they keep an
// interrupted run below 5 s.
const (
	stopGrace = 1500 * time.Millisecond
	loadGrace = time.Second
)

// backends are the backends of one block, by arm; arms may share one.
type backends []*sut.Server

func (b backends) processes() []*sut.Process {
	var ps []*sut.Process
	seen := map[*sut.Server]bool{nil: true}
	for _, s := range b {
		if !seen[s] {
			seen[s] = true
			ps = append(ps, s.Process)
		}
	}
	return ps
}

// apart are the backends, each once.
func (b backends) apart() (all []*sut.Server) {
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// startBackends starts one backend for every different backend section. On an
// error it returns those that are up.
func (r *run) startBackends(ctx context.Context) (backends, error) {
	bs := make(backends, len(r.plan.Arms))
	bySection := map[string]*sut.Server{}
	for i, a := range r.plan.Arms {
		s := bySection[string(a.Backend)]
		if s == nil {
			name := "backend"
			if len(bySection) > 0 {
				name = fmt.Sprintf("backend of %q", a.Name)
			}
			var err error
			if s, err = r.startBackend(ctx, i, name, r.place.others); err != nil {
				return bs, err
			}
			bySection[string(a.Backend)] = s
		}
		bs[i] = s
	}
	return bs, nil
}

// startBackend starts an arm's backend.
func (r *run) startBackend(ctx context.Context, arm int, name string, cpus []int) (*sut.Server, error) {
	return r.launcher.Serve(ctx, sut.Command{
		Name: name,
		Path: r.options.Binary,
		Args: []string{"backend", "-f", r.files[arm].backend},
		Env:  append(r.env, "GATEBENCH_BACKEND_LISTEN=127.0.0.1:0"),
		CPUs: cpus,
	}, backendReady)
}

// startGateway starts an arm's gateway in front of the address upstream and asks it,
// the first time, about itself. args are more of its command line.
func (r *run) startGateway(ctx context.Context, arm int, upstream string, args ...string) (*sut.Server, error) {
	a := r.plan.Arms[arm]
	s, err := r.launcher.Serve(ctx, sut.Command{
		Name: fmt.Sprintf("gateway %q", a.Name),
		Path: r.options.Binary,
		Args: append([]string{"gateway", "-f", r.files[arm].gateway}, args...),
		Env: append(r.env,
			"GATEBENCH_GATEWAY_LISTEN=127.0.0.1:0",
			"GATEBENCH_GATEWAY_UPSTREAM=http://"+upstream,
			"GATEBENCH_GATEWAY_ADMIN_LISTEN="), // its own paths stay on the port we know
		CPUs: r.place.gateways,
	}, gatewayReady)
	if err != nil {
		return nil, err
	}
	if _, known := r.doc.About[a.Name]; !known {
		about, err := s.Fetch(ctx, gatewayAbout)
		if err == nil && json.Valid(about) {
			r.doc.About[a.Name] = about
		} else if ctx.Err() == nil {
			r.warn(fmt.Sprintf("gateway %q says nothing about itself at %s", a.Name, gatewayAbout))
		}
	}
	return s, nil
}

// stop ends processes, all at once, and warns of those that did not end well. One
// that is dead already was noticed when it died.
func (r *run) stop(ctx context.Context, ps ...*sut.Process) {
	errs := make([]error, len(ps))
	var all sync.WaitGroup
	for i, p := range ps {
		select {
		case <-p.Done():
		default:
			all.Go(func() { errs[i] = p.Stop(stopGrace) })
		}
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			r.warn(err.Error())
		}
	}
}

// watch returns a context that ends when one of the processes does, with its last
// words as the cause. They should run until fail is called, with nil or with
// another cause to end.
func watch(ctx context.Context, ps ...*sut.Process) (watched context.Context, fail context.CancelCauseFunc) {
	watched, fail = context.WithCancelCause(ctx)
	for _, p := range ps {
		go func() {
			select {
			case <-p.Done():
				fail(p.Died())
			case <-watched.Done():
			}
		}()
	}
	return watched, fail
}

// generator is a load generator that runs.
type generator struct {
	*sut.Process
	out   bytes.Buffer // what it prints; to be read when it has ended
	bound time.Duration
}

// startLoad puts an arm's gateway under load.
func (r *run) startLoad(arm int, gateway *sut.Server, p Profile) (*generator, error) {
	url := "http://" + gateway.Addr
	if len(p.Requests) == 0 { // each of a mix has its own
		url += target
	}
	name := r.plan.Arms[arm].Name
	return r.startLoadOn(fmt.Sprintf("load on %q", name), url, p, r.watchLoad(name, gateway))
}

// startLoadOn puts whatever answers at url under load. told takes the lines in which it
// tells its progress; nil asks for none.
func (r *run) startLoadOn(name, url string, p Profile, told func(line string) bool) (*generator, error) {
	file, err := r.profiles.write(p)
	if err != nil {
		return nil, err
	}
	g := &generator{bound: r.loadBound(p.Profile)}
	c := sut.Command{
		Name:   name,
		Path:   r.options.Binary,
		Args:   []string{"load", "--json", "--url", url, "-f", file, "--profile", p.Name},
		Env:    r.env,
		CPUs:   r.place.others,
		Stdout: &g.out,
	}
	if told != nil {
		c.Args, c.Takes = append(c.Args, "--live"), told
	}
	g.Process, err = r.launcher.Start(c)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// loadBound is when a generator that still runs has hung. One without a duration
// of its own may take what the budget allows.
func (r *run) loadBound(p load.Profile) time.Duration {
	const starting = 5 * time.Second
	if window := p.Window(); window > 0 {
		return p.Warmup + window + max(p.Timeout, p.GracefulStop) + starting
	}
	if r.plan.Budget > 0 {
		return r.plan.Budget
	}
	return 24 * time.Hour
}

// finish waits for the generator's summary. If ctx is done first, the generator is
// asked to end, and its summary, if it still gives one, comes with ctx's cause.
func (g *generator) finish(ctx context.Context) (*load.Summary, error) {
	hung := time.NewTimer(g.bound)
	defer hung.Stop()
	select {
	case <-g.Done():
		s, err := g.summary()
		// It may be that what killed the run killed the generator too.
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return s, err
	case <-hung.C:
		g.Kill()
		<-g.Done()
		return nil, fmt.Errorf("%s had not ended after %v and was killed", g.Name(), g.bound)
	case <-ctx.Done():
		_ = g.Stop(loadGrace) // its summary, or the lack of it, tells
		s, _ := g.summary()
		return s, context.Cause(ctx)
	}
}

// summary reads what an ended generator printed. Its exit status may tell of a
// result that is not valid, so that a summary counts more than a status.
func (g *generator) summary() (*load.Summary, error) {
	var s load.Summary
	err := json.Unmarshal(g.out.Bytes(), &s)
	switch {
	case err == nil && s.Schema == load.SummarySchema:
		return &s, nil
	case g.Exit() != nil:
		return nil, g.Exit()
	case err == nil:
		err = fmt.Errorf("its schema is %q and not %q", s.Schema, load.SummarySchema)
	}
	return nil, fmt.Errorf("%s printed no summary: %w", g.Name(), err)
}
