package config

import (
	"maps"
	"slices"

	"gatebench/internal/strictyaml"
	"gatebench/loadtest/result"
	"gatebench/loadtest/threshold"
)

// readThresholds reads every threshold that decoded is not about already, and
// refuses one on a figure that the plan does not measure: it would never be kept.
func (d *document) readThresholds(decoded error) ([]threshold.Threshold, error) {
	var ts []threshold.Threshold
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(d.file.Thresholds)) {
		path := "thresholds." + name
		if faulty(decoded, path) {
			continue
		}
		t, err := threshold.Parse(name, d.file.Thresholds[name])
		if err != nil {
			errs = append(errs, d.values.Fault(path, "", "%v", err))
			continue
		}
		m, _ := result.MetricNamed(t.Metric)
		switch {
		case m.Phase == result.Duet && d.file.Experiment.Duet.Duration == 0:
			errs = append(errs, d.values.Fault(path, "give experiment.duet a duration", "is measured in the duet, which is left out"))
		case m.Phase == result.Solo && len(d.chosenProfiles()) == 0:
			errs = append(errs, d.values.Fault(path, "name a profile under experiment.profiles", "is measured under a profile, and the experiment has none"))
		}
		ts = append(ts, t)
	}
	return ts, strictyaml.Join(errs...)
}
