package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gatebench/loadtest/result"
	"gatebench/loadtest/stats"
)

// ChangesSchema names the layout of [Changes].
const ChangesSchema = "gatebench.compare/1"

// Changes is what became of the same arms from one run to another, as printed by
// `gatebench compare --json`.
type Changes struct {
	Schema string `json:"schema"`
	Old    Run    `json:"old"`
	New    Run    `json:"new"`

	// Method says how the verdicts come about.
	Method string `json:"method"`

	// Regressed is set where some regression is certain and certainly larger
	// than its margin.
	Regressed bool `json:"regressed"`

	// Valid is false where one of the two results is not; InvalidReasons then
	// says which and why, and no change has another verdict than "not valid".
	Valid          bool     `json:"valid"`
	InvalidReasons []string `json:"invalid_reasons,omitempty"`

	// Changes judge each arm's ratio to the baseline of its own run.
	Changes []Change `json:"changes"`

	// Absolutes are the figures themselves. They are judged only where a floor
	// arm shows that the two machines were equally fast.
	Absolutes []Change `json:"absolutes"`
	// Floor says whether it does.
	Floor string `json:"floor"`

	// Versions are what the gateways said of their libraries and now say
	// otherwise.
	Versions []Difference `json:"versions"`

	Warnings []string `json:"warnings"`
}

// Run tells a result from others.
type Run struct {
	Plan     string    `json:"plan"`
	Started  time.Time `json:"started"`
	Command  string    `json:"command"`
	Version  string    `json:"version"` // of gatebench
	Go       string    `json:"go"`
	Kernel   string    `json:"kernel,omitempty"`
	CPU      string    `json:"cpu,omitempty"`
	Cores    int       `json:"cores"`
	Valid    bool      `json:"valid"`
	Baseline string    `json:"baseline"`
}

// Change is one arm in one metric.
type Change struct {
	Arm     string `json:"arm"`
	Profile string `json:"profile"`
	Metric  string `json:"metric"`

	// Old and New are what is compared: the ratio to the baseline of the same
	// run (Hodges–Lehmann), or for an absolute figure its median over blocks.
	// Null where the run has no data.
	Old *float64 `json:"old"`
	New *float64 `json:"new"`

	// Ratio is new ÷ old with its interval. Lo and Hi are null where the blocks
	// are too few to bound it.
	Ratio *float64 `json:"ratio"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`

	// Level is the confidence of [Lo, Hi]; Margin the smallest relative change
	// that matters.
	Level  float64 `json:"level"`
	Margin float64 `json:"margin"`

	Verdict ChangeVerdict `json:"verdict"`
	// Beyond is set for a regression whose whole interval lies beyond the
	// margin.
	Beyond bool `json:"beyond_margin"`

	OldBlocks int `json:"old_blocks"`
	NewBlocks int `json:"new_blocks"`
	// BlocksNeeded is, for "cannot tell", about how many each run would need.
	BlocksNeeded int    `json:"blocks_needed,omitempty"`
	Why          string `json:"why,omitempty"`
}

// ChangeVerdict is what a comparison of two runs concludes.
type ChangeVerdict string

const (
	Regression       ChangeVerdict = "regression"
	Improvement      ChangeVerdict = "improvement"
	NoChange         ChangeVerdict = "no meaningful difference"
	CannotTellChange ChangeVerdict = "cannot tell"
	ChangeNotValid   ChangeVerdict = "not valid"
	// NotJudged is for an absolute figure of machines that are not known to be
	// equally fast.
	NotJudged ChangeVerdict = "not judged"
)

const compareMethod = "per block the log-ratio of each arm to the baseline of its own run; " +
	"their difference between the runs, unpaired: Hodges–Lehmann shift with the exact Mann–Whitney interval 95 %; " +
	"claims only where Welch's t agrees, Holm over arms"

// Compare says what changed from old to new. margin is the smallest relative change
// that matters, 0 for each metric's own. It refuses with a [*NotComparable] what
// was not configured alike.
func Compare(old, latest *result.Document, margin float64) (*Changes, error) {
	if err := alike(old, latest); err != nil {
		return nil, err
	}
	c := &Changes{
		Schema: ChangesSchema, Old: runOf(old), New: runOf(latest), Method: compareMethod,
		Changes: []Change{}, Absolutes: []Change{}, Versions: versions(old, latest), Warnings: unlike(old, latest),
	}
	c.InvalidReasons = append(reasonsOf("the old", old), reasonsOf("the new", latest)...)
	c.Valid = len(c.InvalidReasons) == 0
	for _, p := range pairs(old, latest) {
		if margin > 0 {
			p.metric.Interest = margin
		}
		c.Changes = append(c.Changes, p.ratios()...)
	}
	c.absolutes(old, latest, margin)
	if !c.Valid {
		c.void()
	}
	for _, ch := range slices.Concat(c.Changes, c.Absolutes) {
		c.Regressed = c.Regressed || ch.Beyond
	}
	return c, nil
}

