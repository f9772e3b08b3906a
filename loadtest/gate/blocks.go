package gate

import (
	"slices"

	"gatebench/loadtest/result"
)

// voidShare is the share of blocks that may be void: beyond it, what voided them may
// have chosen among them.
const voidShare = 0.20

// Blocks counts, of the blocks in which something was measured, those that are
// void.
type Blocks struct{ Void, Of int }

// Spoiled reports whether so many are void that nothing can be concluded.
func (b Blocks) Spoiled() bool { return b.Lost(0) }

// Lost reports whether it would be so even if that many more blocks were all good.
func (b Blocks) Lost(more int) bool { return float64(b.Void) > voidShare*float64(b.Of+more) }

// Good is how many are left.
func (b Blocks) Good() int { return b.Of - b.Void }

// Phase counts the blocks of one phase of a profile; void are those with a void
// trial, or without one, of any arm. Phases and profiles stand for themselves: what
// spoils response times leaves CPU per request alone.
//
// The block that an interruption cut off is none.
func Phase(doc *result.Document, phase result.Phase, profile string) Blocks {
	arms := make([]string, len(doc.Arms))
	for i, a := range doc.Arms {
		arms[i] = a.Name
	}
	return count(doc, phase, profile, arms)
}

// Pairs is [Phase] for two arms alone: another that cannot carry the load takes
// nothing from their comparison.
func Pairs(doc *result.Document, phase result.Phase, profile, arm, baseline string) Blocks {
	return count(doc, phase, profile, []string{arm, baseline})
}

func count(doc *result.Document, phase result.Phase, profile string, arms []string) Blocks {
	valid := map[int]map[string]bool{} // by block and arm
	for _, t := range doc.Trials {
		if t.Phase != phase || t.Profile != profile {
			continue
		}
		if valid[t.Block] == nil {
			valid[t.Block] = map[string]bool{}
		}
		valid[t.Block][t.Arm] = t.Valid
	}
	if n := len(doc.Trials); doc.Interrupted && n > 0 {
		if last := doc.Trials[n-1]; last.Phase == phase && last.Profile == profile {
			delete(valid, last.Block)
		}
	}
	b := Blocks{Of: len(valid)}
	for _, v := range valid {
		if slices.ContainsFunc(arms, func(arm string) bool { return !v[arm] }) {
			b.Void++
		}
	}
	return b
}
