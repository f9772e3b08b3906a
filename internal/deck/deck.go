// Package deck deals cards: a distribution that is exact after every whole deck and
// not only in the long run, so that what was dealt can be checked to the number.
package deck

import (
	"math/rand/v2"
	"sync"
)

// Deck deals its cards in random order to the end, and then shuffles them again. It
// is safe for concurrent use.
type Deck[T any] struct {
	mu    sync.Mutex
	cards []T
	rng   *rand.Rand
	dealt int
}

// New takes cards, at least one, and keeps them. The same seed deals the same.
func New[T any](cards []T, seed uint64) *Deck[T] {
	return &Deck[T]{cards: cards, rng: rand.New(rand.NewPCG(seed, 0)), dealt: len(cards)}
}

// Deal gives the next card.
func (d *Deck[T]) Deal() T {
	if len(d.cards) == 1 {
		return d.cards[0]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dealt == len(d.cards) {
		d.rng.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
		d.dealt = 0
	}
	d.dealt++
	return d.cards[d.dealt-1]
}
