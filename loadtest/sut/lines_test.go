package sut

import (
	"slices"
	"strings"
	"testing"
)

func TestLinesAreWholeHoweverTheyArrive(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	for _, writes := range [][]string{
		{"one\ntwo\n", "\nthree"},
		{"o", "n", "e\r\n", "two\n\nthr", "ee"},
	} {
		var got []string
		l := &lines{each: func(s string) { got = append(got, s) }}
		for _, w := range writes {
			if n, err := l.Write([]byte(w)); n != len(w) || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := []string{"one", "two", ""}; !slices.Equal(got, want) {
			t.Errorf("%q: got %q", writes, got)
		}
	}
	var got []string
	l := &lines{each: func(s string) { got = append(got, s) }}
	l.Write([]byte(long + "yz\n"))
	l.Write([]byte(long))
	if len(l.rest) != 0 || len(got) != 2 || len(got[0]) != longestLine+2 || got[1] != long {
		t.Errorf("a line without an end is held: %d lines, %d bytes held", len(got), len(l.rest))
	}
}

func TestTailForgetsTheBeginning(t *testing.T) {
	var tl tail
	tl.Write([]byte("panic: long ago\n"))
	for range 3 {
		tl.Write([]byte(strings.Repeat(" ", tailSize-3) + "ok\n"))
	}
	if len(tl.b) < tailSize || len(tl.b) > 2*tailSize {
		t.Errorf("it holds %d bytes", len(tl.b))
	}
	if got := tl.last(); got != "ok" {
		t.Errorf("got %q", got)
	}
}
