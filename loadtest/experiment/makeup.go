package experiment

import (
	"context"
	"fmt"
	"slices"

	"gatebench/loadtest/gate"
	"gatebench/loadtest/result"
)

// part is what of a block can be run by itself: the duet, or one profile over all
// arms.
type part struct {
	phase   result.Phase
	profile int // of the plan's, for solo
}

// parts are those of a whole block.
func (p Plan) parts() []part {
	var ps []part
	if p.Duet.Duration > 0 {
		ps = append(ps, part{phase: result.Duet})
	}
	for i := range p.Profiles {
		ps = append(ps, part{phase: result.Solo, profile: i})
	}
	return ps
}

// name is the profile that the part's trials bear.
func (p Plan) name(of part) string {
	if of.phase == result.Duet {
		return duetProfile
	}
	return p.Profiles[of.profile].Name
}

// lacking are the parts in which an arm lacks good blocks, and in which left more
// could still help it to a verdict.
func (r *run) lacking(left int) []part {
	var ps []part
	baseline := r.plan.Arms[0].Name
	for _, of := range r.plan.parts() {
		if slices.ContainsFunc(r.plan.Arms, func(a Arm) bool {
			pairs := gate.Pairs(r.doc, of.phase, r.plan.name(of), a.Name, baseline)
			return pairs.Good() < r.plan.Blocks && !pairs.Lost(left)
		}) {
			ps = append(ps, of)
		}
	}
	return ps
}

// mostMakeUp is how many blocks may be run beyond the plan to make up for void ones,
// as a share of the planned ones.
const mostMakeUp = 0.5

// makeUp runs again, in blocks of their own at the end, those parts of blocks in
// which a trial is void: the part with all arms, so that what is compared lies close
// together in time.
func (r *run) makeUp(ctx context.Context, profiles []Profile) error {
	made := 0
	defer func() {
		if made > 0 {
			r.warn(fmt.Sprintf("%s beyond the %d planned made up for void ones", blocks(made), r.plan.Blocks))
		}
	}()
	most := int(mostMakeUp * float64(r.plan.Blocks))
	for extra := range most {
		parts := r.lacking(most - extra)
		if len(parts) == 0 {
			return nil
		}
		if !r.clock.fits(r.plan.timeOf(parts)) {
			r.warn(fmt.Sprintf("the budget of %v holds no more blocks to make up for void ones", r.plan.Budget))
			return nil
		}
		r.clock.more(r.plan.timeOf(parts), len(parts)*len(r.plan.Arms))
		if err := r.block(ctx, r.plan.Blocks+extra, parts, profiles); err != nil {
			return err
		}
		made++
	}
	return nil
}

func blocks(n int) string {
	if n == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}
