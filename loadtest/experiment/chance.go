package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gatebench/loadtest/sut"
)

// Chance is the same for all arms of a block and new in each: requests arrive at the
// same instants, and the one that is the nth at the backend takes the same time. What an
// arm meets by luck, the arm that it is compared with has met too.

// drawn is the seed of a load's arrivals: a function of the plan's seed, the profile's
// and the block alone.
func drawn(plan, profile uint64, block int) uint64 {
	return rand.New(rand.NewPCG(plan^profile<<32, uint64(block))).Uint64()
}

// backendLatency is where a backend deals its latencies anew.
const backendLatency = "/-/latency"

// redeal has a backend begin the block's latencies from the start.
func (r *run) redeal(ctx context.Context, backend *sut.Server, block int) {
	err := backend.Put(ctx, fmt.Sprintf("%s?stream=%d", backendLatency, drawn(r.plan.Seed, 0, block)), nil)
	if err != nil && ctx.Err() == nil {
		select {
		case <-backend.Done(): // which is noticed elsewhere
		default:
			r.warn("a backend does not deal its latencies anew, so that arms may have met others: " + err.Error())
		}
	}
}
