package load

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatebench/internal/conf"
)

// Objective is what a load is to come out as: a bound for each figure it names.
//
//	{p99: "< 50ms", errors: "< 0.1%"}
//
// Quantiles, mean and max are those of the response time. Of a quantile that is
// only known to be at least something, nobody knows that it is below anything, so
// that bound is missed.
type Objective map[string]Bound

// dimension is what kind of number a figure is.
type dimension string

const (
	duration dimension = "a duration, like 50ms"
	share    dimension = "a percentage, like 0.1%"
	rate     dimension = "a rate, like 1000/s"
)

// figures are what an objective can speak of: what kind of number each is, and its
// value in a summary in milliseconds, shares or requests per second. atLeast says
// that the true value may be larger; ok is false where there is none.
var figures = map[string]struct {
	dimension
	of func(*Summary) (v float64, atLeast, ok bool)
}{
	"p50":        {duration, quantileOf("p50", func(t *Times) *float64 { return t.P50 })},
	"p90":        {duration, quantileOf("p90", func(t *Times) *float64 { return t.P90 })},
	"p95":        {duration, quantileOf("p95", func(t *Times) *float64 { return t.P95 })},
	"p99":        {duration, quantileOf("p99", func(t *Times) *float64 { return t.P99 })},
	"p99.9":      {duration, quantileOf("p99.9", func(t *Times) *float64 { return t.P999 })},
	"mean":       {duration, quantileOf("mean", func(t *Times) *float64 { return &t.Mean })},
	"max":        {duration, quantileOf("max", func(t *Times) *float64 { return &t.Max })},
	"errors":     {share, func(s *Summary) (float64, bool, bool) { return part(s.Requests.Failed, s.Requests.Sent) }},
	"rejected":   {share, func(s *Summary) (float64, bool, bool) { return part(s.Requests.Rejected, s.Requests.Sent) }},
	"dropped":    {share, func(s *Summary) (float64, bool, bool) { return part(s.Requests.Dropped, s.Requests.Planned) }},
	"throughput": {rate, func(s *Summary) (float64, bool, bool) { return s.Throughput, false, s.Seconds > 0 }},
	"goodput":    {rate, func(s *Summary) (float64, bool, bool) { return s.Goodput, false, s.Seconds > 0 }},
}

func quantileOf(name string, of func(*Times) *float64) func(*Summary) (float64, bool, bool) {
	return func(s *Summary) (float64, bool, bool) {
		if s.ResponseTime == nil || of(s.ResponseTime) == nil {
			return 0, false, false
		}
		return *of(s.ResponseTime), slices.Contains(s.ResponseTime.AtLeast, name), true
	}
}

func part(n, of int64) (v float64, atLeast, ok bool) {
	if of == 0 {
		return 0, false, false
	}
	return float64(n) / float64(of), false, true
}

// Bound is one side of a figure: "< 50ms", "<= 0.1%", "> 1000/s".
type Bound struct {
	op    string
	limit float64 // ms, share or requests per second
	text  string  // of the limit, as written
	is    dimension
}

// operators are the comparisons; the longer ones come first, since they begin like the
// shorter ones.
var operators = []string{"<=", ">=", "<", ">"}

// UnmarshalText reads a comparison and a value with its unit.
func (b *Bound) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, op := range operators {
		rest, ok := strings.CutPrefix(s, op)
		if !ok {
			continue
		}
		b.op, b.text = op, strings.TrimSpace(rest)
		if b.read() {
			return nil
		}
		break
	}
	return fmt.Errorf(`%q is not a bound: write a comparison (<, <=, > or >=) and a value with its unit, like "< 50ms", "<= 0.1%%" or "> 1000/s"`, text)
}

func (b *Bound) read() bool {
	if d, err := conf.ParseDuration(b.text); err == nil {
		b.is, b.limit = duration, millis(d)
		return true
	}
	if r, err := conf.ParseRatio(b.text); err == nil {
		b.is, b.limit = share, float64(r)
		return true
	}
	if r, err := conf.ParseRate(b.text); err == nil {
		b.is, b.limit = rate, r.PerSecond
		return true
	}
	return false
}

// MarshalText writes b as UnmarshalText reads it.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bound) String() string { return strings.TrimSpace(b.op + " " + b.text) }

// holds reports whether v, or every value from v upwards, is within the bound.
func (b Bound) holds(v float64, atLeast bool) bool {
	switch b.op {
	case "<":
		return v < b.limit && !atLeast
	case "<=":
		return v <= b.limit && !atLeast
	case ">":
		return v > b.limit
	}
	return v >= b.limit
}

// Parse adds one bound to o as a flag has it: "p99<50ms".
func (o Objective) Parse(s string) error {
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return fmt.Errorf("%q bounds nothing: write a figure, a comparison and a value, like p99<50ms", s)
	}
	var b Bound
	if err := b.UnmarshalText([]byte(s[i:])); err != nil {
		return err
	}
	o[strings.TrimSpace(s[:i])] = b
	return nil
}

// Validate names every figure that there is not, and every bound in another unit
// than its figure's.
func (o Objective) Validate() error {
	var c conf.Check
	for _, name := range slices.Sorted(maps.Keys(o)) {
		f, ok := figures[name]
		if !ok {
			c.That(false, name, "is not a figure; the figures are %s", strings.Join(slices.Sorted(maps.Keys(figures)), ", "))
			continue
		}
		c.That(o[name].is == f.dimension, name, "%q bounds by something else than %s", o[name], f.dimension)
	}
	return c.Err()
}

// Missed says, figure by figure, what of o a summary does not meet: nothing, if it
// meets all.
func (o Objective) Missed(s *Summary) []string {
	var missed []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		b := o[name]
		switch v, atLeast, ok := figures[name].of(s); {
		case !ok:
			missed = append(missed, fmt.Sprintf("%s is to be %s, and there is no figure to say so", name, b))
		case !b.holds(v, atLeast):
			is := "is"
			if atLeast {
				is = "is at least"
			}
			missed = append(missed, fmt.Sprintf("%s is to be %s, and %s %s", name, b, is, b.is.format(v)))
		}
	}
	return missed
}

// format writes a figure in the unit that people write it in.
func (d dimension) format(v float64) string {
	switch d {
	case duration:
		return time.Duration(v * float64(time.Millisecond)).Round(time.Microsecond).String()
	case share:
		return conf.Ratio(v).String()
	}
	return conf.Rate{PerSecond: v}.String()
}

func itoa(i int) string { return strconv.Itoa(i) }
