package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gatebench/clients"
	"gatebench/gateway"
)

// FuzzFields sends the same fields up and down. Whatever comes out came in, in the
// same order, or is one of the documented lines; nothing that ends at a hop, and
// nothing that Connection named, is left; and nothing can break a line.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		"Accept: a\nConnection: close, X-A\nX-A: 1",
		"TE: trailers, gzip\nConnection: TE\nUpgrade: websocket",
		"X-Forwarded-For: a\nx-forwarded-for: b\nForwarded: for=c\nX-Forwarded-Host: h",
		"Via: 1.1 a\nExpect: 100-continue\nKeep-Alive: timeout=5",
		"Transfer-Encoding : chunked", "Connection: Connection, Via, ,\t", "X: a\rb\n folded", ":\n: a", "Ünï: ö\nK: \u212a",
		"\u212aeep-Alive: x\nConnection: \u212aeep-Alive", "Connection:a\nA:1\n\nA:2",
	} {
		f.Add("GET", "/a?b", seed, true)
		f.Add("OPTIONS", "*", seed, false)
	}
	f.Fuzz(func(t *testing.T, method, target, lines string, strip bool) {
		h := open(t, func(c *gateway.Config) {
			if strip {
				c.Forwarded = gateway.ForwardedStrip
			}
		})
		var in clients.Fields
		for line := range strings.SplitSeq(lines, "\n") {
			in = append(in, field(line))
		}
		h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
			return clients.NewResponse(200, slices.Clone(in), nil), nil
		}
		resp, body := h.serve(inbound(method, target, in...))
		if h.upstream.sent == 0 {
			wantProblem(t, resp, body, 400, "bad_request")
			return
		}
		up := h.upstream.last
		if strings.ContainsAny(method+target, " \t\r\n\x00") || up.Method != method || up.Target != target {
			t.Errorf("%q %q went as %q %q", method, target, up.Method, up.Target)
		}
		named := namedByConnection(in)
		ours := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"}
		checkFields(t, in, cutTail(t, up.Fields, ours...), named)
		for i, want := range []string{"", "front.example", "http", "1.1 gatebench-"} {
			got := up.Fields[len(up.Fields)-4+i].Value
			if !strings.HasPrefix(got, want) || i == 0 && !strings.HasSuffix(got, "192.0.2.7") {
				t.Errorf("%s: %q", ours[i], got)
			}
		}
		for _, name := range ours[:3] {
			if n := count(up.Fields, name); n != 1 {
				t.Errorf("%s stands %d times", name, n)
			}
		}
		if strip && up.Fields.Has("Forwarded") {
			t.Error("Forwarded was believed")
		}
		if resp.Status == 200 {
			checkFields(t, in, cutTail(t, resp.Fields, "Via"), named)
		}
	})
}

// cutTail takes off the lines that the hop adds at the end.
func cutTail(t *testing.T, fs clients.Fields, names ...string) clients.Fields {
	tail := len(fs) - len(names)
	for i, name := range names {
		if tail < 0 || fs[tail+i].Name != name {
			t.Fatalf("%v does not end with %v", fs, names)
		}
	}
	return fs[:tail]
}

func checkFields(t *testing.T, in, out clients.Fields, named map[string]bool) {
	left := in
	for _, f := range out {
		name := lower(f.Name)
		if strings.ContainsAny(f.Name+f.Value, "\r\n\x00") || strings.ContainsAny(f.Name, " \t:") || f.Name == "" {
			t.Errorf("%q: %q can break a message", f.Name, f.Value)
		}
		switch name {
		case "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
			"trailer", "transfer-encoding", "upgrade":
			t.Errorf("%s: %s should have ended here", f.Name, f.Value)
		case "te":
			if f.Value != "trailers" {
				t.Errorf("TE: %q", f.Value)
			}
		default:
			if named[name] {
				t.Errorf("Connection named %s", f.Name)
			}
		}
		i := slices.IndexFunc(left, func(g clients.Field) bool { return g == f || name == "te" && lower(g.Name) == "te" })
		if i < 0 {
			t.Fatalf("%q: %q did not come in, or not in this order", f.Name, f.Value)
		}
		left = left[i+1:]
	}
}

// namedByConnection is the slow and plain reading of RFC 9110, section 7.6.1.
func namedByConnection(fs clients.Fields) map[string]bool {
	named := map[string]bool{}
	for _, f := range fs {
		if lower(f.Name) == "connection" {
			for option := range strings.SplitSeq(f.Value, ",") {
				named[lower(strings.Trim(option, " \t"))] = true
			}
		}
	}
	return named
}

// lower is for ASCII, as HTTP means it.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func count(fs clients.Fields, name string) (n int) {
	for _, f := range fs {
		if lower(f.Name) == lower(name) {
			n++
		}
	}
	return n
}
