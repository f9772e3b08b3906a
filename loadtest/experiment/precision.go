package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// Precision is how narrow the interval of one metric's ratios is to be.
type Precision struct {
	Metric string
	// Half is half its width, as a share: 0.01 is ±1 %.
	Half float64
}

// leastPilot is the fewest blocks from which a width can be foretold: below, the
// standard deviation is anybody's guess.
const leastPilot = 6

// asked is how many blocks the plan's precision needs in all, judged by the blocks that
// are done: the largest number over every metric that it names and every arm under test.
// It sees how much the ratios scatter and never where they lie, which is what keeps a
// stop from favouring a claim.
func (r *run) asked() (n int, widest string) {
	n = r.plan.Blocks
	baseline := r.plan.Arms[0].Name
	for _, p := range r.plan.Precision {
		m, _ := result.MetricNamed(p.Metric)
		for _, profile := range r.profilesOf(m.Phase) {
			for _, a := range r.plan.Arms[1:] {
				if a.SentinelOf != "" || a.Floor {
					continue
				}
				d := logRatios(r.doc.Trials, m, profile, a.Name, baseline)
				if len(d) < leastPilot {
					continue // void ones are made up for; of too few nothing can be foretold
				}
				if wanted := stats.SecondStage(stats.StdDev(d), math.Log1p(p.Half), len(d)); wanted > n {
					n, widest = wanted, fmt.Sprintf("%s of %s [%s]", m.Title, a.Name, profile)
				}
			}
		}
	}
	return n, widest
}

// profilesOf are the profiles of a phase whose figures are compared: where something goes
// wrong on purpose there is no ratio to bound.
func (r *run) profilesOf(phase result.Phase) (names []string) {
	for _, of := range r.plan.parts() {
		if of.phase == phase && (phase == result.Duet || len(r.plan.Profiles[of.profile].Faults) == 0) {
			names = append(names, r.plan.name(of))
		}
	}
	return names
}

// logRatios pairs an arm with the baseline in every block in which both are valid.
func logRatios(trials []result.Trial, m result.Metric, profile, arm, baseline string) []float64 {
	of := func(name string) map[int]float64 {
		byBlock := map[int]float64{}
		for _, t := range trials {
			if v, ok := t.Metrics[m.Name]; ok && t.Valid && t.Arm == name && t.Phase == m.Phase && t.Profile == profile {
				byBlock[t.Block] = v
			}
		}
		return byBlock
	}
	ours, theirs := of(arm), of(baseline)
	var a, b []float64
	for _, block := range slices.Sorted(maps.Keys(ours)) {
		if base, ok := theirs[block]; ok {
			a, b = append(a, base), append(b, ours[block])
		}
	}
	return stats.LogRatios(a, b)
}

// lengthen plans the second stage after the first: as many blocks more as the precision
// asks for. The budget may hold fewer.
func (r *run) lengthen() {
	if len(r.plan.Precision) == 0 {
		return
	}
	pilot := r.plan.Blocks
	n, widest := r.asked()
	r.doc.Precision = &result.Precision{Pilot: pilot, Wanted: n, Widest: widest, Level: stats.TwoStageLevel, Half: map[string]float64{}}
	for _, p := range r.plan.Precision {
		r.doc.Precision.Half[p.Metric] = p.Half
	}
	for range n - pilot {
		if !r.clock.fits(r.plan.blockTime() * time.Duration(r.plan.Blocks-pilot+1)) {
			break
		}
		r.plan.Blocks++
		r.clock.more(r.plan.blockTime(), len(r.plan.Arms)*len(r.plan.parts()))
	}
	if r.plan.Blocks < n {
		r.warn(fmt.Sprintf("the precision asked for needs %d blocks, for %s, and the budget of %v holds %d", n, widest, r.plan.Budget, r.plan.Blocks))
	}
}
