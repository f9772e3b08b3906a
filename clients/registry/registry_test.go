package registry

import (
	"net/url"
	"slices"
	"testing"

	"gatebench/clients"
)

func TestLookupFindsEveryName(t *testing.T) {
	want := []string{"net/http", "resty", "retryablehttp", "fasthttp"}
	if got := Names(); !slices.Equal(got, want) {
		t.Fatalf("Names() = %q, want %q", got, want)
	}
	for _, name := range append(want, "floor") {
		if e, ok := Lookup(name); !ok || e.Name != name {
			t.Errorf("Lookup(%q) = %q, %t", name, e.Name, ok)
		}
	}
	if e, ok := Lookup("nethttp"); ok {
		t.Errorf("Lookup of no client's name gave %q", e.Name)
	}
}

func TestEveryEntryMakesAClient(t *testing.T) {
	for _, e := range append(All(), Floor()) {
		s := clients.DefaultSettings()
		s.Upstream = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
		c, err := e.New(s)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: close: %v", e.Name, err)
		}
		for _, d := range e.Deviations() {
			if d.Name == "" || d.Reason == "" {
				t.Errorf("%s: an unexplained deviation: %+v", e.Name, d)
			}
		}
	}
}
