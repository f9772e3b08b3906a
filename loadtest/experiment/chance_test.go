package experiment_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gatebench/loadtest/experiment"
)

// All arms of a block are loaded from one seed, by a backend that begins its latencies
// anew for each; the next block has others, and the same plan the same again.
func TestChanceIsTheSameForAllArmsOfABlockAndNewInEach(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := plan(3, arm("a", gatewayScript{}, backendScript{}), arm("b", gatewayScript{}, backendScript{}), arm("c", gatewayScript{}, backendScript{Number: 1}))
	p.Duet.Duration = 0
	seen := func() (seeds, streams []string) {
		out := t.TempDir()
		if _, err := experiment.Run(t.Context(), p, experiment.Options{Binary: exe, Out: out, Env: []string{raceEnd}, Host: machine(0)}); err != nil {
			t.Fatal(err)
		}
		journal, err := os.ReadFile(filepath.Join(out, "processes.log"))
		if err != nil {
			t.Fatal(err)
		}
		// The names of loads on an arm, not of the one without a gateway.
		for _, m := range regexp.MustCompile(`load on "[abc]": seed (\d+)`).FindAllSubmatch(journal, -1) {
			seeds = append(seeds, string(m[1]))
		}
		for _, m := range regexp.MustCompile(`dealt anew, stream=(\d+)`).FindAllSubmatch(journal, -1) {
			streams = append(streams, string(m[1]))
		}
		return seeds, streams
	}
	seeds, streams := seen()
	// Per block three loads; and two backends dealt once at the start, then one for
	// each load.
	if len(seeds) != 9 || len(streams) != 15 {
		t.Fatalf("seeds %v, streams %v", seeds, streams)
	}
	differ := map[string]bool{}
	for block := range 3 {
		for _, s := range seeds[3*block : 3*block+3] {
			if s != seeds[3*block] {
				t.Errorf("block %d: seeds %v", block, seeds[3*block:3*block+3])
			}
		}
		for _, s := range streams[5*block : 5*block+5] {
			if s != streams[5*block] {
				t.Errorf("block %d: streams %v", block, streams[5*block:5*block+5])
			}
		}
		differ[seeds[3*block]], differ["stream "+streams[5*block]] = true, true
	}
	if len(differ) != 6 {
		t.Errorf("blocks share their chance: %v", differ)
	}
	if again, _ := seen(); again[0] != seeds[0] || again[8] != seeds[8] {
		t.Errorf("the same plan, other seeds: %v and %v", again, seeds)
	}
}
