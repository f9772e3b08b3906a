package backend

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatebench/internal/conf"
	"gatebench/internal/deck"
)

// Latency is how long answers take: always the same, "20ms", or dealt from a deck of
// cards, "5ms:90, 20ms:9, 200ms:1". A deck is shuffled and dealt to its end before
// it is shuffled again, so that a hundred answers hold one of 200ms, not about one:
// the distribution is known, and its quantiles can be checked to the millisecond.
// The empty Latency is none.
type Latency string

// mostCards bounds a deck: every card has its place in memory.
const mostCards = 100_000

// UnmarshalText reads a latency, and refuses what is none.
func (l *Latency) UnmarshalText(b []byte) error {
	if _, err := cards(string(b)); err != nil {
		return err
	}
	*l = Latency(b)
	return nil
}

// MarshalText writes l as UnmarshalText reads it.
func (l Latency) MarshalText() ([]byte, error) {
	if l == "" {
		l = "0s"
	}
	return []byte(l), nil
}

// cards are the latencies of one whole deck, in order.
func cards(text string) ([]time.Duration, error) {
	if text == "" {
		return []time.Duration{0}, nil
	}
	if !strings.Contains(text, ":") {
		d, err := conf.ParseDuration(text)
		return []time.Duration{d}, err
	}
	var kinds []time.Duration
	var counts []int
	common := 0
	for part := range strings.SplitSeq(text, ",") {
		latency, count, _ := strings.Cut(strings.TrimSpace(part), ":")
		d, err := conf.ParseDuration(latency)
		n, nerr := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || nerr != nil || n < 1 || n > 1e9 {
			return nil, fmt.Errorf("%q is not a latency: write one, like 20ms, or a deck of them with their numbers of cards, like \"5ms:90, 20ms:9, 200ms:1\"", text)
		}
		kinds, counts, common = append(kinds, d), append(counts, n), gcd(n, common)
	}
	var all []time.Duration
	for i, d := range kinds {
		for range counts[i] / common {
			all = append(all, d)
		}
		if len(all) > mostCards {
			return nil, fmt.Errorf("%q is a deck of more than %d cards", text, mostCards)
		}
	}
	return all, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// newDeck deals latencies. The same seed deals the same.
func newDeck(l Latency, seed uint64) (*deck.Deck[time.Duration], error) {
	cs, err := cards(string(l))
	if err != nil {
		return nil, err
	}
	return deck.New(cs, seed), nil
}
