package server

import (
	"slices"
	"testing"
)

// A rule is one thing that the contract asks of both servers. What a library
// cannot do is declared in Deviations under the rule's name, and then has to
// fail: an upgrade that cures it turns the test red.
type rule struct {
	name string
	want string
	test func(*check)
}

func rules() []rule {
	return slices.Concat(requestRules(), bodyRules(), refusalRules(), responseRules(), endingRules(), beyondRules(), connectionRules())
}

func TestServersKeepTheContract(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			declared := map[string]string{}
			for _, d := range Deviations(kind) {
				declared[d.Name] = d.Reason
			}
			for _, r := range rules() {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					c := &check{kind: kind, cfg: config(kind)}
					failures := c.run(r.test)
					reason, deviates := declared[r.name]
					switch {
					case deviates && len(failures) == 0:
						t.Errorf("%s\nis declared a deviation (%s), but holds", r.want, reason)
					case deviates:
						t.Logf("declared: %s\n%s", reason, failures[0])
					default:
						for _, f := range failures {
							t.Errorf("%s\n%s", r.want, f)
						}
					}
				})
			}
		})
	}
}

func TestDeviationsBearTheNamesOfRules(t *testing.T) {
	var names []string
	for _, r := range rules() {
		if slices.Contains(names, r.name) {
			t.Errorf("two rules are named %q", r.name)
		}
		names = append(names, r.name)
	}
	for _, kind := range Kinds() {
		for _, d := range Deviations(kind) {
			if !slices.Contains(names, d.Name) {
				t.Errorf("%s declares %q, which is no rule", kind, d.Name)
			}
		}
	}
}