func runOf(d *result.Document) Run {
	m := d.Machine
	r := Run{Plan: d.Plan, Started: d.Started, Command: d.Command, Version: m.Version, Go: m.Go, Kernel: m.Kernel, CPU: m.CPU, Cores: m.Cores, Valid: d.Valid}
	if len(d.Arms) > 0 {
		r.Baseline = d.Arms[0].Name
	}
	return r
}

func reasonsOf(which string, d *result.Document) []string {
	var rs []string
	if d.Valid {
		return nil
	}
	for _, reason := range d.InvalidReasons {
		rs = append(rs, which+" result: "+reason)
	}
	if len(rs) == 0 {
		rs = []string{which + " result is not valid"}
	}
	return rs
}

// void leaves the figures and takes the verdicts; the reasons stand above.
func (c *Changes) void() {
	for _, list := range [][]Change{c.Changes, c.Absolutes} {
		for i := range list {
			list[i].Verdict, list[i].Beyond, list[i].BlocksNeeded, list[i].Why = ChangeNotValid, false, 0, ""
		}
	}
}

// pair is one metric of one profile in both runs.
type pair struct {
	metric   result.Metric
	profile  string
	old, new measured
	oldDoc   *result.Document
	newDoc   *result.Document
}

// pairs lists what is judged and was measured in either run: what one run lacks
// shows as missing.
func pairs(old, latest *result.Document) []pair {
	var ps []pair
	for _, s := range slices.Concat(series(old), series(latest)) {
		if slices.ContainsFunc(ps, func(p pair) bool { return p.metric.Name == s.metric.Name && p.profile == s.profile }) {
			continue
		}
		ps = append(ps, pair{
			metric: s.metric, profile: s.profile, oldDoc: old, newDoc: latest,
			old: measure(old, s.metric, s.profile), new: measure(latest, s.metric, s.profile),
		})
	}
	return ps
}

// ratios judges every arm but the baseline and its copy.
func (p pair) ratios() []Change {
	baseline := p.oldDoc.Arms[0].Name
	var arms []string
	var family []stats.Shift
	for _, a := range contenders(p.oldDoc) {
		arms = append(arms, a.Name)
		family = append(family, stats.Shift{From: p.old.logRatios(a.Name, baseline), To: p.new.logRatios(a.Name, baseline)})
	}
	changes := p.judge(arms, family)
	for i, s := range family {
		changes[i].Old, changes[i].New = center(s.From), center(s.To)
	}
	for i := range changes {
		if why := p.spoiled(baseline, changes[i].Arm); why != "" {
			c := &changes[i]
			c.Verdict, c.Beyond, c.BlocksNeeded, c.Why = ChangeNotValid, false, 0, why
		}
	}
	return changes
}

// spoiled is why neither run's figures may be held against the other's: in one of
// them two copies of an arm differ, or an arm mostly failed. "" if they may.
func (p pair) spoiled(arms ...string) string {
	for _, side := range []struct {
		which   string
		figures measured
		doc     *result.Document
	}{{"old", p.old, p.oldDoc}, {"new", p.new, p.newDoc}} {
		if noise := side.figures.sentinel(side.doc); noise.differs {
			return "in the " + side.which + " run, " + noise.sentence(p.metric)
		}
		for _, arm := range arms {
			if why := side.figures.distrust(side.doc, arm); why != "" {
				return "in the " + side.which + " run, " + why
			}
		}
	}
	return ""
}

// center is the ratio that log-ratios stand for.
func center(d []float64) *float64 {
	if len(d) == 0 {
		return nil
	}
	return new(math.Exp(stats.HodgesLehmann(d, level).Center))
}

// judge answers a family of shifts on the log scale, one an arm.
func (p pair) judge(arms []string, family []stats.Shift) []Change {
	rule := p.rule(p.metric.Interest)
	var changes []Change
	for i, j := range stats.JudgeShifts(family, rule) {
		c := Change{
			Arm: arms[i], Profile: p.profile, Metric: p.metric.Name, Level: rule.Level, Margin: p.metric.Interest,
			OldBlocks: len(family[i].From), NewBlocks: len(family[i].To),
		}
		c.fill(j, p.metric, rule.Interest)
		changes = append(changes, c)
	}
	return changes
}

