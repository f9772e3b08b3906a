package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// The arms of plans/tail.yaml.
const evenArm, tailedArm = "even", "tailed"

// tail has two requests in a hundred of one arm take 50 ms longer.
func (v *verdictTest) tail(ctx context.Context, t *table) error {
	t.section("A tail put in: 2 % of one arm's requests take 60 ms instead of 10 ms")
	doc, err := v.run(ctx, "tail", v.seed)
	if err != nil {
		return err
	}
	judgeTail(t, doc)
	return nil
}

func judgeTail(t *table, doc *result.Document) {
	if !doc.Valid {
		t.row("validity", fmt.Sprint(doc.InvalidReasons), "valid", false)
	}
	for _, want := range []struct {
		metric  string
		verdict result.Verdict
	}{
		{"response_time_p99", result.Worse},
		{"response_time_p50", result.NoDifference},
		{cpuMetric, result.NoDifference},
	} {
		m, _ := result.MetricNamed(want.metric)
		c, err := comparison(doc, tailedArm, want.metric)
		if err != nil {
			t.missing(m.Title, err)
			continue
		}
		measured := fmt.Sprintf("%s: %s", words(c), c.Verdict)
		if want.verdict == result.NoDifference {
			measured += "; " + power(doc, m, c.Blocks)
		}
		t.row(m.Title, measured, string(want.verdict), c.Verdict == want.verdict)
	}
	for _, want := range []struct {
		arm string
		p99 float64
	}{{evenArm, 10}, {tailedArm, 60}} {
		// What a gateway and two sockets add, with some of a loaded machine's: the
		// verdict is about ratios, this says that the tail arrived.
		const added = 5
		got, ok := stats.Median(figures99(doc, want.arm))
		if !ok {
			t.missing(want.arm+": p99", fmt.Errorf("no data"))
			continue
		}
		t.row(want.arm+": p99", fmt.Sprintf("%.4g ms", got), fmt.Sprintf("%g to %g ms", want.p99, want.p99+added), got >= want.p99 && got <= want.p99+added)
	}
}

func figures99(doc *result.Document, arm string) []float64 {
	var xs []float64
	for _, t := range doc.Trials {
		if x, ok := t.Metrics["response_time_p99"]; ok && t.Valid && t.Arm == arm {
			xs = append(xs, x)
		}
	}
	return xs
}

// power says how likely "no meaningful difference" was, had there been none: the share
// of simulated experiments with the spread that was seen and as many blocks.
func power(doc *result.Document, m result.Metric, blocks int) string {
	sd := stats.StdDev(logRatios(doc, m))
	if blocks < 2 || sd == 0 {
		return "power unknown"
	}
	const experiments = 2000
	rule := stats.Rule{Level: level, Interest: math.Log1p(m.Interest), MinN: 6}
	r := rand.New(rand.NewPCG(42, 7))
	found := 0
	for range experiments {
		d := make([]float64, blocks)
		for i := range d {
			d[i] = sd * r.NormFloat64()
		}
		if stats.Judge([][]float64{d}, rule)[0].Outcome == stats.Equivalent {
			found++
		}
	}
	return fmt.Sprintf("power %.0f %% at a spread of %.1f %% and %d blocks", 100*float64(found)/experiments, 100*sd, blocks)
}

func logRatios(doc *result.Document, m result.Metric) []float64 {
	byBlock := map[string]map[int]float64{evenArm: {}, tailedArm: {}}
	for _, t := range doc.Trials {
		if x, ok := t.Metrics[m.Name]; ok && t.Valid && t.Phase == m.Phase && byBlock[t.Arm] != nil {
			byBlock[t.Arm][t.Block] = x
		}
	}
	var a, b []float64
	for block, x := range byBlock[evenArm] {
		if y, ok := byBlock[tailedArm][block]; ok {
			a, b = append(a, x), append(b, y)
		}
	}
	return stats.LogRatios(a, b)
}
