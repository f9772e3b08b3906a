package report

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhyNamesWhatGoesWithAClaim(t *testing.T) {
	d := made(8, 0.01, map[string]float64{"resty": 1.2, "fasthttp": 0.5})
	for i := range d.Trials {
		d.Trials[i].Metrics["goroutines"] = 40 // the same for all
	}
	d.Config = json.RawMessage(`{"arms": [
		{"name": "net/http", "gateway": {"client": "net/http", "pool": {"max_conns": 256}}, "backend": {}},
		{"name": "resty", "gateway": {"client": "resty", "pool": {"max_conns": 256}}, "backend": {"max_workers": 200}},
		{"name": "fasthttp", "gateway": {"client": "fasthttp", "pool": {"max_conns": 8}}, "backend": {}}]}`)
	Conclude(d)
	why := Summarize(d).Why
	if len(why) == 0 || why[0].Arm != "resty" {
		t.Fatalf("%+v", why)
	}
	got := why[0].sentence()
	for _, part := range []string{
		"resty +2", "in gateway CPU per request: with it go", "allocations per request +20 %", "upstream connections opened +20 %",
		"not shown to differ: gateway peak memory, goroutines.",
		`Configured apart in backend.max_workers (200, baseline not set), gateway.client ("resty", baseline "net/http").`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if strings.Contains(got, "max_conns") || strings.Contains(got, "response time") {
		t.Errorf("what is alike, or an effect, stands there as a cause:\n%s", got)
	}
	for _, e := range why {
		if e.Arm == "retryablehttp" || strings.Contains(e.Arm, "sentinel") {
			t.Errorf("nothing is claimed of %s, and it is explained", e.Arm)
		}
	}
}

func TestNothingClaimedNeedsNoWhy(t *testing.T) {
	d := made(20, 0.004, nil)
	Conclude(d)
	if why := Summarize(d).Why; len(why) != 0 {
		t.Errorf("%+v", why)
	}
}
