package strictyaml

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatebench/internal/conf"
)

// What Marshal writes, Decode reads back, whatever stood there before.
func TestRoundTrip(t *testing.T) {
	words := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			"", " ", "true", "No", "~", "null", "5", "0x1", "1e3", ".inf", "5s", "20%", "16KiB", "-", "- a", "?", "a: b", "a:", ":a", "a #b", "#", "a,b",
			"[a]", "{a}", "*a", "&a", "!a", "|", ">", "@a", "`a", "%a", "<<", "---", "...", "a\nb", "\t", "\\", "\"", "'", "\u2028", "\ufeff", "\x7f", "😀",
			"5ms:90, 20ms:9", "http://127.0.0.1:8081", "net/http", "127.0.0.1:0", "localhost:80", "a:1", ".:1", "12:30", "[::1]:80", "fasthttp end to end", "2026-01-01", "12:30:45", "=", "0b1",
		}),
	)
	doors := rapid.Custom(func(t *rapid.T) door {
		return door{
			Colour:  words.Draw(t, "colour"),
			Open:    rapid.Bool().Draw(t, "open"),
			Width:   rapid.Int().Draw(t, "width"),
			Opening: time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "opening")),
			Lock: lock{
				Pins:      rapid.Uint8().Draw(t, "pins"),
				PinNames:  rapid.SliceOf(words).Draw(t, "names"),
				Tolerance: rapid.Float64().Draw(t, "tolerance"),
			},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := house{
			Version: rapid.Int().Draw(t, "version"),
			Door:    doors.Draw(t, "door"),
			Kitchen: kitchen{
				Pot:  conf.Size(rapid.Int64Range(0, math.MaxInt64).Draw(t, "pot")),
				Full: conf.Ratio(float64(rapid.IntRange(0, 10000).Draw(t, "full")) / 100 / 100),
				Flow: conf.Rate{PerSecond: rapid.Float64Range(1e-3, 1e9).Draw(t, "flow")},
			},
			Guests: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) guest { return guest{words.Draw(t, "name"), doors.Draw(t, "door")} }), 0, 3).Draw(t, "guests"),
			Rooms:  rapid.MapOfN(words, doors, 0, 3).Draw(t, "rooms"),
			Limits: rapid.MapOfN(words, rapid.Int64(), 0, 3).Draw(t, "limits"),
		}
		src, err := Marshal(&want)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse("house.yaml", src)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, src)
		}
		got := defaultHouse()
		if _, err := d.Decode(&got, Environment{}); err != nil {
			t.Fatalf("%v\nin\n%s", err, src)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(guest{}, Overlay{})); diff != "" {
			t.Errorf("-want +got:\n%s\nin\n%s", diff, src)
		}
		asJSON, err := JSON(want)
		if err != nil || !json.Valid(asJSON) {
			t.Errorf("JSON: %v\n%s", err, asJSON)
		}
	})
}

func TestMarshal(t *testing.T) {
	h := defaultHouse()
	got, err := Marshal(h, "kitchen.flow", "door.lock")
	want := `version: 1
door:
  colour: red
  open: true
  width: 80
  opening: 1s
kitchen:
  pot: 2KiB
  full: 50%
`
	if err != nil || string(got) != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
	asJSON, err := JSON(h, "door.lock", "door.open")
	wantJSON := `{"version":1,"door":{"colour":"red","width":80,"opening":"1s"},"kitchen":{"pot":"2KiB","full":"50%","flow":"3/s"}}`
	if err != nil || string(asJSON) != wantJSON {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, asJSON, wantJSON)
	}
}

func TestDurationsReadAsWritten(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 2*time.Hour + time.Second: "2h0m1s",
		10 * time.Minute: "10m", 20 * time.Hour: "20h", 100 * time.Minute: "1h40m", 250 * time.Millisecond: "250ms", 1500 * time.Microsecond: "1.5ms",
	} {
		got := duration(d)
		if back, err := conf.ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v is written %s and read %v, %v; want %s", d, got, back, err, want)
		}
	}
}

// Whatever the bytes: no panic, every fault in one of the file's lines, and what
// loads is written and read back to itself.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/cases/*.yaml")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := Parse("f.yaml", src)
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		h := defaultHouse()
		vs, err := d.Decode(&h, Environment{})
		for v := range vs.All() {
			if v.Path == "" {
				t.Errorf("a value without a path: %+v", v)
			}
		}
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		h.Extras = nil // kept as nodes, not as values
		again, err := Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		d, err = Parse("again.yaml", again)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, again)
		}
		var back house
		if _, err := d.Decode(&back, Environment{}); err != nil {
			t.Fatalf("%v\nin\n%s", err, again)
		}
		twice, err := Marshal(back)
		if err != nil || string(twice) != string(again) {
			t.Errorf("written\n%s\nand again\n%s", again, twice)
		}
	})
}

func checkFaults(t *testing.T, src []byte, err error) {
	es := Errors(err)
	if len(es) == 0 {
		t.Fatalf("an error of another type: %v", err)
	}
	lines := 1 + strings.Count(string(src), "\n")
	for _, e := range es {
		if e.Line < 0 || e.Line > lines || e.Message == "" || strings.Contains(e.Message, "\n") || !utf8.ValidString(e.Error()) {
			t.Errorf("%+v in %d lines", e, lines)
		}
	}
}

func TestKeysOfInlinedStructs(t *testing.T) {
	got := keysOf(fieldsOf(reflect.TypeFor[guest]()))
	if want := []string{"name", "colour", "open", "width", "opening", "lock"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
