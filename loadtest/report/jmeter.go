package report

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// JMeter writes the solo trials as JMeter's aggregate report: its columns in its
// order, as its "Save Table Data" writes them, times in milliseconds. A row is an
// arm under a profile.
//
// Samples are added up and the average is over all of them; Min and Max are of all
// blocks. The median and the lines are medians over blocks of each trial's own,
// because percentiles cannot be averaged; for the same reason, and because
// different arms do not make one population, there is no TOTAL row.
func JMeter(w io.Writer, doc *result.Document) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"Label", "# Samples", "Average", "Median", "90% Line", "95% Line", "99% Line", "Min", "Max", "Error %", "Throughput", "Received KB/sec"})
	for _, profile := range profiles(doc, result.Solo) {
		for _, a := range doc.Arms {
			if err := out.Write(aggregate(doc, a.Name, profile)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// aggregate is one row; empty cells were not measured.
func aggregate(doc *result.Document, arm, profile string) []string {
	var samples, errors int64
	sum, averaged := 0.0, int64(0)
	byMetric := map[string][]float64{}
	for _, t := range doc.Trials {
		if t.Arm != arm || t.Profile != profile || t.Phase != result.Solo || !t.Valid {
			continue
		}
		samples, errors = samples+t.Requests, errors+t.Errors
		if mean, ok := t.Metrics["response_time_mean"]; ok {
			sum, averaged = sum+mean*float64(t.Requests), averaged+t.Requests
		}
		for name, v := range t.Metrics {
			byMetric[name] = append(byMetric[name], v)
		}
	}
	typical := func(metric string, scale float64) string {
		m, ok := stats.Median(byMetric[metric])
		if !ok {
			return ""
		}
		return jmeterNumber(m / scale)
	}
	extreme := func(metric string, of func([]float64) float64) string {
		if len(byMetric[metric]) == 0 {
			return ""
		}
		return jmeterNumber(of(byMetric[metric]))
	}
	average, failed := "", ""
	if averaged > 0 {
		average = jmeterNumber(sum / float64(averaged))
	}
	if samples > 0 {
		failed = jmeterNumber(100*float64(errors)/float64(samples)) + "%"
	}
	return []string{
		result.CSVText(arm + " [" + profile + "]"), strconv.FormatInt(samples, 10), average,
		typical("response_time_p50", 1), typical("response_time_p90", 1), typical("response_time_p95", 1), typical("response_time_p99", 1),
		extreme("response_time_min", slices.Min[[]float64]), extreme("response_time_max", slices.Max[[]float64]),
		failed, typical("throughput", 1), typical("received_bytes_per_second", 1024),
	}
}

// jmeterNumber has three decimals: JMeter's whole milliseconds are too coarse for
// a gateway on loopback.
func jmeterNumber(x float64) string {
	return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64)
}
