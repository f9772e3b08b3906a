package experiment

import (
	"math"
	"testing"

	"gatebench/loadtest/load"
)

func TestHalvesOfAWindow(t *testing.T) {
	point := func(at float64, ok int64, p50 float64) load.Point { return load.Point{At: at, OK: ok, OKP50: &p50} }
	for _, c := range []struct {
		what    string
		seconds float64
		points  []load.Point
		want    float64
		none    bool
	}{
		{"steady", 2, []load.Point{point(0, 100, 2), point(1, 100, 2)}, 0, false},
		{"half as long again", 4, []load.Point{point(0, 100, 2), point(1, 100, 2), point(2, 100, 3), point(3, 100, 3)}, .5, false},
		{"what came after the window is late by nature", 2, []load.Point{point(0, 100, 2), point(1, 100, 2), point(2, 3, 50)}, 0, false},
		{"the middle of three counts nowhere", 3, []load.Point{point(0, 100, 2), point(1, 100, 9), point(2, 100, 2.2)}, .1, false},
		{"each interval by its answers", 4, []load.Point{point(0, 10, 9), point(1, 90, 1), point(2, 100, 1.8), {At: 3}}, 0, false},
		{"no answers in one half", 2, []load.Point{point(0, 100, 2), {At: 1}}, 0, true},
		{"one interval", 1, []load.Point{point(0, 100, 2)}, 0, true},
	} {
		got, ok := halves(&load.Summary{Seconds: c.seconds, Series: load.Series{Interval: 1, Points: c.points}})
		if ok == c.none || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", c.what, got, ok, c.want)
		}
	}
}
