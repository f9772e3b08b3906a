package strictyaml

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
)

var update = flag.Bool("update", false, "write what the golden cases give now")

// house is a file of every kind of value there is.
type house struct {
	Version int              `yaml:"version"`
	Door    door             `yaml:"door"`
	Kitchen kitchen          `yaml:"kitchen"`
	Guests  []guest          `yaml:"guests"`
	Rooms   map[string]door  `yaml:"rooms"`
	Extras  []Overlay        `yaml:"extras"`
	Limits  map[string]int64 `yaml:"limits"`
	Secret  string           // no key
}

type door struct {
	Colour  string        `yaml:"colour"`
	Open    bool          `yaml:"open"`
	Width   int           `yaml:"width"`
	Opening time.Duration `yaml:"opening"`
	Lock    lock          `yaml:"lock"`
}

type lock struct {
	Pins      uint8    `yaml:"pins"`
	PinNames  []string `yaml:"pin_names"`
	Tolerance float64  `yaml:"tolerance"`
}

func (l lock) Validate() error {
	var c conf.Check
	c.That(l.Pins >= 3, "pins", "%d pins hold nobody off: write 3 or more", l.Pins)
	for i, n := range l.PinNames {
		c.That(n != "x", fmt.Sprintf("pin_names[%d]", i), "%q is no name", n)
	}
	return c.Err()
}

type kitchen struct {
	Pot   conf.Size  `yaml:"pot"`
	Full  conf.Ratio `yaml:"full"`
	Flow  conf.Rate  `yaml:"flow"`
	Spoon *string    `yaml:"-"`
}

type guest struct {
	Name string `yaml:"name"`
	door `yaml:",inline"`
}

func defaultHouse() house {
	return house{
		Version: 1,
		Door:    door{Colour: "red", Open: true, Width: 80, Opening: time.Second, Lock: lock{Pins: 5, PinNames: []string{"a", "b"}}},
		Kitchen: kitchen{Pot: 2 * conf.KiB, Full: 0.5, Flow: conf.Rate{PerSecond: 3}},
	}
}

