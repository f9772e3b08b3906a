package strictyaml

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type parcel struct {
	Body json.RawMessage `yaml:"body"`
}

func decodeParcel(t *testing.T, src string) (parcel, error) {
	t.Helper()
	d, err := Parse("parcel.yaml", []byte(src))
	if err != nil {
		return parcel{}, err
	}
	var p parcel
	_, err = d.Decode(&p, Environment{})
	return p, err
}

// A value of any shape becomes the JSON that it says, and is written so that it is
// read back as the same.
func TestAnyJSON(t *testing.T) {
	for src, want := range map[string]string{
		`body: {b: 1, a: [x, "2", 3.5, true, null], c: {}}`: `{"b":1,"a":["x","2",3.5,true,null],"c":{}}`,
		"body:\n  name: a\n  id: \"1\"\n  price: 2":         `{"name":"a","id":"1","price":2}`,
		`body: '{"a": 1}'`:           `{"a": 1}`,
		"body: |\n  [1, 2]":          "[1, 2]",
		`body: text`:                 `"text"`,
		`body: "5"`:                  `"5"`,
		`body: 5`:                    `5`,
		`body: -1.5e3`:               `-1.5e3`,
		`body: true`:                 `true`,
		`body: "{not json"`:          `"{not json"`,
		`body: {"${name}": "${id}"}`: `{"${name}":"${id}"}`,
	} {
		p, err := decodeParcel(t, src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := strings.TrimSpace(string(p.Body)); got != want {
			t.Errorf("%s became %s, want %s", src, got, want)
		}
		again, err := Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeParcel(t, string(again))
		if diff := cmp.Diff(p, back); diff != "" || err != nil {
			t.Errorf("%s was written as %s: %v %s", src, again, err, diff)
		}
	}
}

func TestAnyJSONRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"body:":               "has no value",
		"body: {a: 0x10}":     "JSON cannot say",
		"body: {a: .inf}":     "JSON cannot say",
		"body: {a: 1, a: 2}":  "twice",
		"body: {a: !!str 1}":  "JSON can say",
		"body: {a: [{b: &x}]": "",
	} {
		if _, err := decodeParcel(t, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// A value of any shape that nobody wrote is no value, and does not stop the others
// from being listed.
func TestAbsentJSONIsNotListed(t *testing.T) {
	d, err := Parse("parcel.yaml", []byte("parcels: [{}, {body: 5}]"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Parcels []parcel `yaml:"parcels"`
	}
	vs, err := d.Decode(&all, Environment{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for v := range vs.All() {
		got = append(got, v.Path+" = "+v.Text)
	}
	if diff := cmp.Diff([]string{"parcels[1].body = 5"}, got); diff != "" {
		t.Error(diff)
	}
}
