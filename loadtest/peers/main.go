// Command peers holds the project to what is known. It measures the load engine beside
// the tools that people know: what a request costs (bench), and whether the figures are
// true (truth). And it has the program judge experiments whose answer was put in
// (verdict): arms that are identical, a known dose of CPU time, a known tail. And it
// switches the client of a gateway under load (switch). It prints a table with pass or fail in every row, in Markdown, and ends with 1 if a row failed.
//
//	go run ./loadtest/peers bench [-short] [-tools DIR]
//	go run ./loadtest/peers truth [-short] [-tools DIR] [omission] [queueing] [poisson] [deck] [agreement] [faults]
//	go run ./loadtest/peers switch
//	go run ./loadtest/peers verdict [-runs N] [-seed S] [-append FILE] [identical] [dose] [tail]
//
// Twenty pairs of identical arms take 22 minutes; in pieces of two runs each:
//
//	go run ./loadtest/peers verdict -runs 2 -seed 1 -append out/identical.jsonl identical
//	go run ./loadtest/peers verdict -runs 2 -seed 3 -append out/identical.jsonl identical
//
// It is a tool of the project and no part of the program. The peers come from Debian
// (wrk, ab) and as Go modules of fixed versions (hey, vegeta, fortio); what is
// missing is installed, the former only by root.
//
// The trap: figures of one run are to be compared with those of the same run alone.
// The machine's speed drifts by more than the peers differ, which is why the bench
// interleaves them and judges by ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("what? bench, truth, verdict or switch")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	short := flags.Bool("short", false, "short runs and few rounds: to see that all of it works, not to believe")
	tools := flags.String("tools", filepath.Join(os.TempDir(), "gatebench-peers"), "folder for the peers that are Go modules")
	binary := flags.String("gatebench", "bin/gatebench", "the program to measure")
	var v verdictTest
	flags.IntVar(&v.runs, "runs", 10, "verdict: runs of identical arms, two pairs each")
	flags.Uint64Var(&v.seed, "seed", 1, "verdict: seed of the first run; the others follow")
	flags.StringVar(&v.append, "append", "", "verdict: file that keeps the runs of identical arms, and counts those in it")
	flags.StringVar(&v.out, "out", filepath.Join("out", "truth"), "verdict: folder for the results")
	var target targetConfig
	target.flags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "serve" {
		return serveTarget(ctx, target, os.Stdout)
	}
	t := &table{w: os.Stdout}
	if args[0] == "verdict" {
		fmt.Fprintf(t.w, "%s\n\n", machine(time.Now()))
		v.gatebench, v.short = *binary, *short
		if err := v.verdict(ctx, t, flags.Args()); err != nil {
			return err
		}
		return t.verdict()
	}
	need := []string{"hey", "vegeta", "fortio", "wrk", "ab"}
	if args[0] == "switch" {
		need = nil
	}
	b, err := newBench(ctx, *binary, *tools, *short, need)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.w, "%s\n\n", machine(time.Now()))
	switch args[0] {
	case "bench":
		err = b.speed(ctx, t)
	case "switch":
		err = b.switching(ctx, t)
	case "truth":
		err = b.truth(ctx, t, flags.Args())
	default:
		return fmt.Errorf("%q is neither bench, truth, verdict nor switch", args[0])
	}
	if err != nil {
		return err
	}
	return t.verdict()
}
