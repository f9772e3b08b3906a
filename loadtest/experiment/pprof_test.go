package experiment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/loadtest/experiment"
	"gatebench/loadtest/result"
)

// Every arm but the sentinel is profiled once, after all that is measured, and the
// result says where the profiles are.
func TestEveryArmIsProfiledAfterTheLastBlock(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := plan(2, arm("net/http", gatewayScript{}, backendScript{}), arm("b", gatewayScript{}, backendScript{}), arm("copy", gatewayScript{}, backendScript{}))
	p.Arms[2].SentinelOf = "net/http"
	p.Duet.Duration = 0 // the profile's load is shorter
	var phases []string
	out := t.TempDir()
	doc, err := experiment.Run(t.Context(), p, experiment.Options{Binary: exe, Out: out, Env: []string{raceEnd}, Host: machine(0), Pprof: "heap", Progress: func(e experiment.Event) {
		if n := len(phases); n == 0 || phases[n-1] != e.Phase {
			phases = append(phases, e.Phase)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	leftNothing(t, out)
	want := []result.Pprof{{Arm: "net/http", Kind: "heap", File: "pprof/0-net_http.heap.pprof"}, {Arm: "b", Kind: "heap", File: "pprof/1-b.heap.pprof"}}
	if diff := cmp.Diff(want, doc.Pprof); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, pr := range doc.Pprof {
		content, err := os.ReadFile(filepath.Join(out, pr.File))
		if err != nil || !strings.HasPrefix(string(content), "heap of ") || !strings.Contains(string(content), []string{"0-net_http", "1-b"}[i]) {
			t.Errorf("%s: %s, %v", pr.File, content, err)
		}
	}
	if diff := cmp.Diff([]string{"ceiling", "solo", "pprof", ""}, phases); diff != "" {
		t.Errorf("phases: -want +got:\n%s", diff)
	}
	if len(doc.Trials) != 6 {
		t.Errorf("%d trials: what is profiled counts as measured", len(doc.Trials))
	}
}
