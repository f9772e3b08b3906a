package experiment

import (
	"context"
	"slices"
	"strings"

	"gatebench/loadtest/load"
	"gatebench/loadtest/result"
	"gatebench/loadtest/sut"
)

// What gateways and backends export.
const (
	gatewayRequests    = "gatebench_gateway_requests_total"
	gatewayAttempts    = "gatebench_gateway_upstream_attempts_total"
	gatewayConnections = "gatebench_gateway_upstream_connections_opened_total"
	gatewayTime        = "gatebench_gateway_time_seconds_total"
	gatewayTransitions = "gatebench_gateway_breaker_transitions_total"
	gatewayBreaker     = "gatebench_gateway_breaker_state"
	gatewayBurned      = "gatebench_gateway_burned_seconds_total"
	gatewayInFlight    = "gatebench_gateway_in_flight"
	backendRequests    = "gatebench_backend_requests_total"
	backendInFlight    = "gatebench_backend_in_flight"
	backendConnections = "gatebench_backend_connections_opened_total"

	processCPU        = "gatebench_process_cpu_seconds_total"
	processAllocs     = "gatebench_process_allocs_total"
	processAllocBytes = "gatebench_process_alloc_bytes_total"
	processGC         = "gatebench_process_gc_cycles_total"
	processGoroutines = "gatebench_process_goroutines"
)

// newTrial is a trial that has measured nothing yet.
func (r *run) newTrial(arm, block, position int, phase result.Phase, profile string) result.Trial {
	return result.Trial{
		Arm:          r.plan.Arms[arm].Name,
		Block:        block,
		Phase:        phase,
		Profile:      profile,
		Position:     position,
		Valid:        true,
		ErrorClasses: map[string]int64{},
		Metrics:      map[string]float64{},
	}
}

// void marks a trial as one that must not be compared. The first reason stays.
func void(t *result.Trial, reason string) {
	if t.Valid {
		t.Valid, t.VoidReason = false, reason
	}
}

// cutShort voids a trial that err ended, whatever else is wrong with it.
func cutShort(ctx context.Context, t *result.Trial, err error) {
	t.Valid, t.VoidReason = false, err.Error()
	if ctx.Err() != nil {
		t.VoidReason = "interrupted"
	}
}

// count takes over what the generator counted; s may be nil.
func count(t *result.Trial, s *load.Summary) {
	if s == nil {
		return
	}
	t.Requests, t.Errors = s.Requests.Sent, s.Requests.Failed
	for class, n := range s.Errors {
		if n > 0 {
			t.ErrorClasses[class] = n
		}
	}
	if s.Requests.Sent == 0 {
		void(t, "no request was sent")
	}
	if s.Interrupted {
		void(t, "the load was interrupted")
	}
}

// perRequest gives what a gateway used per request between two scrapes. ok is
// false where it served none.
func perRequest(before, after sut.Metrics) (metrics map[string]float64, ok bool) {
	requests, _ := delta(before, after, gatewayRequests)
	if requests <= 0 {
		return nil, false
	}
	metrics = map[string]float64{}
	for _, m := range []struct {
		name, counter string
		unit          float64
	}{
		{"cpu_us_per_request", processCPU, 1e6},
		{"burned_us_per_request", gatewayBurned, 1e6},
		{"allocs_per_request", processAllocs, 1},
		{"alloc_bytes_per_request", processAllocBytes, 1},
		{"gc_cycles_per_1000_requests", processGC, 1000},
	} {
		if used, ok := delta(before, after, m.counter); ok && (used > 0 || m.counter != gatewayBurned) {
			metrics[m.name] = used * m.unit / requests
		}
	}
	return metrics, true
}

// fromGateway takes over what a gateway counted over its whole life, warm-up
// included: most connections are opened there.
func fromGateway(t *result.Trial, m sut.Metrics) {
	if opened, ok := m.Sum(gatewayConnections); ok {
		t.Metrics["connections_opened"] = opened
	}
	requests, _ := m.Sum(gatewayRequests)
	if attempts, ok := m.Sum(gatewayAttempts); ok && requests > 0 {
		t.Metrics["attempts_per_request"] = attempts / requests
	}
	if _, ok := m.Sum(gatewayTransitions); ok {
		t.Metrics["breaker_trips"] = m.By(gatewayTransitions, "to")["open"]
	}
	t.Reasons = reasons(m)
}