// TestCases decodes each YAML file of testdata/cases, under the environment in the
// .env file beside it if there is one. The .want file has what comes of it: the
// errors, or every value with its origin.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			vars, err := os.ReadFile(name + ".env")
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			got := outcome(src, strings.Fields(string(vars)))
			if *update {
				if err := os.WriteFile(name+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func outcome(src []byte, vars []string) string {
	h := defaultHouse()
	d, err := Parse("house.yaml", src)
	if err != nil {
		return err.Error() + "\n"
	}
	vs, err := d.Decode(&h, Environment{Prefix: "HOUSE", Vars: vars})
	if err = Join(err, vs.Locate("door.lock", h.Door.Lock.Validate())); err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for v := range vs.All() {
		fmt.Fprintf(&b, "%-22s %-24s %s\n", v.Path, v.Text, v.Origin)
	}
	for i, e := range h.Extras {
		g := guest{Name: "nobody", door: h.Door}
		vs, err := e.Decode(&g)
		if err = Join(err, vs.Locate("lock", g.Lock.Validate())); err != nil {
			return err.Error() + "\n"
		}
		fmt.Fprintf(&b, "extra %d is %s in %s, pins %d, lock given: %v\n", i, g.Name, g.Colour, g.Lock.Pins, vs.Set("lock"))
	}
	return b.String()
}

// Editors leave marks, line ends and encodings behind that nobody sees.
func TestInvisibleBytes(t *testing.T) {
	const right = "door:\n  width: 3\nkitchen:\n  pot: 1KiB\n"
	loads := map[string]string{
		"byte-order mark":          "\ufeff" + right,
		"CRLF":                     strings.ReplaceAll(right, "\n", "\r\n"),
		"both":                     "\ufeff" + strings.ReplaceAll(right, "\n", "\r\n"),
		"no line end":              strings.TrimSuffix(right, "\n"),
		"tabs in a blank line":     "door:\n\t\n  width: 3\nkitchen:\n  pot: 1KiB\n",
		"blanks at the end":        "door:  \n  width: 3  \nkitchen:\n  pot: 1KiB\t\n",
		"a document marker":        "---\n" + right,
		"a comment and a marker":   "# mine\n---\n" + right,
		"a marker behind":          right + "...\n",
		"keys in quotes":           "\"door\":\n  'width': 3\nkitchen: {pot: '1KiB'}\n",
		"flow style on many lines": "door: {\n  width: 3,\n}\nkitchen:\n  pot: 1KiB\n",
	}
	for name, src := range loads {
		t.Run(name, func(t *testing.T) {
			h := defaultHouse()
			d, err := Parse("house.yaml", []byte(src))
			if err == nil {
				_, err = d.Decode(&h, Environment{})
			}
			if err != nil || h.Door.Width != 3 || h.Kitchen.Pot != conf.KiB {
				t.Errorf("width %d, pot %v, error %v", h.Door.Width, h.Kitchen.Pot, err)
			}
		})
	}
	for name, src := range map[string]string{
		"empty": "", "blank": " \n\n", "comments": "# door:\n#   width: 3\n", "mark": "\ufeff", "marker": "---\n",
		"empty sections": "door:\nkitchen:\n  # pot: 1KiB\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := defaultHouse()
			d, err := Parse("house.yaml", []byte(src))
			if err == nil {
				_, err = d.Decode(&h, Environment{})
			}
			if diff := cmp.Diff(defaultHouse(), h, cmp.AllowUnexported(guest{}, Overlay{})); err != nil || diff != "" {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
	refused := map[string]struct{ src, want string }{
		"UTF-16, little end": {"\xff\xfed\x00:\x00", "h.yaml: is UTF-16 text; save it as UTF-8"},
		"UTF-16, big end":    {"\xfe\xff\x00d\x00:", "h.yaml: is UTF-16 text; save it as UTF-8"},
		"UTF-16, no mark":    {"d\x00:\x00", "h.yaml: line 1 holds a zero byte: this is no UTF-8 text (UTF-16, or a binary file)"},
		"Latin 1":            {"a: 1\nb: \xe9t\xe9\n", "h.yaml: line 2 holds a byte that is not UTF-8; save the file as UTF-8"},
		"escape":             {"a: \x1b[31m\n", "h.yaml: line 1 holds the control character U+001B; remove it"},
		"bare CR":            {"a: 1\rb: 2\n", "h.yaml: line 1 holds the control character U+000D; remove it"},
		"too large":          {strings.Repeat("#", maxBytes+1), "h.yaml: is larger than 1 MiB, too large for a configuration"},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("h.yaml", []byte(c.src)); err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// A tab in front is told as a tab, wherever it stands.
func TestTabIndentation(t *testing.T) {
	for src, line := range map[string]int{
		"door:\n\twidth: 3\n":                          2,
		"door:\n  width: 3\n\topen: true\n":            3,
		"door:\n \twidth: 3\n":                         2,
		"door:\r\n\twidth: 3\r\n":                      2,
		"\tdoor: 1\n":                                  1,
		"guests:\n\t- name: a\n":                       2,
		"guests:\n  - name: a\n\t  colour: b\n":        3,
		"door:\n  lock:\n\t\tpins: 3\nversion: 1\n":    3,
		"door:\n  colour: red\n\twidth: 2\nversion: 1": 3,
	} {
		_, err := Parse("h.yaml", []byte(src))
		es := Errors(err)
		if len(es) != 1 || es[0].Line != line || !strings.Contains(es[0].Message, "tab") {
			t.Errorf("%q: got %v, want a word on the tab in line %d", src, err, line)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadFile(filepath.Join(dir, "none.yaml"))
	if want := filepath.Join(dir, "none.yaml") + ": there is no such file"; err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = ReadFile(dir)
	if want := dir + ": is a directory, not a file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	path := filepath.Join(dir, "house.yaml")
	if err := os.WriteFile(path, []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := defaultHouse()
	if _, err := d.Decode(&h, Environment{}); err != nil || h.Version != 2 {
		t.Errorf("version %d, error %v", h.Version, err)
	}
}

// A value without its unit never becomes nanoseconds, bytes or a share of its own.
func TestUnits(t *testing.T) {
	type units struct {
		D time.Duration `yaml:"d"`
		S conf.Size     `yaml:"s"`
		R conf.Ratio    `yaml:"r"`
		A conf.Rate     `yaml:"a"`
	}
	right := map[string]units{
		"d: 5s": {D: 5 * time.Second}, "d: '5s'": {D: 5 * time.Second}, "d: 1m30s": {D: 90 * time.Second},
		"d: 0": {}, "d: 0s": {}, "d: 0ms": {}, "d: 1.5h": {D: 90 * time.Minute}, "d: .5s": {D: time.Second / 2},
		"s: 0B": {}, "s: 16KiB": {S: 16384}, "s: 10MB": {S: 1e7}, "s: \"1 GiB\"": {S: conf.GiB},
		"r: 20%": {R: 0.2}, "r: '0%'": {}, "r: 0.5%": {R: 0.005},
		"a: 1000/s": {A: conf.Rate{PerSecond: 1000}}, "a: 45%": {A: conf.Rate{OfSaturation: 0.45}},
	}
	for src, want := range right {
		var got units
		d, err := Parse("u.yaml", []byte(src))
		if err == nil {
			_, err = d.Decode(&got, Environment{})
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", src, got, err, want)
		}
	}
	for _, src := range []string{
		"d: 5", "d: '5'", "d: -1s", "d: -0s", "d: 5 s", "d: 1e9", "d: 500MS", "d: 5x", "d: ''", "d: 0x5", "d: 5_000", "d: 1.5", "d: true",
		"d:", "d: ~", "d: [5s]", "d: {s: 5}", "d: .inf", "d: .nan", "d: 9999999h", "d: 5s5", "d: \"5s\\n\"",
		"s: 0", "s: 5", "s: -1B", "s: 1.5KiB", "s: 16kib", "s: 99999999999GiB", "s: 1e3B", "s: [1B]",
		"r: 0.2", "r: 20", "r: 120%", "r: -1%", "r: NaN%", "r: 1",
		"a: 1000", "a: 0/s", "a: -5/s", "a: Inf/s", "a: 0%", "a: 10/h",
	} {
		var got units
		d, err := Parse("u.yaml", []byte(src))
		if err == nil {
			_, err = d.Decode(&got, Environment{})
		}
		es := Errors(err)
		if len(es) != 1 || es[0].Line != 1 || es[0].Path != src[:1] || got != (units{}) {
			t.Errorf("%s: got %+v, error %v; want one error with key and line", src, got, err)
		}
	}
}

// A problem with a value that nobody wrote points at the nearest thing somebody
// did write, and says so.
func TestLocateWhatIsNotWritten(t *testing.T) {
	d, err := Parse("h.yaml", []byte("version: 1\ndoor:\n  lock:\n    pins: 4\nextras:\n  - lock: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := defaultHouse()
	vs, err := d.Decode(&h, Environment{Prefix: "H", Vars: []string{"H_DOOR_LOCK_PIN_NAMES=a,b"}})
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := h.Extras[0].Decode(&guest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		vs         *Values
		path, want string
	}{
		{vs, "door.lock.pins", "h.yaml:4:11: door.lock.pins: is bad\n   4 |     pins: 4\n     |           ^"},
		{vs, "door.lock.tolerance", "h.yaml:4:5: door.lock.tolerance: is bad (not set: the default)\n   4 |     pins: 4\n     |     ^"},
		{vs, "door.lock.pin_names[1]", "H_DOOR_LOCK_PIN_NAMES: door.lock.pin_names[1]: is bad"},
		{vs, "kitchen.pot", "h.yaml: kitchen.pot: is bad (not set: the default)"},
		{overlay, "lock.pins", "h.yaml:6:11: extras[0].lock.pins: is bad (not set here)\n   6 |   - lock: {}\n     |           ^"},
		{overlay, "colour", "h.yaml:6:5: extras[0].colour: is bad (not set here)\n   6 |   - lock: {}\n     |     ^"},
	} {
		err := c.vs.Locate("", conf.Problem{Path: c.path, Message: "is bad"})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.path, err, c.want)
		}
	}
	if err := vs.Locate("door", nil); err != nil {
		t.Errorf("no problem, and yet %v", err)
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"nethttp": "net/http", "net-http": "net/http", "NET/HTTP": "net/http", "rest": "resty", "restry": "resty",
		"fasthtpp": "fasthttp", "fsthttp": "fasthttp", "retryable": "", "retryablehtp": "retryablehttp", "curl": "", "": "",
		strings.Repeat("resty", 100000): "",
	} {
		if got, _ := Nearest(word, []string{"net/http", "resty", "retryablehttp", "fasthttp"}); got != want {
			t.Errorf("nearest to %.20q: %q, want %q", word, got, want)
		}
	}
}

// The parser recurses and panics; neither reaches the caller.
func TestHostileNesting(t *testing.T) {
	for name, src := range map[string]string{
		"flow lists":    strings.Repeat("[", 100_000),
		"flow mappings": strings.Repeat("{a: ", 100_000),
		"block lists":   strings.Repeat("- ", 100_000) + "a",
		"keys":          strings.Repeat("? ", 100_000) + "a",
		"block keys": func() string {
			var b strings.Builder
			for i := range 1000 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("h.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), "nested") {
				t.Errorf("got %.200v", err)
			}
		})
	}
}

// What a file says in escape sequences does not reach the terminal, and the caret
// stands below its column.
func TestExcerpt(t *testing.T) {
	for _, c := range []struct {
		line          string
		column        int
		blanks, shown string
	}{
		{"door: x", 7, "      ", "door: x"},
		{"é\tx", 3, " \t", "é\tx"},
		{"a\u202eb", 3, "  ", "a?b"},
		{"ab", 9, "  ", "ab"},
		{strings.Repeat("x", 300) + "!", 301, strings.Repeat(" ", 99), strings.Repeat("x", 99) + "!"},
		{strings.Repeat("x", 300), 1, "", strings.Repeat("x", 100)},
	} {
		blanks, shown := excerpt(c.line, c.column)
		if blanks != c.blanks || shown != c.shown {
			t.Errorf("excerpt(%.10q…, %d) = %q, %q; want %q, %q", c.line, c.column, blanks, shown, c.blanks, c.shown)
		}
	}
}
