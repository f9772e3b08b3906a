package clients_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"unsafe"

	"gatebench/clients"
)

func TestEndReleasesInReverseOrderOnce(t *testing.T) {
	body := &countedBody{}
	resp := &clients.Response{Status: 200, Body: body}
	var order []int
	cause := errors.New("cut")
	for i := range 5 { // more than fit without an allocation
		resp.OnEnd(func(err error) {
			if !body.closed || !errors.Is(err, cause) {
				t.Errorf("hook %d: body closed %v, err %v", i, body.closed, err)
			}
			order = append(order, i)
		})
	}
	resp.End(cause)
	resp.End(nil)
	if !slices.Equal(order, []int{4, 3, 2, 1, 0}) {
		t.Errorf("hooks ran in the order %v", order)
	}
}

// A place in the pool hangs on every hook, so that one which panics must not keep
// the others from running; who recovers it learns of it all the same.
func TestEveryHookRunsWhateverPanics(t *testing.T) {
	type rig struct {
		resp *clients.Response
		ran  []string
	}
	build := func(panics string) *rig {
		r := &rig{}
		step := func(name string) {
			r.ran = append(r.ran, name)
			if name == panics {
				panic(name)
			}
		}
		r.resp = &clients.Response{Status: 200, Body: closer{func() { step("body") }}, Upgraded: closer{func() { step("upgraded") }}}
		for _, name := range []string{"first", "second", "third", "fourth"} {
			r.resp.OnEnd(func(error) { step(name) })
		}
		return r
	}
	steps := []string{"body", "upgraded", "fourth", "third", "second", "first"}
	for _, panics := range append(steps, "none") {
		r := build(panics)
		func() {
			defer func() {
				if v := recover(); (v == nil) != (panics == "none") {
					t.Errorf("%s panics: End's caller sees %v", panics, v)
				}
			}()
			r.resp.End(nil)
		}()
		r.resp.End(nil)
		if !slices.Equal(r.ran, steps) {
			t.Errorf("%s panics: %v ran, want %v", panics, r.ran, steps)
		}
	}
}

// closer is a body, or a connection, whose Close does something.
type closer struct{ f func() }

func (c closer) Read([]byte) (int, error)    { return 0, io.EOF }
func (c closer) Write(p []byte) (int, error) { return len(p), nil }
func (c closer) Close() error                { c.f(); return nil }

func TestNewResponse(t *testing.T) {
	resp := clients.NewResponse(418, clients.Fields{{"A", "1"}}, []byte("short and stout"))
	head := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if got := string(head) + string(rest); err != nil || got != "short and stout" || resp.ContentLength != 15 {
		t.Errorf("got %q of %d bytes, %v", got, resp.ContentLength, err)
	}
	if empty := clients.NewResponse(204, nil, nil); empty.Body != clients.NoBody || empty.ContentLength != 0 {
		t.Errorf("without a body: %+v", empty)
	}
}

func TestFields(t *testing.T) {
	fs := clients.Fields{{"Vary", "a"}, {"X", ""}, {"vary", "b"}}
	if got := fs.Get("VARY"); got != "a" {
		t.Errorf("Get: %q, want the first", got)
	}
	if v, ok := fs.Lookup("x"); v != "" || !ok {
		t.Error("an empty value is taken for none")
	}
	if fs.Has("Var") {
		t.Error("a prefix is taken for the name")
	}
	fs.Set("VARY", "c")
	if want := (clients.Fields{{"X", ""}, {"VARY", "c"}}); !slices.Equal(fs, want) {
		t.Errorf("Set: %v, want %v", fs, want)
	}
	fs.Del("x")
	if want := (clients.Fields{{"VARY", "c"}}); !slices.Equal(fs, want) {
		t.Errorf("Del: %v, want %v", fs, want)
	}
}

// view is a string over a buffer that somebody will reuse.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func TestOwnOutlivesTheBuffer(t *testing.T) {
	buf := []byte("GET/pathhostNameValue")
	req := &clients.Request{
		Method: view(buf[:3]), Target: view(buf[3:8]), Host: view(buf[8:12]),
		Fields: clients.Fields{{view(buf[12:16]), view(buf[16:21])}}, Borrowed: true,
	}
	resp := &clients.Response{Fields: clients.Fields{{view(buf[12:16]), view(buf[16:21])}}, Borrowed: true}
	req.Own()
	resp.Own()
	copy(buf, "#####################")
	want := clients.Fields{{"Name", "Value"}}
	if req.Method != http.MethodGet || req.Target != "/path" || req.Host != "host" || !slices.Equal(req.Fields, want) || req.Borrowed {
		t.Errorf("the request became %+v", req)
	}
	if !slices.Equal(resp.Fields, want) || resp.Borrowed {
		t.Errorf("the response became %+v", resp)
	}
}

func TestOwnAllocatesOnce(t *testing.T) {
	buf := []byte("GET/pathhostNameValue")
	fields := make(clients.Fields, 10)
	req := &clients.Request{}
	allocs := testing.AllocsPerRun(100, func() {
		req.Method, req.Target, req.Host = view(buf[:3]), view(buf[3:8]), view(buf[8:12])
		for i := range fields {
			fields[i] = clients.Field{Name: view(buf[12:16]), Value: view(buf[16:21])}
		}
		req.Fields, req.Borrowed = fields, true
		req.Own()
	})
	if allocs > 1 {
		t.Errorf("%v allocations, want 1", allocs)
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range clients.Kinds() {
		name := k.String()
		if name == "unknown" || name == "none" || name == "" || seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[name] = true
	}
	if len(seen) != int(clients.Canceled) {
		t.Errorf("%d kinds, want %d", len(seen), clients.Canceled)
	}
	if got := clients.KindOf(fmt.Errorf("wrapped: %w", &clients.Error{Kind: clients.Reset})); got != clients.Reset {
		t.Errorf("KindOf a wrapped reset: %v", got)
	}
}

// Any http.RoundTripper becomes a client.
func ExampleRoundTripper() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s for %s", r.Method, r.RequestURI, r.Host)
	}))
	defer upstream.Close()

	s := clients.DefaultSettings()
	s.Upstream, _ = url.Parse(upstream.URL)
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	transport, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
	if err != nil {
		panic(err)
	}
	c := clients.RoundTripper(transport, s)
	defer c.Close()

	resp, err := c.Do(context.Background(), &clients.Request{Method: "GET", Target: "/a%2Fb?", Host: "shop.example"})
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.End(err)
	fmt.Printf("%d %s\n", resp.Status, body)
	// Output: 200 GET /a%2Fb? for shop.example
}
