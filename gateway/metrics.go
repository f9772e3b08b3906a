package gateway

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"gatebench/gateway/breaker"
	"gatebench/internal/process"
)

// A meter counts what the hop does. It costs a few atomic additions per request;
// names and labels come in when it is read.
type meter struct {
	inFlight atomic.Int64
	attempts atomic.Int64
	answered tally

	// Where requests spent their time, ns: until the response's head was there (or
	// it was clear that none would be), and from then on to their end.
	head, relay atomic.Int64
	// burned is CPU time that was wasted on purpose, ns.
	burned atomic.Int64
}

// tally counts exchanges by status and reason. Both come from small closed
// sets, so a table serves without a lock.
type tally struct {
	rows [1000]atomic.Pointer[[reasons]atomic.Int64] // by status, 0 for no answer
}

func (a *tally) add(status int, r reason) {
	row := a.rows[status].Load()
	if row == nil {
		a.rows[status].CompareAndSwap(nil, new([reasons]atomic.Int64))
		row = a.rows[status].Load()
	}
	row[r].Add(1)
}

// each calls f for every pair that has been counted.
func (a *tally) each(f func(status int, r reason, n int64)) {
	for status := range a.rows {
		row := a.rows[status].Load()
		if row == nil {
			continue
		}
		for r := range row {
			if n := row[r].Load(); n > 0 {
				f(status, reason(r), n)
			}
		}
	}
}

// A collector reads a gateway's counters for Prometheus.
type collector struct {
	ledger *ledger

	requests, inFlight, attempts *prometheus.Desc
	spent                        *prometheus.Desc
	opened, open, inUse, pending *prometheus.Desc
	state, transitions           *prometheus.Desc
	reloads, burned              *prometheus.Desc
}

func newCollector(l *ledger) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gatebench_gateway_"+name, help, labels, nil)
	}
	return &collector{
		ledger:      l,
		requests:    desc("requests_total", "Requests by the status sent downstream and the reason if something went wrong. Code 0: nothing was sent.", "code", "reason"),
		inFlight:    desc("in_flight", "Requests being worked on."),
		attempts:    desc("upstream_attempts_total", "Tries on the wire, retries included."),
		spent:       desc("time_seconds_total", "Time that requests spent, by phase: waiting for a place in the pool, connecting (also aside, for later requests), until upstream's head without these two, relaying the response from there on.", "phase"),
		opened:      desc("upstream_connections_opened_total", "Connections to upstream opened."),
		open:        desc("upstream_connections_open", "Connections to upstream open."),
		inUse:       desc("upstream_connections_in_use", "Exchanges that hold a connection to upstream or are about to."),
		pending:     desc("pool_pending", "Requests that wait for a place in the pool."),
		state:       desc("breaker_state", "1 for the state that the breaker is in. An open breaker whose time is over stays open until the next request.", "state"),
		transitions: desc("breaker_transitions_total", "Changes of the breaker's state.", "from", "to"),
		burned:      desc("burned_seconds_total", "CPU time that was wasted on purpose (burn)."),
		reloads:     desc("config_reloads_total", "Configurations that were read while serving, by what became of them.", "outcome"),
	}
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.inFlight, c.attempts, c.spent, c.opened, c.open, c.inUse, c.pending, c.state, c.transitions, c.reloads, c.burned,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	l := c.ledger
	l.answered.each(func(status int, r reason, n int64) {
		counter(c.requests, n, strconv.Itoa(status), r.String())
	})
	inFlight := l.inFlight.Load()
	gauge(c.inFlight, inFlight)
	counter(c.attempts, l.attempts.Load())
	ch <- prometheus.MustNewConstMetric(c.burned, prometheus.CounterValue, time.Duration(l.burned.Load()).Seconds())
	counter(c.reloads, l.applied.Load(), "applied")
	counter(c.reloads, l.refused.Load(), "refused")
	sum, newest := l.read()
	c.collectTime(ch, sum)
	counter(c.opened, sum.opened)
	gauge(c.open, sum.open)
	if newest.gate == nil {
		sum.inUse = inFlight // nobody counts places: every request is with the library
	}
	gauge(c.inUse, sum.inUse)
	gauge(c.pending, sum.pending)
	if newest.breaker == nil {
		return
	}
	now := newest.breaker.State()
	for _, s := range breaker.States() {
		gauge(c.state, is(s == now), s.String())
	}
	for _, t := range breaker.Transitions() {
		counter(c.transitions, sum.transitions[t], t.From.String(), t.To.String())
	}
}

func (c *collector) collectTime(ch chan<- prometheus.Metric, sum totals) {
	for _, p := range []struct {
		phase string
		time.Duration
	}{
		{"pool_wait", sum.waited},
		{"connect", sum.connecting},
		{"upstream", max(0, time.Duration(c.ledger.head.Load())-sum.waited-sum.connecting)},
		{"relay", time.Duration(c.ledger.relay.Load())},
	} {
		ch <- prometheus.MustNewConstMetric(c.spent, prometheus.CounterValue, p.Seconds(), p.phase)
	}
}

func is(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// newRegistry returns a registry of this gateway's own, with the process's figures.
func newRegistry(c *collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(c, process.NewCollector())
	return r
}

// exposition writes what g gathers in Prometheus' text format.
func exposition(g prometheus.Gatherer) ([]byte, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// expositionType is the format's media type.
const expositionType = string(expfmt.FmtText)
