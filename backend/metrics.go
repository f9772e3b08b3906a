package backend

import (
	"bytes"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"gatebench/clients"
	"gatebench/internal/process"
	"gatebench/server"
)

// metrics counts what the product endpoints do. /healthz and /metrics are not
// among them, so that looking changes nothing.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	ok       map[string]prometheus.Counter // requests of code 200, by route
	inFlight atomic.Int64
}

func newMetrics(routes []string, conns func() server.Conns, load func() (busy, queued int)) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatebench_backend_requests_total",
			Help: `Requests answered, by route and status; code 0 is none: a caller that went away first, or a fault that broke the answer.`,
		}, []string{"route", "code"}),
		ok: make(map[string]prometheus.Counter, len(routes)),
	}
	for _, r := range routes {
		m.ok[r] = m.requests.WithLabelValues(r, "200")
	}
	counter := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gatebench_backend_" + name, Help: help}, f)
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatebench_backend_" + name, Help: help}, f)
	}
	m.registry.MustRegister(
		m.requests,
		gauge("in_flight", "Requests arrived and not yet answered.",
			func() float64 { return float64(m.inFlight.Load()) }),
		counter("connections_opened_total", "Connections accepted.",
			func() float64 { return float64(conns().Opened) }),
		gauge("connections_live", "Connections open now.",
			func() float64 { return float64(conns().Live) }),
		gauge("connections_idle", "Connections open now and without a request.",
			func() float64 { return float64(conns().Idle) }),
		gauge("workers_busy", "Requests that hold a worker.",
			func() float64 { busy, _ := load(); return float64(busy) }),
		gauge("queue_length", "Requests that wait for a worker.",
			func() float64 { _, queued := load(); return float64(queued) }),
		process.NewCollector(),
	)
	return m
}

// count counts one answer; status 0 is none.
func (m *metrics) count(route string, status int) {
	if status == 200 {
		m.ok[route].Inc()
		return
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// response is a scrape in Prometheus' text format.
func (m *metrics) response() (*clients.Response, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return nil, fmt.Errorf("write metrics: %w", err)
		}
	}
	return clients.NewResponse(200, clients.Fields{{Name: "Content-Type", Value: string(format)}}, text.Bytes()), nil
}
