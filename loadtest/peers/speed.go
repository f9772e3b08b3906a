package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// speed measures what the load engine costs, and how many users it carries.
func (b *bench) speed(ctx context.Context, t *table) error {
	rounds, length := 7, 5*time.Second
	if b.short {
		rounds, length = 1, time.Second
	}
	t.section(fmt.Sprintf("CPU per request, tool and target on a core each, %d rounds in turn of %v", rounds, length))
	b.compare(ctx, t, rounds, length, 64, nil, map[string]float64{"wrk": 1.10, "hey": .35, "vegeta": .35})
	b.compare(ctx, t, rounds, length, 200, []string{"-latency", "10ms"}, map[string]float64{"wrk": 1.25})
	t.section("Allocations")
	_, _, err := b.run(ctx, -1, "", "go", "test", "-count=1", "-run", "^TestRequestsAllocateNothing$", "./loadtest/load")
	t.row("allocations per request on the hot path", map[bool]string{true: "0", false: fmt.Sprint(err)}[err == nil], "0", err == nil)
	t.section("Users of a target that answers after 1 s, on all cores with it")
	b.users(ctx, t, 4_000, 12, 60)
	b.users(ctx, t, 10_000, 350, 150)
	t.section("Length of a run")
	b.overshoot(ctx, t, 10*time.Second)
	return ctx.Err()
}

// peersOf is the order in which they take their turns, the engine first.
var peersOf = []string{"wrk", "hey", "vegeta"}

// compare has a row for each bound: the median over rounds of the ratio of CPU per
// request, engine ÷ peer, of one and the same round.
func (b *bench) compare(ctx context.Context, t *table, rounds int, length time.Duration, users int, target []string, bounds map[string]float64) {
	s, err := b.target(ctx, targetCore, target...)
	if err != nil {
		t.missing(fmt.Sprintf("%d connections", users), err)
		return
	}
	defer s.stop()
	us := map[string][]float64{}
	ratios := map[string][]float64{}
	failed := map[string]error{}
	for range rounds {
		own, sum, err := b.load(ctx, toolCore, "--url", s.url(), "--vus", strconv.Itoa(users), "--duration", length.String())
		if err == nil && sum.Requests.Failed > 0 {
			err = fmt.Errorf("%d of %d requests failed", sum.Requests.Failed, sum.Requests.Sent)
		}
		if err != nil {
			t.missing(fmt.Sprintf("%d connections", users), err)
			return
		}
		us["gatebench"] = append(us["gatebench"], own.microseconds())
		for _, peer := range peersOf {
			if bounds[peer] == 0 || failed[peer] != nil {
				continue
			}
			f, err := b.closed(ctx, peer, toolCore, users, length, s.url())
			if err != nil {
				failed[peer] = err
				continue
			}
			us[peer] = append(us[peer], f.microseconds())
			ratios[peer] = append(ratios[peer], own.microseconds()/f.microseconds())
		}
	}
	what := fmt.Sprintf("%d connections", users)
	if len(target) > 0 {
		what += ", a 10 ms target"
	}
	for _, peer := range peersOf {
		switch most := bounds[peer]; {
		case most == 0:
		case failed[peer] != nil:
			t.missing(what+", engine ÷ "+peer, failed[peer])
		default:
			t.row(what+", engine ÷ "+peer, fmt.Sprintf("%s; %s ÷ %s µs", spread(ratios[peer]), spread(us["gatebench"]), spread(us[peer])),
				fmt.Sprintf("≤ %.2f", most), median(ratios[peer]) <= most)
		}
	}
}

// users starts over two seconds, so that they do not go in convoy.
func (b *bench) users(ctx context.Context, t *table, n int, p99, megabytes float64) {
	what := fmt.Sprintf("%d users", n)
	s, err := b.target(ctx, -1, "-latency", "1s")
	if err != nil {
		t.missing(what, err)
		return
	}
	defer s.stop()
	length := 10 * time.Second
	if b.short {
		n, length = n/10, 2*time.Second
		what = fmt.Sprintf("%d users (short)", n)
	}
	f, sum, err := b.load(ctx, -1, "--url", s.url(), "--vus", strconv.Itoa(n), "--ramp-up", "2s", "--warmup", "4s", "--duration", length.String())
	if err != nil {
		t.missing(what, err)
		return
	}
	t.row(what+": errors", fmt.Sprintf("%d of %d", sum.Requests.Failed, sum.Requests.Sent), "0", sum.Requests.Failed == 0 && sum.Requests.Sent > 0)
	t.atMost(what+": p99 of (response − 1 s)", f.p99-1000, p99, " ms")
	t.atMost(what+": memory of the generator", float64(f.memory)/1e6, megabytes, " MB")
}

// overshoot is how much longer than its duration a run takes, start and end of the
// process included.
func (b *bench) overshoot(ctx context.Context, t *table, length time.Duration) {
	if b.short {
		length = time.Second
	}
	what := fmt.Sprintf("overshoot of a %v run", length)
	s, err := b.target(ctx, -1)
	if err != nil {
		t.missing(what, err)
		return
	}
	defer s.stop()
	f, _, err := b.load(ctx, -1, "--url", s.url(), "--vus", "64", "--duration", length.String())
	if err != nil {
		t.missing(what, err)
		return
	}
	t.atMost(what, float64((f.wall-length).Microseconds())/1000, 50, " ms")
}
