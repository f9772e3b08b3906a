package fault

import (
	"math"
	"sync/atomic"

	"gatebench/clients"
	"gatebench/internal/deck"
)

// finest is the largest deck: a share has at most two decimals of a percent.
const finest = 10_000

// deckOf is the smallest deck that holds a share exactly: hits of size.
func deckOf(share float64) (hits, size int, ok bool) {
	if share >= 1 {
		return 1, 1, true
	}
	for size = 1; size <= finest; size++ {
		n := share * float64(size)
		if near := math.Round(n); near > 0 && math.Abs(n-near) < 1e-9*float64(size) {
			return int(near), size, true
		}
	}
	return 0, 0, false
}

// Set is the faults in force. The zero Set has none, and costs a request one load.
type Set struct{ now atomic.Pointer[[]dealt] }

// dealt is a fault and who meets it.
type dealt struct {
	fault  Fault
	effect effect
	deck   *deck.Deck[bool]
}

// Put replaces all faults by valid ones. Their decks begin anew, so that every arm
// of an experiment is dealt the same.
func (s *Set) Put(fs []Fault) {
	ds := make([]dealt, len(fs))
	for i, f := range fs {
		hits, size, ok := deckOf(float64(f.Share))
		if !ok {
			panic("fault: share " + f.Share.String())
		}
		cards := make([]bool, size)
		for c := range hits {
			cards[c] = true
		}
		ds[i] = dealt{f, f.effect(), deck.New(cards, uint64(i)+1)}
	}
	s.now.Store(&ds)
}

// Faults lists what is in force.
func (s *Set) Faults() []Fault {
	fs := []Fault{}
	if ds := s.now.Load(); ds != nil {
		for _, d := range *ds {
			fs = append(fs, d.fault)
		}
	}
	return fs
}

// A Hit is a fault that a request has met.
type Hit struct{ effect effect }

// Draw says whether the next request meets a fault: the first whose card it draws.
func (s *Set) Draw() (h Hit, met bool) {
	ds := s.now.Load()
	if ds == nil {
		return Hit{}, false
	}
	for i := range *ds {
		if d := &(*ds)[i]; d.deck.Deal() {
			return Hit{d.effect}, true
		}
	}
	return Hit{}, false
}

// Answer carries the fault out. nil means that there is nothing to write: the
// connection has been taken over, or its peer is gone.
func (h Hit) Answer(x Exchange) *clients.Response { return h.effect.answer(x) }
