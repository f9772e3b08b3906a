package gateway_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"gatebench/clients"
	"gatebench/gateway"
	"gatebench/server"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp keeps one clock for the process, and each server's cleaner
		// notices its end within ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// upstream is a client that answers by itself and remembers what it was sent last.
type upstream struct {
	answer func(context.Context, *clients.Request) (*clients.Response, error)
	sent   int
	last   clients.Request
	closed bool
}

func (u *upstream) Do(ctx context.Context, r *clients.Request) (*clients.Response, error) {
	u.sent++
	u.last = *r
	u.last.Fields = slices.Clone(r.Fields)
	return u.answer(ctx, r)
}

func (u *upstream) Close() error {
	u.closed = true
	return nil
}

func responds(status int, fields ...clients.Field) func(context.Context, *clients.Request) (*clients.Response, error) {
	return func(context.Context, *clients.Request) (*clients.Response, error) {
		resp := clients.NewResponse(status, slices.Clone(fields), []byte("hello"))
		resp.Attempts = 1
		return resp, nil
	}
}

func fails(k clients.Kind, attempts int) func(context.Context, *clients.Request) (*clients.Response, error) {
	return func(context.Context, *clients.Request) (*clients.Response, error) {
		return nil, &clients.Error{Kind: k, Err: errors.New("secret-address:9999"), Attempts: attempts}
	}
}

// A house is a gateway with its upstream.
type house struct {
	*gateway.Gateway
	t        testing.TB
	upstream *upstream
	addr     string // where it is served, if it is
}

func open(t testing.TB, settings ...func(*gateway.Config)) *house {
	t.Helper()
	cfg := gateway.DefaultConfig()
	for _, set := range settings {
		set(&cfg)
	}
	u := &upstream{answer: responds(200)}
	g, err := gateway.New(cfg, gateway.Parts{
		Client: u, Dialer: &clients.Dialer{}, Version: "v1.2.3",
		AboutClient: gateway.Library{
			Name: "fake", Module: "example.org/fake", Version: "v0.1.0",
			Deviations: []clients.Deviation{{Name: "trailers", Reason: "it has none"}},
		},
		AboutServer: gateway.Library{Name: "net/http", Module: "net/http", Version: "go1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &house{Gateway: g, t: t, upstream: u}
}

func inbound(method, target string, fields ...clients.Field) *server.Inbound {
	return &server.Inbound{
		Request: clients.Request{
			Method: method, Target: target, Host: "front.example", Fields: slices.Clone(fields),
		},
		RemoteIP: "192.0.2.7", ProtoMinor: 1,
	}
}

// serve serves in and ends the exchange well; the body is what downstream reads.
func (h *house) serve(in *server.Inbound) (_ *clients.Response, body string) {
	h.t.Helper()
	resp := h.Serve(context.Background(), in)
	if resp == nil {
		return nil, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	resp.End(nil)
	return resp, string(b)
}

// metrics gives the lines of /-/metrics that start with prefix.
func (h *house) metrics(prefix string) []string {
	h.t.Helper()
	resp, body := h.serve(inbound("GET", "/-/metrics"))
	if resp.Status != 200 {
		h.t.Fatalf("metrics: status %d", resp.Status)
	}
	var lines []string
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}
	return lines
}

// field reads a field line in a table: "Name: value".
func field(line string) clients.Field {
	name, value, _ := strings.Cut(line, ":")
	return clients.Field{Name: name, Value: strings.TrimPrefix(value, " ")}
}

func fields(lines ...string) []clients.Field {
	var fs []clients.Field
	for _, l := range lines {
		fs = append(fs, field(l))
	}
	return fs
}
