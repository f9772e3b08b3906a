package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gatebench/loadtest/result"
)

// A profile's load: long enough for some hundreds of the 100 samples a second that a
// CPU profile has.
const (
	pprofWarmup   = time.Second
	pprofDuration = 5 * time.Second
)

// pprofFolder is where the profiles are, in the output folder.
const pprofFolder = "pprof"

// profileArms has every arm's gateway write a profile of itself, if that is asked for.
// It comes after all that is measured, because what profiles costs.
//
// Each arm is alone, under the duet's load, or the first profile's where there is no
// duet: in a duet it would show the waiting for the others too.
func (r *run) profileArms(ctx context.Context, profiles []Profile) error {
	if r.options.Pprof == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(r.options.Out, pprofFolder), 0o755); err != nil { //nolint:gosec // as the folder around it
		return fmt.Errorf("pprof: %w", err)
	}
	backends, err := r.startBackends(ctx)
	defer func() { r.stop(ctx, backends.processes()...) }()
	if err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	p := saturating(pprofProfile, r.plan.Duet.Connections, pprofWarmup, pprofDuration)
	if r.plan.Duet.Duration == 0 {
		p = Profile{Name: profiles[0].Name, Profile: profiles[0].Profile} // nothing goes wrong in it
	}
	for arm, a := range r.plan.Arms {
		if a.SentinelOf != "" {
			continue // the same as what it copies
		}
		r.progress(Event{Phase: "pprof", Arm: a.Name, Block: r.clock.blocks})
		if err := r.profileArm(ctx, arm, p, backends); err != nil {
			return fmt.Errorf("pprof of %q: %w", a.Name, err)
		}
	}
	return nil
}

// pprofProfile is the profile that the loads of profiled arms bear.
const pprofProfile = "pprof"

func (r *run) profileArm(ctx context.Context, arm int, p Profile, bs backends) error {
	name, kind := r.plan.Arms[arm].Name, r.options.Pprof
	file := filepath.Join(pprofFolder, fmt.Sprintf("%d-%s.%s.pprof", arm, fileName(name), kind))
	err := r.alone(ctx, arm, bs[arm], p, func(*soloist) {}, "--pprof", kind, "--pprof-file", filepath.Join(r.options.Out, file))
	if err != nil {
		return err
	}
	r.doc.Pprof = append(r.doc.Pprof, result.Pprof{Arm: name, Kind: kind, File: file})
	return nil
}
