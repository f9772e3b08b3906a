package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gatebench/loadtest/result"
)

// Difference is one key that two runs give different values. A value is as JSON has
// it; "" is a key that is not there.
type Difference struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

func (d Difference) String() string {
	show := func(s string) string {
		if s == "" {
			return "(not there)"
		}
		return s
	}
	return fmt.Sprintf("%s: %s in the old result, %s in the new", d.Key, show(d.Old), show(d.New))
}

// NotComparable is why two results must not be compared: they did not ask the same.
type NotComparable struct{ Differences []Difference }

func (e *NotComparable) Error() string {
	lines := []string{"the two results are not comparable, they were configured differently:"}
	for _, d := range e.Differences {
		lines = append(lines, "  "+d.String())
	}
	return strings.Join(lines, "\n")
}

// alike refuses runs that did not measure the same arms under the same load. How
// many blocks, from which seed, in what budget and against which thresholds may
// differ: that changes how sure a figure is, not what it means.
func alike(old, latest *result.Document) error {
	if ds := differentArms(old, latest); len(ds) > 0 {
		return &NotComparable{ds}
	}
	ds := differences(flatten(old.Config), flatten(latest.Config))
	ds = slices.DeleteFunc(ds, func(d Difference) bool {
		return slices.ContainsFunc([]string{"experiment.blocks", "experiment.precision", "experiment.seed", "experiment.budget", "thresholds"}, func(free string) bool {
			return d.Key == free || strings.HasPrefix(d.Key, free+".")
		})
	})
	if len(ds) > 0 {
		return &NotComparable{ds}
	}
	return nil
}

// differentArms compares the arms by name; the first must be the same, because
// everything is a ratio to it. Where they differ their keys are not listed too.
func differentArms(old, latest *result.Document) []Difference {
	arms := func(d *result.Document) map[string]string {
		m := map[string]string{}
		for i, a := range d.Arms {
			m["arm "+a.Name] = fmt.Sprintf("client %s, server %s", a.Client, a.Server)
			if i == 0 {
				m["baseline"] = a.Name
			}
		}
		return m
	}
	return differences(arms(old), arms(latest))
}

func differences(old, latest map[string]string) []Difference {
	var ds []Difference
	for key, was := range old {
		if is := latest[key]; is != was {
			ds = append(ds, Difference{key, was, is})
		}
	}
	for key, is := range latest {
		if _, there := old[key]; !there && is != "" {
			ds = append(ds, Difference{key, "", is})
		}
	}
	slices.SortFunc(ds, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return ds
}

// flatten gives every value of a JSON document by its path. An entry of a list that
// has a name goes by it, so that the order of arms is no difference.
func flatten(document json.RawMessage) map[string]string {
	leaves := map[string]string{}
	var root any
	if len(document) == 0 || json.Unmarshal(document, &root) != nil {
		return leaves
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				walk(strings.TrimPrefix(path+"."+key, "."), value)
			}
		case []any:
			for i, value := range v {
				at := fmt.Sprintf("%s[%d]", path, i)
				if entry, ok := value.(map[string]any); ok {
					if name, ok := entry["name"].(string); ok {
						at = path + "." + name
					}
				}
				walk(at, value)
			}
		default:
			b, err := json.Marshal(v)
			if err == nil {
				leaves[path] = string(b)
			}
		}
	}
	walk("", root)
	return leaves
}

// versions lists what the gateways said of their libraries, and of themselves, and
// now say otherwise.
func versions(old, latest *result.Document) []Difference {
	ds := []Difference{}
	for _, a := range old.Arms {
		if a.SentinelOf != "" {
			continue
		}
		was, is := flatten(old.About[a.Name]), flatten(latest.About[a.Name])
		for _, d := range differences(was, is) {
			if d.Key == "go" || d.Key == "version" || strings.HasSuffix(d.Key, ".version") {
				d.Key = a.Name + ": " + d.Key
				ds = append(ds, d)
			}
		}
	}
	return ds
}

// rateApart is how much two pilots may differ before it is worth a word: a share of
// saturation is another load on another day.
const rateApart = 0.10

// unlike are differences between the runs that forbid nothing, since every arm is
// held against a baseline that met them too.
func unlike(old, latest *result.Document) []string {
	ws := []string{}
	add := func(what, was, is string) {
		if was != is {
			ws = append(ws, fmt.Sprintf("%s: %s in the old run, %s in the new", what, was, is))
		}
	}
	o, n := old.Machine, latest.Machine
	add("system", o.OS+" "+o.Arch, n.OS+" "+n.Arch)
	add("processor", o.CPU, n.CPU)
	add("cores", fmt.Sprint(o.Cores), fmt.Sprint(n.Cores))
	add("placement", o.PinnedTo, n.PinnedTo)
	for _, run := range []struct {
		which string
		doc   *result.Document
	}{{"old", old}, {"new", latest}} {
		if run.doc.Interrupted {
			ws = append(ws, "the "+run.which+" run was interrupted")
		}
	}
	if old.Pilot == nil || latest.Pilot == nil {
		return ws
	}
	for _, profile := range slices.Sorted(maps.Keys(old.Pilot.Rates)) {
		was, is := old.Pilot.Rates[profile], latest.Pilot.Rates[profile]
		if was > 0 && is > 0 && math.Abs(math.Log(is/was)) > math.Log1p(rateApart) {
			add("rate of profile "+profile, figure(was)+"/s", figure(is)+"/s")
		}
	}
	return ws
}
