// Package deck deals cards: a distribution that is exact after every whole deck and
// not only in the long run, so that what was dealt can be checked to the number.
package deck

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// Deck deals its cards in random order to the end, and then shuffles them again. It
// is safe for concurrent use.
type Deck[T any] struct {
	mu    sync.Mutex
	fresh []T // as they came
	cards []T // as they lie
	seed  uint64
	rng   *rand.Rand
	dealt int
}

// New takes cards, at least one, and keeps them. The same seed deals the same.
func New[T any](cards []T, seed uint64) *Deck[T] {
	d := &Deck[T]{fresh: slices.Clone(cards), cards: cards, seed: seed}
	d.Restart(0)
	return d
}

// Restart forgets what was dealt: from here on the deck deals what a new one of the same
// seed would, in the stream of that number. A new deck is in stream 0.
func (d *Deck[T]) Restart(stream uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(d.cards, d.fresh)
	d.rng, d.dealt = rand.New(rand.NewPCG(d.seed, stream)), len(d.cards)
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
