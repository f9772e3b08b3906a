package gateway_test

import (
	"context"
	"io"
	"testing"

	"gatebench/clients"
)

// A tunnel is a connection to upstream that somebody must close.
type tunnel struct{ closed bool }

func (u *tunnel) Read([]byte) (int, error)    { return 0, io.EOF }
func (u *tunnel) Write(p []byte) (int, error) { return len(p), nil }
func (u *tunnel) Close() error                { u.closed = true; return nil }

// switches answers 101 for a protocol.
func switches(u *tunnel, lines ...string) func(context.Context, *clients.Request) (*clients.Response, error) {
	return func(context.Context, *clients.Request) (*clients.Response, error) {
		resp := &clients.Response{Status: 101, Fields: fields(lines...), Body: clients.NoBody, ContentLength: -1, Attempts: 1}
		if u != nil {
			resp.Upgraded = u
		}
		return resp, nil
	}
}

func TestWhichUpgradesAreAskedFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []clients.Field
		want   string // Upgrade upstream, "" for none
	}{
		{"a WebSocket", fields("Connection: Upgrade", "Upgrade: websocket"), "websocket"},
		{"names in any case", fields("connection: keep-alive, uPGRADE", "UPGRADE: WebSocket"), "WebSocket"},
		{"a version", fields("Connection: Upgrade", "Upgrade: chat/2.0"), "chat/2.0"},
		{"several", fields("Connection: Upgrade", "Upgrade: a, b", "Upgrade: c"), "a, b, c"},
		{"on another Connection line", fields("Connection: close", "Upgrade: websocket", "Connection: upgrade"), "websocket"},
		{"not nominated", fields("Upgrade: websocket"), ""},
		{"nothing named", fields("Connection: Upgrade"), ""},
		{"h2c goes past the hop", fields("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"), ""},
		{"so does HTTP", fields("Connection: Upgrade", "Upgrade: HTTP/2.0"), ""},
		{"and TLS", fields("Connection: Upgrade", "Upgrade: TLS/1.0"), ""},
		{"h2c among others", fields("Connection: Upgrade", "Upgrade: H2C, websocket"), "websocket"},
		{"no protocol", fields("Connection: Upgrade", "Upgrade: web socket, /, a/, @"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t)
			h.serve(inbound("GET", "/", tc.fields...))
			sent := h.upstream.last.Fields
			if got := sent.Get("Upgrade"); got != tc.want {
				t.Errorf("upstream is asked for %q, want %q", got, tc.want)
			}
			if got := sent.Get("Connection"); (got == "Upgrade") != (tc.want != "") {
				t.Errorf("Connection: %q", got)
			}
			if sent.Has("HTTP2-Settings") {
				t.Error("HTTP2-Settings reaches upstream")
			}
		})
	}
	t.Run("not over HTTP/1.0 nor with a body", func(t *testing.T) {
		h := open(t)
		old := inbound("GET", "/", fields("Connection: Upgrade", "Upgrade: websocket")...)
		old.ProtoMinor = 0
		h.serve(old)
		if h.upstream.last.Fields.Has("Upgrade") {
			t.Error("HTTP/1.0 does not know of it (RFC 9110, section 7.8)")
		}
		post := inbound("POST", "/", fields("Connection: Upgrade", "Upgrade: websocket")...)
		post.Body = io.MultiReader()
		h.serve(post)
		if h.upstream.last.Fields.Has("Upgrade") {
			t.Error("asked for behind a body")
		}
	})
}

func TestWhichChangesAreAgreedTo(t *testing.T) {
	for _, tc := range []struct {
		name    string
		asked   string // of Upgrade, "" for no such field
		answer  []clients.Field
		refused bool
	}{
		{"the protocol asked for", "websocket", fields("Connection: Upgrade", "Upgrade: WebSocket"), false},
		{"one of those", "a, b", fields("Connection: Upgrade", "Upgrade: b"), false},
		{"another", "websocket", fields("Connection: Upgrade", "Upgrade: chat"), true},
		{"none", "websocket", fields("Connection: Upgrade"), true},
		{"unasked", "", fields("Connection: Upgrade", "Upgrade: websocket"), true},
		{"one that was held back", "h2c", fields("Connection: Upgrade", "Upgrade: h2c"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, up := open(t), &tunnel{}
			h.upstream.answer = switches(up, append([]string{"Sec-WebSocket-Accept: x"}, lines(tc.answer)...)...)
			asks := fields("Connection: Upgrade", "Upgrade: "+tc.asked)
			if tc.asked == "" {
				asks = nil
			}
			resp := h.Serve(context.Background(), inbound("GET", "/", asks...))
			if tc.refused {
				if resp.Status != 502 || !up.closed || resp.Upgraded != nil {
					t.Errorf("status %d, connection closed: %t", resp.Status, up.closed)
				}
			} else {
				if resp.Status != 101 || resp.Upgraded == nil || up.closed {
					t.Errorf("status %d, connection handed on: %t", resp.Status, resp.Upgraded != nil)
				}
				if resp.Fields.Get("Connection") != "Upgrade" || resp.Fields.Get("Upgrade") != tc.answer[1].Value ||
					resp.Fields.Get("Sec-WebSocket-Accept") != "x" {
					t.Errorf("downstream gets %v", resp.Fields)
				}
			}
			resp.End(nil)
			if !up.closed {
				t.Error("the end leaves the connection open")
			}
		})
	}
	t.Run("without a connection there is none", func(t *testing.T) {
		h := open(t)
		h.upstream.answer = switches(nil, "Connection: Upgrade", "Upgrade: a")
		resp, body := h.serve(inbound("GET", "/", fields("Connection: Upgrade", "Upgrade: a")...))
		wantProblem(t, resp, body, 502, "protocol")
	})
}

func lines(fs []clients.Field) (ls []string) {
	for _, f := range fs {
		ls = append(ls, f.Name+": "+f.Value)
	}
	return ls
}

// A tunnel holds its place in the pool and is in flight until it ends; then it is
// counted.
func TestATunnelHoldsItsPlace(t *testing.T) {
	h := open(t, tight)
	up := &tunnel{}
	h.upstream.answer = switches(up, "Connection: Upgrade", "Upgrade: a")
	ask := fields("Connection: Upgrade", "Upgrade: a")
	resp := h.Serve(context.Background(), inbound("GET", "/", ask...))
	if second, body := h.serve(inbound("GET", "/", ask...)); second.Status != 503 {
		t.Errorf("a second tunnel through a pool of one: %d %s", second.Status, body)
	}
	wantMetrics(t, h, "gatebench_gateway_in_flight", " 1")
	resp.End(nil)
	wantMetrics(t, h, "gatebench_gateway_in_flight", " 0")
	wantMetrics(t, h, "gatebench_gateway_requests_total", `{code="101",reason=""} 1`, `{code="503",reason="pool_exhausted"} 1`)
}
