package experiment

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
	"gatebench/loadtest/load"
)

// What a profile has must reach the generator: all of it.
func TestProfilesReachTheGeneratorWhole(t *testing.T) {
	var objective load.Objective = map[string]load.Bound{}
	if err := objective.Parse("p99 < 50ms"); err != nil {
		t.Fatal(err)
	}
	whole := load.Profile{
		Executor: load.MaxRateSearch, VUs: 7, RampUp: time.Second, Start: load.Level{Users: 3},
		Stages:     []load.Stage{{Duration: time.Second, Target: load.Level{Users: 9}}, {Target: load.Level{Rate: conf.Rate{PerSecond: 12.5}}}},
		Iterations: 5, Rate: conf.Rate{PerSecond: 1234}, Arrivals: load.Poisson, Objective: objective,
		Duration: 2 * time.Second, Warmup: 3 * time.Second, ThinkTime: 4 * time.Second, ThinkDistribution: load.Exponential,
		Timeout: 6 * time.Second, GracefulStop: 8 * time.Second, KeepAlive: true, Seed: 99,
		Requests: []load.Request{
			{Name: "one: two", Weight: 3, Post: "/p?x=1", JSON: json.RawMessage(`{"a":[1,"b"]}`), Headers: map[string]string{"X-A": "b: c"}, Data: "names.csv"},
			{Upload: "file.bin", To: "/u", Expect: load.Expect{Status: 201, Headers: map[string]string{"X-B": "c"}, Contains: "yes", SHA256: strings.Repeat("ab", 32)}},
		},
	}
	for i := range reflect.TypeFor[load.Profile]().NumField() {
		if f := reflect.ValueOf(whole).Field(i); f.IsZero() {
			t.Errorf("the case leaves %s out", reflect.TypeFor[load.Profile]().Field(i).Name)
		}
	}
	fs, err := newProfileFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Profile{{Name: "all of it", Profile: whole}, {Name: "all-of-it", Profile: load.DefaultProfile()}} {
		path, err := fs.write(p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.Profile, readBack(t, path, p.Name), cmp.AllowUnexported(load.Bound{})); diff != "" {
			b, _ := os.ReadFile(path)
			t.Errorf("-written +read:\n%s\n%s", diff, b)
		}
	}
	for range 2 { // a profile that changed is read as it is now
		whole.VUs++
		path, err := fs.write(Profile{Name: "all of it", Profile: whole})
		if err != nil {
			t.Fatal(err)
		}
		if got := readBack(t, path, "all of it").VUs; got != whole.VUs {
			t.Errorf("%d users were read, want %d", got, whole.VUs)
		}
	}
}

func readBack(t *testing.T, path, name string) load.Profile {
	t.Helper()
	d, err := strictyaml.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Profiles map[string]strictyaml.Overlay `yaml:"profiles"`
	}
	if _, err := d.Decode(&file, strictyaml.Environment{}); err != nil {
		t.Fatal(err)
	}
	p := load.DefaultProfile()
	if _, err := file.Profiles[name].Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}
