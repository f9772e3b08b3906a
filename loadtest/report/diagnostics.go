package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// What shows only over all blocks, and forbids nothing: the order of arms is random
// and the blocks are paired, so that drift and position cancel.
const (
	// worthAWord is the change from block to block, or from place to place,
	// that is.
	worthAWord = 0.01
	// sure is how small the p-value of a diagnostic must be: several are asked
	// of every report, and no one must cry wolf.
	sure = 0.01
)

// diagnostics say where the blocks are not what they should be, a copy of each other
// but for noise.
func diagnostics(doc *result.Document) []string {
	if len(doc.Arms) == 0 {
		return nil
	}
	var ds []string
	for _, profile := range profiles(doc, result.Solo) {
		if share, ok := halfChange(doc, profile); ok {
			ds = append(ds, unsteadySentence(profile, share))
		}
	}
	for _, s := range series(doc) {
		ds = append(ds, s.fragile(doc)...)
		if slope, ok := s.drift(doc.Arms[0].Name); ok {
			ds = append(ds, fmt.Sprintf("%s [%s] of %s drifted by %s %% a block: the machine changed; the comparison within blocks cancels it",
				s.metric.Title, s.profile, doc.Arms[0].Name, signed(math.Expm1(slope))))
		}
		if slope, ok := s.position(doc); ok {
			ds = append(ds, fmt.Sprintf("%s [%s] hangs on an arm's place in the block, %s %% a place: one trial disturbs the next; the random order cancels it on average",
				s.metric.Title, s.profile, signed(math.Expm1(slope))))
		}
	}
	return ds
}

// fragile names the arms of whose verdict one single block decides: without it, it
// would be another. It is not asked where one block less could carry no claim at
// all.
func (s measured) fragile(doc *result.Document) []string {
	whole := s.outcomes(doc)
	blocks := map[int]bool{}
	for _, byBlock := range s.figures {
		for block := range byBlock {
			blocks[block] = true
		}
	}
	deciding := map[string][]int{}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		for arm, j := range s.without(block).outcomes(doc) {
			before := whole[arm]
			able := math.Exp2(float64(2-before.N))*float64(len(whole)) <= 1-s.rule().Level
			if able && j.N < before.N && before.Outcome != stats.Undecided && j.Outcome != before.Outcome {
				deciding[arm] = append(deciding[arm], block)
			}
		}
	}
	var ds []string
	for _, a := range doc.Arms {
		if bs := deciding[a.Name]; len(bs) > 0 {
			ds = append(ds, fmt.Sprintf("fragile: %s [%s] of %s would have another verdict without %s", s.metric.Title, s.profile, a.Name, eitherBlock(bs)))
		}
	}
	return ds
}

func eitherBlock(blocks []int) string {
	if len(blocks) > 3 {
		return fmt.Sprintf("any one of %d blocks", len(blocks))
	}
	names := make([]string, len(blocks))
	for i, b := range blocks {
		names[i] = fmt.Sprint(b + 1) // people count from 1
	}
	return "block " + strings.Join(names, " or ")
}

// outcomes judges every contender.
func (s measured) outcomes(doc *result.Document) map[string]stats.Judgement {
	var arms []string
	var family [][]float64
	for _, a := range contenders(doc) {
		arms = append(arms, a.Name)
		family = append(family, s.logRatios(a.Name, doc.Arms[0].Name))
	}
	byArm := map[string]stats.Judgement{}
	for i, j := range stats.Judge(family, s.rule()) {
		byArm[arms[i]] = j
	}
	return byArm
}

func (s measured) rule() stats.Rule {
	return stats.Rule{Level: cmp.Or(s.level, level), Interest: math.Log1p(s.metric.Interest), MinN: minClaim}
}

// without leaves a block out.
func (s measured) without(block int) measured {
	figures := map[string]map[int]float64{}
	for arm, byBlock := range s.figures {
		figures[arm] = maps.Clone(byBlock)
		delete(figures[arm], block)
	}
	s.figures = figures
	return s
}

// drift is the change of an arm's figure from one block to the next, on the log
// scale; ok is false where it is small or not sure. Each block of the first half is
// held against its fellow in the second half (Cox and Stuart 1955), by the size of
// the difference and not by its sign alone.
func (s measured) drift(arm string) (slope float64, ok bool) {
	blocks := slices.Sorted(maps.Keys(s.figures[arm]))
	half := len(blocks) / 2
	var perBlock []float64
	for i, early := range blocks[:half] {
		late := blocks[len(blocks)-half+i]
		for _, d := range stats.LogRatios([]float64{s.figures[arm][early]}, []float64{s.figures[arm][late]}) {
			perBlock = append(perBlock, d/float64(late-early))
		}
	}
	center := stats.HodgesLehmann(perBlock, level).Center
	return center, math.Abs(center) > worthAWord && stats.StudentP(perBlock) < sure
}

// position is the change from one place in a block to the next, on the log scale; ok
// is false where there is none to be sure of. In each block the figures, without
// what is the arm's own, have one slope over the places, and the slopes of several
// blocks are as good as independent.
func (s measured) position(doc *result.Document) (slope float64, ok bool) {
	own := map[string]float64{} // an arm's mean, on the log scale
	for arm, byBlock := range s.figures {
		for _, v := range byBlock {
			own[arm] += math.Log(v) / float64(len(byBlock))
		}
	}
	type place struct{ at, left float64 }
	blocks := map[int][]place{}
	for _, t := range doc.Trials {
		v, ok := s.figures[t.Arm][t.Block]
		if ok && v > 0 && t.Phase == s.metric.Phase && t.Profile == s.profile && s.metric.Phase == result.Solo {
			blocks[t.Block] = append(blocks[t.Block], place{float64(t.Position), math.Log(v) - own[t.Arm]})
		}
	}
	var slopes []float64
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		places := blocks[block]
		var at, left, sxy, sxx float64
		for _, p := range places {
			at, left = at+p.at/float64(len(places)), left+p.left/float64(len(places))
		}
		for _, p := range places {
			sxy, sxx = sxy+(p.at-at)*(p.left-left), sxx+(p.at-at)*(p.at-at)
		}
		if sxx > 0 {
			slopes = append(slopes, sxy/sxx)
		}
	}
	center := stats.HodgesLehmann(slopes, level).Center
	return center, math.Abs(center) > worthAWord && max(stats.StudentP(slopes), stats.SignedRank(slopes)) < sure
}
