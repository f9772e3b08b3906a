package doctor

import (
	"strings"
	"testing"
)

// sound is a machine without a fault.
func sound() Facts {
	return Facts{
		Cores: 4, Quota: new(0.0), Descriptors: new(uint64(65536)), Ports: new(28232), TimeWait: new(10),
		MemoryFree: new(uint64(8 << 30)), Load: new(0.1), Steal: new(0.0), Busy: new(0.004),
		Others: []Process{{1, "init", .001}}, Clock: "tsc", Governor: "performance",
		Taken: map[string]string{"127.0.0.1:8080": ""},
	}
}

func warnings(f Facts) (names []string) {
	for _, found := range Examine(f) {
		if found.Warn {
			names = append(names, found.Name)
		}
		if found.Warn != (found.Cure != "") {
			names = append(names, found.Name+" without a cure, or a cure without a warning")
		}
	}
	return names
}

func TestExamine(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Facts)
		want  string
	}{
		"nothing":               {func(*Facts) {}, ""},
		"one core":              {func(f *Facts) { f.Cores = 1 }, "cores"},
		"half a core":           {func(f *Facts) { f.Quota = new(0.5) }, "cpu quota"},
		"a quota of every core": {func(f *Facts) { f.Quota = new(4.0) }, ""},
		"load":                  {func(f *Facts) { f.Load = new(2.1) }, "load average"},
		"steal":                 {func(f *Facts) { f.Steal = new(0.02) }, "steal"},
		"a neighbour":           {func(f *Facts) { f.Busy, f.Others = new(0.25), []Process{{7, "cc1", 1}} }, "other processes"},
		"a slow clock":          {func(f *Facts) { f.Clock = "hpet" }, "clock source"},
		"saving power":          {func(f *Facts) { f.Governor = "powersave" }, "frequency governor"},
		"a virtual machine":     {func(f *Facts) { f.Governor = "" }, ""},
		"little memory":         {func(f *Facts) { f.MemoryFree = new(uint64(100 << 20)) }, "free memory"},
		"few descriptors":       {func(f *Facts) { f.Descriptors = new(uint64(1024)) }, "open files limit"},
		"few ports":             {func(f *Facts) { f.Ports = new(1000) }, "local ports"},
		"ports that wait":       {func(f *Facts) { f.TimeWait = new(20000) }, "ports in TIME_WAIT"},
		"an address taken":      {func(f *Facts) { f.Taken["127.0.0.1:8081"] = "taken" }, "127.0.0.1:8081"},
		"everything unknown":    {func(f *Facts) { *f = Facts{Cores: 2} }, ""},
	} {
		f := sound()
		c.spoil(&f)
		if got := strings.Join(warnings(f), ", "); got != c.want {
			t.Errorf("%s: warns of %q, want %q", name, got, c.want)
		}
	}
}

func TestBusyProcessesAreNamedBusiestFirst(t *testing.T) {
	f := sound()
	f.Busy = new(0.5)
	f.Others = []Process{{3, "idle", .001}, {1, "small", .02}, {2, "large", .9}}
	want := "50.0 % of the machine: large (2) 90.0 % of a core, small (1) 2.0 % of a core"
	if got := f.others().Value; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
