// Package conf has the value types that configuration is written in (sizes,
// ratios, rates) and the one way to report a bad value. It knows neither YAML
// nor any section of the file, so every package may have a Config of its own.
package conf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Problem is one bad value: where, what is wrong, and the cure. Whoever knows
// the file turns Path into a line and a column.
type Problem struct {
	// Path names the value from the root of the section that checks it,
	// "pool.max_conns".
	Path    string
	Message string
}

func (p Problem) Error() string { return p.Path + ": " + p.Message }

// Check collects problems, so that a user sees all of them at once.
type Check struct{ problems []error }

// That adds a problem at path unless ok.
func (c *Check) That(ok bool, path, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// Within adds the problems of a nested section under prefix.
func (c *Check) Within(prefix string, err error) {
	for _, p := range Problems(err) {
		p.Path = prefix + "." + p.Path
		c.problems = append(c.problems, p)
	}
}

// Err returns the problems joined, nil if there are none.
func (c *Check) Err() error { return errors.Join(c.problems...) }

// Problems returns every Problem in err's tree, in order.
func Problems(err error) []Problem {
	switch e := err.(type) { //nolint:errorlint // this is what unwraps
	case nil:
		return nil
	case Problem:
		return []Problem{e}
	case interface{ Unwrap() []error }:
		var ps []Problem
		for _, err := range e.Unwrap() {
			ps = append(ps, Problems(err)...)
		}
		return ps
	}
	return Problems(errors.Unwrap(err))
}

// Size is a number of bytes, written "64KiB", "10MB" or "0B".
type Size int64

// The binary units; decimal ones (kB, MB, GB) are read too.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

var sizeUnits = []struct {
	name string
	size Size
}{
	{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", Byte},
}

// ParseSize reads a whole number with a unit.
func ParseSize(s string) (Size, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(u.size) {
			break
		}
		return Size(n) * u.size, nil
	}
	return 0, fmt.Errorf("%q is not a size: write a whole number with a unit, like 64KiB, 10MB or 0B", s)
}

func (s Size) String() string {
	for _, u := range sizeUnits[:3] {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes s as ParseSize reads it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSize(string(b))
	return err
}

// Ratio is a share in [0,1], written as a percentage: "20%".
type Ratio float64

// ParseRatio reads a percentage from 0% to 100%.
func ParseRatio(s string) (Ratio, error) {
	digits, ok := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || !(f >= 0 && f <= 100) {
		return 0, fmt.Errorf("%q is not a share: write a percentage from 0%% to 100%%, like 20%%", s)
	}
	return Ratio(f / 100), nil
}

func (r Ratio) String() string {
	return strconv.FormatFloat(math.Round(float64(r)*1e8)/1e6, 'f', -1, 64) + "%"
}

// MarshalText writes r as ParseRatio reads it.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRatio.
func (r *Ratio) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRatio(string(b))
	return err
}

// Rate is an arrival rate, written "1000/s", or as a share of a saturation
// that is measured first, "45%". Exactly one of the two is set.
type Rate struct {
	PerSecond    float64
	OfSaturation Ratio
}

// ParseRate reads a rate per s or min, or a percentage above 0%.
func ParseRate(s string) (Rate, error) {
	if strings.HasSuffix(s, "%") {
		if r, err := ParseRatio(s); err == nil && r > 0 {
			return Rate{OfSaturation: r}, nil
		}
	}
	for suffix, seconds := range map[string]float64{"/s": 1, "/min": 60} {
		digits, ok := strings.CutSuffix(s, suffix)
		if !ok {
			continue
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64); err == nil && f > 0 && !math.IsInf(f, 0) {
			return Rate{PerSecond: f / seconds}, nil
		}
	}
	return Rate{}, fmt.Errorf("%q is not a rate: write requests per second, like 1000/s, or a share of the measured saturation, like 45%%", s)
}

// IsZero reports whether no rate is set.
func (r Rate) IsZero() bool { return r == Rate{} }

func (r Rate) String() string {
	if r.OfSaturation > 0 {
		return r.OfSaturation.String()
	}
	return strconv.FormatFloat(r.PerSecond, 'f', -1, 64) + "/s"
}

// MarshalText writes r as ParseRate reads it.
func (r Rate) MarshalText() ([]byte, error) {
	if r.IsZero() {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// ParseDuration is time.ParseDuration without its surprises: a unit is needed
// except for 0, and a negative duration is refused.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%q is not a duration: write a number with a unit, like 250ms, 5s or 1m30s", s)
	}
	return d, nil
}
