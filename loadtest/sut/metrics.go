package sut

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is what a server says of itself at one moment, by name.
type Metrics map[string]*dto.MetricFamily

// Scrape reads a server's metrics in Prometheus' text format.
func (s *Server) Scrape(ctx context.Context, path string) (Metrics, error) {
	body, err := s.Fetch(ctx, path)
	if err != nil {
		return nil, err
	}
	m, err := ParseMetrics(body)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", s.name, err)
	}
	return m, nil
}

// ParseMetrics reads Prometheus' text format.
func ParseMetrics(text []byte) (Metrics, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	return p.TextToMetricFamilies(bytes.NewReader(text))
}

// Sum adds the series of a counter or a gauge over all their labels; ok is false
// where there is none. A counter with labels has no series before it first counts.
func (m Metrics) Sum(name string) (sum float64, ok bool) {
	for _, series := range m[name].GetMetric() {
		if v, is := value(series); is {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// value is that of a counter, a gauge, or a series that does not say which it is.
func value(series *dto.Metric) (v float64, ok bool) {
	switch {
	case series.Counter != nil:
		return series.Counter.GetValue(), true
	case series.Gauge != nil:
		return series.Gauge.GetValue(), true
	case series.Untyped != nil:
		return series.Untyped.GetValue(), true
	}
	return 0, false
}

// By adds the series of a counter or a gauge that have the same value of a label;
// those without the label stand under "".
func (m Metrics) By(name, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, series := range m[name].GetMetric() {
		of := ""
		for _, l := range series.GetLabel() {
			if l.GetName() == label {
				of = l.GetValue()
			}
		}
		if v, ok := value(series); ok {
			sums[of] += v
		}
	}
	return sums
}
