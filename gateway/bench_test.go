package gateway_test

import (
	"context"
	"testing"

	"gatebench/clients"
	"gatebench/gateway"
)

// BenchmarkHop is what the hop itself costs per request, alone and with the layers
// around a client that costs next to nothing. "baseline" is that client with the
// copying of fields that the other cases need too.
func BenchmarkHop(b *testing.B) {
	request := fields(
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
		"Accept: application/json, text/plain, */*", "Accept-Language: en-GB,en;q=0.5",
		"Accept-Encoding: gzip, deflate, br", "Connection: keep-alive", "Cookie: sid=1000101111; theme=dark",
		"Content-Type: application/json", "X-Request-Id: 7f9c24e8-3b12-4a57-9c3e-1f2d3c4b5a69")
	response := fields(
		"Date: Tue, 01 Dec 2026 03:00:00 GMT", "Content-Type: application/json", "X-appId: android01",
		"Set-Cookie: sid=1000101111", "Vary: Accept-Encoding", "Connection: keep-alive")
	u := &canned{fields: response, room: make(clients.Fields, 0, 16)}
	in := inbound("GET", "/product?type=T")
	room := make(clients.Fields, 0, 16)
	fill := func() { in.Fields, in.Host = append(room[:0], request...), "front.example" }

	b.Run("baseline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fill()
			resp, _ := u.Do(b.Context(), &in.Request)
			resp.End(nil)
		}
	})
	for _, tc := range []struct {
		name string
		set  func(*gateway.Config)
	}{
		{"alone", func(c *gateway.Config) { c.Pool.Policy, c.CircuitBreaker.Enabled = clients.PoolLibrary, false }},
		{"layers", func(*gateway.Config) {}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			cfg := gateway.DefaultConfig()
			tc.set(&cfg)
			g, err := gateway.New(cfg, gateway.Parts{Client: u, Dialer: &clients.Dialer{}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				fill()
				g.Serve(b.Context(), in).End(nil)
			}
		})
	}
}

// canned answers from memory, without garbage.
type canned struct {
	fields, room clients.Fields
	resp         clients.Response
}

func (c *canned) Do(context.Context, *clients.Request) (*clients.Response, error) {
	c.resp = clients.Response{Status: 200, Fields: append(c.room[:0], c.fields...), Body: clients.NoBody, Attempts: 1}
	return &c.resp, nil
}

func (c *canned) Close() error { return nil }
