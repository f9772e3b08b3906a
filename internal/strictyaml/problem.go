package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// An Error is one fault in a configuration: where it is, what is wrong, and where
// possible a cure.
type Error struct {
	File         string // "" if the value did not come from a file
	Line, Column int    // from 1, in characters; 0 if the whole file is meant
	Variable     string // the environment variable that holds the value, or ""
	Path         string // of the key from the document's root, "" if none is meant
	Message      string
	Hint         string

	source string // the line, as in the file
	cause  error
}

func (e *Error) Unwrap() error { return e.cause }

// Error gives the fault as
//
//	FILE:LINE:COLUMN: path.to.key: sentence
//	  12 | the line
//	     |     ^
//	hint: cure
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Variable != "":
		b.WriteString(e.Variable)
	case e.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d", e.File, e.Line, e.Column)
	default:
		b.WriteString(e.File)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Message)
	if e.Line > 0 {
		before, line := excerpt(e.source, e.Column)
		fmt.Fprintf(&b, "\n%4d | %s\n     | %s^", e.Line, line, before)
	}
	if e.Hint != "" {
		b.WriteString("\nhint: " + e.Hint)
	}
	return b.String()
}

// excerpt returns what of a line fits a terminal, and blanks up to the column. A
// file's escape sequences do not reach the terminal.
func excerpt(line string, column int) (blanks, shown string) {
	const width, lead = 100, 60
	rs := []rune(strings.TrimRightFunc(line, unicode.IsSpace))
	column = min(column, len(rs)+1)
	if len(rs) > width {
		from := max(0, min(column-lead, len(rs)-width))
		rs = rs[from:min(from+width, len(rs))]
		column -= from
	}
	var b strings.Builder
	for i, r := range rs {
		blank := byte(' ')
		switch {
		case r == '\t': // the caret must stand below its character
			blank = '\t'
		case !unicode.IsPrint(r):
			rs[i] = '?'
		}
		if i < column-1 {
			b.WriteByte(blank)
		}
	}
	return b.String(), string(rs)
}

// join returns the faults in the order of the file, those of the environment and
// of defaults last, each place and path once.
func join(faults []*Error) error {
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Variable, b.Variable),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	var errs []error
	for i, f := range faults {
		if i > 0 && f.sameAs(faults[i-1]) {
			continue
		}
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

func rank(e *Error) int {
	switch {
	case e.Variable != "":
		return 2
	case e.Line == 0:
		return 1
	}
	return 0
}

func (e *Error) sameAs(o *Error) bool {
	return e.File == o.File && e.Line == o.Line && e.Column == o.Column &&
		e.Variable == o.Variable && e.Path == o.Path && e.Message == o.Message
}

// Errors returns every *Error in err's tree, in order.
func Errors(err error) []*Error {
	switch e := err.(type) { //nolint:errorlint // this is what unwraps
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, err := range e.Unwrap() {
			all = append(all, Errors(err)...)
		}
		return all
	}
	return Errors(errors.Unwrap(err))
}

// Join merges the errors that this package made into one, in the order of the
// file.
func Join(errs ...error) error {
	var all []*Error
	for _, err := range errs {
		all = append(all, Errors(err)...)
	}
	return join(all)
}

// Nearest returns the candidate that word was probably meant to be, if any is
// near: case and separators do not count, and one mistake in three letters is
// forgiven.
func Nearest(word string, candidates []string) (string, bool) {
	const longest = 64 // no key is longer, and the distance takes the square
	best, bestDistance := "", 1+max(1, len(bare(word))/3)
	if len(word) > longest {
		return "", false
	}
	for _, c := range candidates {
		if d := distance(bare(word), bare(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best, best != ""
}

// bare leaves letters and digits, in lower case: maxConns is max_conns.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between a and b (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			swap := 1
			if x[i-1] == y[j-1] {
				swap = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+swap)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
