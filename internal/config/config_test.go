package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/backend"
	"gatebench/configs"
	"gatebench/gateway"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/experiment"
	"gatebench/loadtest/load"
)

var update = flag.Bool("update", false, "write what the golden cases give now")

var clients = []string{"net/http", "resty", "retryablehttp", "fasthttp"}

// TestCases loads each YAML file of testdata/cases, under the environment in the
// .env file beside it if there is one. The .want file has what comes of it: the
// errors, or the values that are not defaults and the plan.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			vars, err := os.ReadFile(name + ".env")
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(outcome(file, strings.Fields(string(vars))), file, filepath.Base(file))
			if *update {
				if err := os.WriteFile(name+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func outcome(file string, environ []string) string {
	c, err := Load(file, Options{Clients: clients, Environ: environ})
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for v := range c.Values() {
		if v.Origin != "default" {
			fmt.Fprintf(&b, "%-40s %-20s %s\n", v.Path, v.Text, v.Origin)
		}
	}
	p := c.Plan
	fmt.Fprintf(&b, "\nplan %s: %d blocks from seed %d in %v, duet %+v\n", p.Name, p.Blocks, p.Seed, p.Budget, p.Duet)
	for _, pr := range p.Profiles {
		fmt.Fprintf(&b, "profile %s: %+v\n", pr.Name, pr.Profile)
	}
	for _, t := range c.Thresholds {
		fmt.Fprintf(&b, "threshold %+v\n", t)
	}
	for _, a := range p.Arms {
		fmt.Fprintf(&b, "arm %q: client %s, server %s, sentinel of %q\n", a.Name, a.Client, a.Server, a.SentinelOf)
	}
	return b.String()
}

// Nothing written is the documented default of everything.
func TestDefaults(t *testing.T) {
	c, err := Defaults(Options{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gateway.DefaultConfig(), c.Gateway); diff != "" {
		t.Errorf("gateway: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(backend.DefaultConfig(), c.Backend); diff != "" {
		t.Errorf("backend: -want +got:\n%s", diff)
	}
	p := c.Plan
	var arms []string
	for _, a := range p.Arms {
		arms = append(arms, a.Name)
	}
	if want := append(clients[:4:4], "net/http (sentinel)"); !cmp.Equal(arms, want) {
		t.Errorf("arms %v, want %v", arms, want)
	}
	if s := p.Arms[4]; s.SentinelOf != "net/http" || string(s.Gateway) != string(p.Arms[0].Gateway) || string(s.Backend) != string(p.Arms[0].Backend) {
		t.Errorf("the sentinel is no copy of the baseline: %+v", s)
	}
	if p.Blocks != 10 || p.Seed != 42 || p.Budget != 30*time.Minute {
		t.Errorf("%d blocks, seed %d, budget %v", p.Blocks, p.Seed, p.Budget)
	}
	if want := (experiment.Profile{Name: "steady", Profile: steady()}); len(p.Profiles) != 1 || !cmp.Equal(p.Profiles[0], want) {
		t.Errorf("profiles %+v, want %+v", p.Profiles, want)
	}
	for v := range c.Values() {
		if v.Origin != "default" {
			t.Errorf("%s has the origin %s", v.Path, v.Origin)
		}
	}
}

var armsOf = map[string][]string{
	"quick":    {"net/http", "resty", "retryablehttp", "fasthttp", "net/http (sentinel)"},
	"standard": {"net/http", "resty", "retryablehttp", "fasthttp", "floor", "net/http (sentinel)"},
}

func names(arms []experiment.Arm) (ns []string) {
	for _, a := range arms {
		ns = append(ns, a.Name)
	}
	return ns
}

// The first arm with the floor's client is the floor, what it is called; a copy of it
// is none.
func TestOneArmIsTheFloor(t *testing.T) {
	src := "experiment: {arms: [{client: floor, name: nobody}, {client: net/http}, {client: floor, server: fasthttp}]}"
	d, err := strictyaml.Parse("f.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	c, err := decode("f", d, Options{Clients: clients, Floor: "floor"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, false} {
		if a := c.Plan.Arms[i]; a.Floor != want {
			t.Errorf("%s: floor %t", a.Name, a.Floor)
		}
	}
	if _, err := decode("f", d, Options{Clients: clients}); err == nil {
		t.Error("a client that is not there was taken")
	}
}

// The bundled plans load, say what they are, and keep their promise on time.
func TestBundledPlans(t *testing.T) {
	if got, want := configs.Plans(), []string{"outage", "quick", "standard"}; !cmp.Equal(got, want) {
		t.Fatalf("plans %v, want %v", got, want)
	}
	for name, limit := range map[string]time.Duration{"quick": 200 * time.Second, "standard": 25 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			c, err := LoadPlan(name, Options{Clients: clients, Floor: "floor"})
			if err != nil {
				t.Fatal(err)
			}
			p := c.Plan
			if p.Name != name || !slices.Equal(names(p.Arms), armsOf[name]) || p.Arms[len(p.Arms)-1].SentinelOf != "net/http" || len(p.Profiles) != 1 {
				t.Errorf("%+v", p)
			}
			if planned := duration(p); planned > limit || planned > p.Budget {
				t.Errorf("takes about %v, beyond %v or its budget of %v", planned, limit, p.Budget)
			}
			for v := range c.Values() {
				if strings.HasPrefix(v.Origin, name+".yaml:") {
					return
				}
			}
			t.Errorf("no value comes from %s.yaml", name)
		})
	}
}

// The outage plan breaks every load, and compares the same policies for all clients.
func TestOutagePlan(t *testing.T) {
	c, err := LoadPlan("outage", Options{Clients: clients, Floor: "floor"})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Plan
	arms := map[string]int{}
	for _, a := range p.Arms {
		arms[a.Client]++
	}
	for _, client := range clients {
		if arms[client] != 3 {
			t.Errorf("%s has %d arms", client, arms[client])
		}
	}
	for _, pr := range p.Profiles {
		if len(pr.Faults) == 0 {
			t.Errorf("nothing goes wrong in %s", pr.Name)
		}
	}
	if planned := duration(p); planned > 12*time.Minute || planned > p.Budget {
		t.Errorf("takes about %v, beyond its budget of %v", planned, p.Budget)
	}
}

// duration is about how long a plan takes, with what starting and stopping cost
// in every trial and a pilot for each client.
func duration(p experiment.Plan) time.Duration {
	const duetOverhead, soloOverhead, pilot = 700 * time.Millisecond, 300 * time.Millisecond, 2300 * time.Millisecond
	block := p.Duet.Warmup + p.Duet.Duration + duetOverhead
	for _, pr := range p.Profiles {
		block += time.Duration(len(p.Arms)) * (pr.Warmup + pr.Duration + soloOverhead)
	}
	return time.Duration(p.Blocks)*block + time.Duration(len(p.Arms)-1)*pilot
}

// The commented example holds every key of gateway and backend, with its default.
func TestExampleHasEveryDefault(t *testing.T) {
	d, err := strictyaml.Parse("gateway.yaml", configs.Example())
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Version int            `yaml:"version"`
		Gateway gateway.Config `yaml:"gateway"`
		Backend backend.Config `yaml:"backend"`
	}
	vs, err := d.Decode(&example, strictyaml.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gateway.DefaultConfig(), example.Gateway); diff != "" {
		t.Errorf("gateway: -default +example:\n%s", diff)
	}
	if diff := cmp.Diff(backend.DefaultConfig(), example.Backend); diff != "" {
		t.Errorf("backend: -default +example:\n%s", diff)
	}
	for v := range vs.All() {
		if v.Origin == "default" {
			t.Errorf("the example lacks %s", v.Path)
		}
	}
}

// No two keys share a variable, although dots and underscores look alike there.
func TestEveryKeyHasAVariableOfItsOwn(t *testing.T) {
	f := defaults()
	paths := map[string]string{}
	for path, name := range (strictyaml.Environment{Prefix: EnvPrefix}).Names(&f) {
		if other, taken := paths[name]; taken {
			t.Errorf("%s stands for %s and %s", name, path, other)
		}
		paths[name] = path
	}
	for name, path := range map[string]string{
		"GATEBENCH_GATEWAY_LISTEN": "gateway.listen", "GATEBENCH_GATEWAY_UPSTREAM": "gateway.upstream",
		"GATEBENCH_GATEWAY_ADMIN_LISTEN": "gateway.admin.listen", "GATEBENCH_BACKEND_LISTEN": "backend.listen",
		"GATEBENCH_GATEWAY_POOL_MAX_CONNS": "gateway.pool.max_conns", "GATEBENCH_EXPERIMENT_DUET_DURATION": "experiment.duet.duration",
	} {
		if paths[name] != path {
			t.Errorf("%s stands for %q, want %s", name, paths[name], path)
		}
	}
}

// Every key that a variable can hold takes its own default back: what validate
// prints can be exported.
func TestVariablesTakeWhatValidatePrints(t *testing.T) {
	c, err := Defaults(Options{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	f := defaults()
	names := (strictyaml.Environment{Prefix: EnvPrefix}).Names(&f)
	var environ []string
	for v := range c.Values() {
		if name, ok := names[v.Path]; ok && v.Path != "experiment.profile" {
			text := strings.NewReplacer("[", "", "]", "", `"`, "").Replace(v.Text)
			environ = append(environ, name+"="+text)
		}
	}
	again, err := Defaults(Options{Clients: clients, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Gateway, c.Gateway) || !reflect.DeepEqual(again.Backend, c.Backend) {
		t.Errorf("gateway %+v, backend %+v", again.Gateway, again.Backend)
	}
	for v := range again.Values() {
		if name, ok := names[v.Path]; ok && v.Path != "experiment.profile" && v.Origin != "env "+name {
			t.Errorf("%s has the origin %s", v.Path, v.Origin)
		}
	}
}

const arms = `
gateway: {listen: "127.0.0.1:1", admin: {listen: "127.0.0.1:2"}, upstream: "https://example.org/base", tls: {server_name: s}, retry: {max_attempts: 3}, timeouts: {connect: 250ms}}
backend: {listen: "127.0.0.1:3", latency: 5ms}
experiment:
  seed: 18446744073709551615
  profile: closed
  arms:
    - {client: fasthttp, server: fasthttp, name: "fasthttp end to end"}
    - {name: as shipped, pool: {policy: library}, backend: {max_workers: 200, latency: 0s}}
    - {name: retrying, retry: {retry_on: ["5xx"], max_attempts: 5}}
profiles:
  closed: {executor: constant-vus, vus: 5, duration: 2s}
`

// What an arm's processes are given reads back as the arm: its own keys over the
// sections', nothing of their addresses, and nothing that is not in force.
func TestArmsBecomeFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, src []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, src, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := Load(write("mine.yaml", []byte(arms)), Options{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Plan.Arms) != 4 || c.Plan.Arms[3].Name != "fasthttp end to end (sentinel)" || c.Plan.Name != "mine" || c.Plan.Seed != 1<<64-1 {
		t.Fatalf("%+v", c.Plan)
	}
	wantGateway := func(change func(*gateway.Config)) gateway.Config {
		g := gateway.DefaultConfig()
		g.Retry.MaxAttempts, g.Timeouts.Connect = 3, 250*time.Millisecond
		change(&g)
		return g
	}
	slow := backend.DefaultConfig()
	slow.Latency = "5ms"
	bounded := backend.DefaultConfig()
	bounded.MaxWorkers = 200
	want := []struct {
		gateway gateway.Config
		backend backend.Config
	}{
		{wantGateway(func(g *gateway.Config) { g.Client, g.Server = "fasthttp", "fasthttp" }), slow},
		{wantGateway(func(g *gateway.Config) { g.Pool.Policy = "library" }), bounded},
		{wantGateway(func(g *gateway.Config) { g.Retry.MaxAttempts, g.Retry.RetryOn = 5, []string{"5xx"} }), slow},
	}
	for i, w := range want {
		a := c.Plan.Arms[i]
		g, err := Load(write("gateway.yaml", a.Gateway), Options{Clients: clients})
		if err != nil {
			t.Fatalf("%s: %v\n%s", a.Name, err, a.Gateway)
		}
		if diff := cmp.Diff(w.gateway, g.Gateway); diff != "" {
			t.Errorf("%s: -want +got:\n%s", a.Name, diff)
		}
		b, err := Load(write("backend.yaml", a.Backend), Options{Clients: clients})
		if err != nil {
			t.Fatalf("%s: %v\n%s", a.Name, err, a.Backend)
		}
		if diff := cmp.Diff(w.backend, b.Backend); diff != "" {
			t.Errorf("%s: -want +got:\n%s", a.Name, diff)
		}
		if text := string(a.Gateway) + string(a.Backend); strings.Contains(text, "listen") || strings.Contains(text, "example.org") {
			t.Errorf("%s: an address is given:\n%s", a.Name, text)
		}
	}
	var doc struct {
		Experiment struct {
			Profiles []string
			Seed     json.Number
		}
		Profiles map[string]map[string]any
		Arms     []struct {
			Name    string
			Gateway struct {
				Pool    map[string]any
				Retry   map[string]any
				Listen  *string
				Timeout map[string]string
			}
			Backend map[string]any
		}
	}
	if err := json.Unmarshal(c.Plan.Config, &doc); err != nil {
		t.Fatalf("%v in %s", err, c.Plan.Config)
	}
	if len(doc.Arms) != 3 || !cmp.Equal(doc.Arms[1].Gateway.Pool, map[string]any{"policy": "library"}) || doc.Arms[0].Gateway.Listen != nil ||
		doc.Arms[0].Backend["latency"] != "5ms" || doc.Arms[2].Gateway.Retry["max_attempts"] != 5.0 ||
		!cmp.Equal(doc.Experiment.Profiles, []string{"closed"}) || doc.Profiles["closed"]["vus"] != 5.0 || doc.Experiment.Seed != "18446744073709551615" {
		t.Errorf("%s", c.Plan.Config)
	}
}

func TestLoadPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"quick", "mine.yaml", "plan"} { // a file cannot shadow a plan
		if err := os.WriteFile(name, []byte("experiment: {blocks: 3}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, blocks := range map[string]int{"quick": 8, "./quick": 3, "mine.yaml": 3, "plan": 3} {
		c, err := LoadPlan(name, Options{Clients: clients})
		if err != nil || c.Plan.Blocks != blocks {
			t.Errorf("%s: %v, want %d blocks", name, err, blocks)
		}
	}
	for name, want := range map[string]string{
		"quik":      "quik: there is neither a plan nor a file of this name; the plans are outage, quick, standard\nhint: did you mean quick?",
		"all":       "all: there is neither a plan nor a file of this name; the plans are outage, quick, standard",
		"none.yaml": "none.yaml: there is no such file",
		"no/quick":  "no/quick: there is no such file",
		".":         ".: is a directory, not a file",
	} {
		if _, err := LoadPlan(name, Options{Clients: clients}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// The client's name is the caller's business: no list of them is kept here.
func TestClientsAreTheCallers(t *testing.T) {
	_, err := Defaults(Options{Clients: []string{"net/http", "mine"}, Environ: []string{"GATEBENCH_GATEWAY_CLIENT=mine"}})
	if err != nil {
		t.Error(err)
	}
	_, err = Defaults(Options{Clients: []string{"net/http"}, Environ: []string{"GATEBENCH_GATEWAY_CLIENT=resty"}})
	if want := `GATEBENCH_GATEWAY_CLIENT: gateway.client: "resty" is not a client; the clients are net/http`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSteadyIsValid(t *testing.T) {
	if err := steady().Validate(); err != nil {
		t.Error(err)
	}
	if p := steady(); p.Timeout != load.DefaultProfile().Timeout {
		t.Errorf("timeout %v", p.Timeout)
	}
}

// Whatever the file says: no panic, every fault in words, and what loads has arms
// whose files load.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		load := func(src []byte) (*Config, error) {
			d, err := strictyaml.Parse("f.yaml", src)
			if err != nil {
				return nil, err
			}
			return decode("f", d, Options{Clients: clients})
		}
		c, err := load(src)
		if err != nil {
			if len(strictyaml.Errors(err)) == 0 {
				t.Errorf("an error of another type: %v", err)
			}
			return
		}
		for _, a := range c.Plan.Arms {
			for _, file := range [][]byte{a.Gateway, a.Backend} {
				if _, err := load(file); err != nil {
					t.Errorf("%s: %v\nin\n%s", a.Name, err, file)
				}
			}
		}
		if !json.Valid(c.Plan.Config) {
			t.Errorf("no JSON: %s", c.Plan.Config)
		}
	})
}

// What the backend is told and the result keeps has the keys that were written, and
// no load without a backend takes faults.
func TestFaultsOfAProfile(t *testing.T) {
	c, err := Load("testdata/cases/faults.yaml", Options{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	fs := c.Plan.Profiles[0].Faults
	if len(fs) != 2 || fs[0].What != "backend status 503 for 5% of requests" || fs[1].What != "wire latency 20ms" || fs[1].Backend != nil {
		t.Errorf("got %+v", fs)
	}
	if got := string(fs[0].Backend); got != `{"status":503,"share":"5%"}` {
		t.Errorf("the backend is told %s", got)
	}
	if got := string(c.Plan.Config); !strings.Contains(got, `"faults":[{"at":"1s","for":"5s","backend":{"status":503,"share":"5%"}`) {
		t.Errorf("the effective configuration is %s", got)
	}
	if _, err := c.Profile("p"); err == nil || !strings.Contains(err.Error(), "gatebench run") {
		t.Errorf("a load alone with faults: %v", err)
	}
}
