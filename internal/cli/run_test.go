package cli

import "testing"

func TestCommandLineRepeatsTheCommand(t *testing.T) {
	for _, c := range []struct {
		environ, args []string
		want          string
	}{
		{nil, []string{"run", "quick", "--out", "out/quick"}, "gatebench run quick --out out/quick"},
		{nil, []string{"run", "my plan.yaml"}, "gatebench run 'my plan.yaml'"},
		{nil, []string{"run", "it's"}, `gatebench run 'it'\''s'`},
		{nil, []string{""}, "gatebench ''"},
		{
			[]string{"HOME=/home/x", "GATEBENCH_EXPERIMENT_BLOCKS=2", "GATEBENCH_GATEWAY_RETRY_RETRY_ON=connect reset"},
			[]string{"run", "quick"},
			"GATEBENCH_EXPERIMENT_BLOCKS=2 GATEBENCH_GATEWAY_RETRY_RETRY_ON='connect reset' gatebench run quick",
		},
	} {
		w := &world{environ: c.environ}
		if got := w.commandLine(c.args...); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
