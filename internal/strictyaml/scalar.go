package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gatebench/internal/conf"
)

// form is how a single value is written, which decides what it may become: a
// quoted "5" is text, a plain 5 is a number.
type form int

const (
	quoted   form = iota
	text          // plain, neither number nor bool
	number        // plain
	boolean       // plain
	variable      // from the environment, where nothing is quoted
)

// A scalar is a single value as written.
type scalar struct {
	text string
	form form
}

// decimal is the one way to write a whole number: YAML's 0x10, 0o7, 1_000 and
// 010 mean different things to different readers.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// A misfit is a value that cannot become what is wanted.
type misfit struct{ message, hint string }

func (m *misfit) Error() string { return m.message }

// into stores s in v.
func (s scalar) into(v reflect.Value) error {
	if v.Type() == durationType {
		d, err := conf.ParseDuration(s.text)
		if err != nil {
			return s.durationMisfit(err)
		}
		v.SetInt(int64(d))
		return nil
	}
	if reflect.PointerTo(v.Type()).Implements(textReader) {
		read := reflect.New(v.Type()) // a fresh one: what fails may leave anything behind
		if err := read.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s.text)); err != nil {
			return err
		}
		v.Set(read.Elem())
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if s.form == boolean {
			return &misfit{fmt.Sprintf("must be text, and %s is a yes-or-no value", s.text), fmt.Sprintf("write it in quotes: %q", s.text)}
		}
		v.SetString(s.text)
	case reflect.Bool:
		return s.intoBool(v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return s.intoInt(v)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(s.text, 64)
		if s.form == quoted || err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return &misfit{message: fmt.Sprintf("must be a number, not %s", s)}
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("strictyaml: no single value can become a %s", v.Type())
	}
	return nil
}

// durationMisfit adds what the writer of a bare number probably meant.
func (s scalar) durationMisfit(err error) error {
	m := &misfit{message: err.Error()}
	if trimmed := strings.ReplaceAll(s.text, " ", ""); trimmed != s.text {
		if _, err := conf.ParseDuration(trimmed); err == nil {
			m.hint = fmt.Sprintf("write %s, without a blank", trimmed)
		}
	} else if f, err := strconv.ParseFloat(s.text, 64); err == nil && f > 0 && decimal.MatchString(s.text) {
		m.hint = fmt.Sprintf("a number alone has no unit: write %ss or %sms", s.text, s.text)
	} else if lower := strings.ToLower(s.text); lower != s.text {
		if _, err := conf.ParseDuration(lower); err == nil {
			m.hint = "units are in lower case: " + lower
		}
	}
	return m
}

func (s scalar) intoBool(v reflect.Value) error {
	if (s.form == boolean || s.form == variable) && (s.text == "true" || s.text == "false") {
		v.SetBool(s.text == "true")
		return nil
	}
	m := &misfit{message: fmt.Sprintf("must be true or false, not %s", s)}
	switch strings.ToLower(s.text) {
	case "yes", "on", "true", "1", "y":
		m.hint = "write true, without quotes"
	case "no", "off", "false", "0", "n":
		m.hint = "write false, without quotes"
	}
	return m
}

func (s scalar) intoInt(v reflect.Value) error {
	whole := decimal.MatchString(s.text)
	if s.form == quoted || !whole {
		m := &misfit{message: fmt.Sprintf("must be a whole number in decimal digits, not %s", s)}
		if whole {
			m.hint = "write it without quotes"
		}
		return m
	}
	var err error
	if v.CanUint() {
		if strings.HasPrefix(s.text, "-") {
			return &misfit{message: fmt.Sprintf("must not be negative, and %s is", s.text)}
		}
		var n uint64
		if n, err = strconv.ParseUint(strings.TrimPrefix(s.text, "+"), 10, v.Type().Bits()); err == nil {
			v.SetUint(n)
		}
	} else {
		var n int64
		if n, err = strconv.ParseInt(s.text, 10, v.Type().Bits()); err == nil {
			v.SetInt(n)
		}
	}
	if errors.Is(err, strconv.ErrRange) {
		return &misfit{message: "is out of range: " + s.text}
	}
	return err
}

// String is s as it stands in a sentence.
func (s scalar) String() string {
	if s.form == number || s.form == boolean {
		return s.text
	}
	return strconv.Quote(s.text)
}

// written returns v as into reads it.
func written(v reflect.Value) string {
	if v.Type() == durationType {
		return duration(time.Duration(v.Int()))
	}
	if v.Type().Implements(textWriter) {
		b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return ""
		}
		return string(b)
	}
	return fmt.Sprint(v.Interface())
}

// duration is d without the zeros that [time.Duration.String] ends in: 1h, not
// 1h0m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