// timeSpent takes over where requests spent their time between two scrapes, on average.
func timeSpent(t *result.Trial, before, after sut.Metrics) {
	requests, _ := delta(before, after, gatewayRequests)
	was, is := before.By(gatewayTime, "phase"), after.By(gatewayTime, "phase")
	for phase, seconds := range is {
		if name := phase + "_ms"; requests > 0 {
			if _, known := result.MetricNamed(name); known {
				t.Metrics[name] = (seconds - was[phase]) * 1000 / requests
			}
		}
	}
}

// reasons are those that a gateway gave, and how often.
func reasons(m sut.Metrics) map[string]int64 {
	counts := map[string]int64{}
	for reason, n := range m.By(gatewayRequests, "reason") {
		if reason != "" && n > 0 {
			counts[reason] = int64(n)
		}
	}
	return counts
}

// delta is how much a counter grew; ok is false where it is not exported. One
// that appears in between began at 0.
func delta(before, after sut.Metrics, name string) (grown float64, ok bool) {
	from, _ := before.Sum(name)
	to, ok := after.Sum(name)
	return to - from, ok
}

// fromLoad takes over the figures of a solo trial that the generator measured.
// What it could not measure is absent.
func fromLoad(t *result.Trial, s *load.Summary) {
	t.Metrics["throughput"] = s.Throughput
	t.Metrics["generator_cpu_us_per_request"] = s.Generator.CPUMicrosPerRequest
	t.Metrics["generator_lag_p99"] = s.Generator.LagP99
	if s.Requests.Completed > 0 { // what came after the window is among the bytes
		t.Metrics["received_bytes_per_second"] = float64(s.BodyBytes) / float64(s.Requests.Completed) * s.Throughput
	}
	if found := s.Search; found != nil {
		for name, rate := range map[string]*float64{"max_rate": found.Lo, "max_rate_missed": found.Hi} {
			if rate != nil {
				t.Metrics[name] = *rate
			}
		}
		return // response times of arms at rates of their own cannot be compared
	}
	for _, step := range s.Steps {
		t.Steps = append(t.Steps, stepOf(step))
	}
	t.Series = seriesOf(s.Series)
	if rt := s.ResponseTime; rt != nil {
		takeTimes(t, "response_time", rt)
		t.Metrics["response_time_mean"], t.Metrics["response_time_min"], t.Metrics["response_time_max"] = rt.Mean, rt.Min, rt.Max
	}
	if st := s.ServiceTime; st != nil {
		takeTimes(t, "service_time", st)
	}
	slices.Sort(t.AtLeast)
}

// takeTimes takes over the quantiles of one kind of time, and which of them are lower
// bounds.
func takeTimes(t *result.Trial, kind string, times *load.Times) {
	for suffix, q := range map[string]*float64{"p50": times.P50, "p90": times.P90, "p95": times.P95, "p99": times.P99, "p999": times.P999} {
		if q != nil {
			t.Metrics[kind+"_"+suffix] = *q
		}
	}
	for _, p := range times.Curve {
		if t.Curves == nil {
			t.Curves = map[string][]result.CurvePoint{}
		}
		t.Curves[kind] = append(t.Curves[kind], result.CurvePoint(p))
	}
	for _, name := range times.AtLeast {
		name := kind + "_" + strings.ReplaceAll(name, ".", "")
		if _, kept := t.Metrics[name]; kept || strings.HasSuffix(name, "mean") || strings.HasSuffix(name, "max") {
			t.AtLeast = append(t.AtLeast, name)
		}
	}
}

// seriesOf is what is kept of a course, nil of none.
func seriesOf(s load.Series) *result.Series {
	if len(s.Points) == 0 {
		return nil
	}
	kept := &result.Series{Interval: s.Interval}
	for _, p := range s.Points {
		kept.Points = append(kept.Points, result.Point{At: p.At, Sent: p.Sent, OK: p.OK, Failed: p.Failed, Errors: p.Errors, P50: p.OKP50, P99: p.OKP99, Max: p.OKMax})
	}
	return kept
}

// stepOf is what is kept of a stage.
func stepOf(s load.Step) result.Step {
	step := result.Step{
		At: s.At, Seconds: s.Seconds, From: s.From, To: s.To,
		Requests: s.Requests.Sent, Errors: s.Requests.Failed, Dropped: s.Requests.Dropped,
		Offered: s.Offered, Throughput: s.Throughput, Goodput: s.Goodput,
	}
	if rt := s.ResponseTime; rt != nil {
		step.Mean, step.P50, step.P90, step.P99, step.AtLeast = &rt.Mean, rt.P50, rt.P90, rt.P99, rt.AtLeast
	}
	return step
}