// rule is that of the run with the higher level: one whose number of blocks was chosen
// by what it saw has one above the usual.
func (p pair) rule(interest float64) stats.Rule {
	return stats.Rule{Level: max(p.old.rule().Level, p.new.rule().Level), Interest: math.Log1p(interest), MinN: minClaim}
}

// fill takes over a judgement, from the log scale.
func (c *Change) fill(j stats.Judgement, m result.Metric, margin float64) {
	if j.N > 0 {
		c.Ratio = new(math.Exp(j.Estimate.Center))
	}
	if j.Estimate.Bounded {
		c.Lo, c.Hi = new(math.Exp(j.Estimate.Lo)), new(math.Exp(j.Estimate.Hi))
	}
	up, down := Improvement, Regression
	beyond := j.Estimate.Hi < -margin && j.Student.Hi < -margin
	if m.LowerIsBetter {
		up, down = down, up
		beyond = j.Estimate.Lo > margin && j.Student.Lo > margin
	}
	switch j.Outcome {
	case stats.Higher:
		c.Verdict = up
	case stats.Lower:
		c.Verdict = down
	case stats.Equivalent:
		c.Verdict = NoChange
	case stats.Undecided:
		c.Verdict, c.BlocksNeeded, c.Why = CannotTellChange, j.Needed, c.undecided(j)
	}
	c.Beyond = c.Verdict == Regression && beyond
}

func (c *Change) undecided(j stats.Judgement) string {
	switch {
	case c.OldBlocks == 0 && c.NewBlocks == 0:
		return "no data in either run"
	case c.OldBlocks == 0:
		return "no data in the old run"
	case c.NewBlocks == 0:
		return "no data in the new run"
	case j.N < minClaim:
		return fmt.Sprintf("%s cannot carry a claim, %d are the least", plural(j.N, "block"), minClaim)
	case j.Split:
		return "a few blocks decide: only one of the two tests sees a difference"
	}
	return ""
}

// absolutes adds the figures themselves, the baseline's among them. What drifted
// between two dates (the machine's speed) is in them, so they are judged only where
// the floor arms of both runs are shown to be alike.
func (c *Changes) absolutes(old, latest *result.Document, margin float64) {
	floor, known := floorOf(old)
	c.Floor = "not both runs have a floor arm, so absolute figures are shown and not judged"
	if known {
		c.Floor = "the floor arms agree in what is judged below"
	}
	for _, p := range pairs(old, latest) {
		own := p.metric.Interest
		if margin > 0 {
			p.metric.Interest = margin
		}
		var arms []string
		var family []stats.Shift
		for _, a := range old.Arms {
			if a.SentinelOf == "" && a.Name != floor {
				arms = append(arms, a.Name)
				family = append(family, stats.Shift{From: p.old.logs(a.Name), To: p.new.logs(a.Name)})
			}
		}
		changes := p.judge(arms, family)
		agree := known && p.floorsAgree(floor, own)
		for i := range changes {
			ch := &changes[i]
			ch.Old, ch.New = median(p.old.figures[ch.Arm]), median(p.new.figures[ch.Arm])
			if why := p.spoiled(ch.Arm); agree && why != "" {
				ch.Verdict, ch.Beyond, ch.BlocksNeeded, ch.Why = ChangeNotValid, false, 0, why
			}
			if !agree {
				ch.Verdict, ch.Beyond, ch.BlocksNeeded, ch.Why = NotJudged, false, 0, ""
				if known {
					ch.Why = "the floor arms are not shown to agree in " + p.metric.Title
				}
			}
		}
		c.Absolutes = append(c.Absolutes, changes...)
	}
}

func (p pair) floorsAgree(floor string, interest float64) bool {
	shift := stats.Shift{From: p.old.logs(floor), To: p.new.logs(floor)}
	return stats.JudgeShifts([]stats.Shift{shift}, p.rule(interest))[0].Outcome == stats.Equivalent
}

// logs are the logarithms of an arm's figures, in the order of blocks.
func (s measured) logs(arm string) []float64 {
	var ones, figures []float64
	for _, block := range slices.Sorted(maps.Keys(s.figures[arm])) {
		ones, figures = append(ones, 1), append(figures, s.figures[arm][block])
	}
	return stats.LogRatios(ones, figures)
}
