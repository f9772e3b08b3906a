package gateway

import (
	"sync/atomic"
	"testing"
	"time"

	"gatebench/internal/process"
)

// Twice the burn is twice the rounds, each round takes time, and the time that a burn
// takes is about what was asked for. No fine figure: the machine may be busy.
func TestBurnIsANumberOfRoundsForATime(t *testing.T) {
	if _, ok := process.ThreadCPU(); !ok {
		t.Skip("this system does not tell the CPU time of a thread")
	}
	b, err := calibrate(20 * time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	b.spent = new(atomic.Int64)
	for range 1000 {
		b.spend()
	}
	if each := time.Duration(b.spent.Load()) / 1000; each < 5*time.Microsecond || each > 80*time.Microsecond {
		t.Errorf("%v counted for a burn of 20 µs", each)
	}
	c, err := calibrate(2 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if ratio := float64(c.rounds) / float64(b.rounds); ratio < 30 || ratio > 300 {
		t.Errorf("%d rounds for 20 µs and %d for 2 ms", b.rounds, c.rounds)
	}
	if b.rounds < 1000 {
		t.Errorf("%d rounds in 20 µs: a round is no longer a few cycles", b.rounds)
	}
}

func TestNoBurnCostsNothing(t *testing.T) {
	b, err := calibrate(0)
	if err != nil || b != (burn{}) {
		t.Errorf("%+v, %v", b, err)
	}
	if n := testing.AllocsPerRun(10, b.spend); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBurn20us(b *testing.B) {
	burn, err := calibrate(20 * time.Microsecond)
	if err != nil {
		b.Fatal(err)
	}
	burn.spent = new(atomic.Int64)
	for b.Loop() {
		burn.spend()
	}
}
