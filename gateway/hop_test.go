package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients"
	"gatebench/gateway"
	"gatebench/server"
)

// added are the lines that the hop adds to a request without any, Via's made-up
// name aside.
var added = fields(
	"X-Forwarded-For: 192.0.2.7", "X-Forwarded-Host: front.example", "X-Forwarded-Proto: http", "Via: 1.1 NAME")

var madeUp = regexp.MustCompile(`gatebench-[0-9a-f]{8}`)

func nameless(fs clients.Fields) []clients.Field {
	out := []clients.Field{}
	for _, f := range fs {
		f.Value = madeUp.ReplaceAllString(f.Value, "NAME")
		out = append(out, f)
	}
	return out
}

func TestRequestFields(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in, want []string // want without what is added to all
	}{
		{"end-to-end fields keep order, case and repetition",
			[]string{"accept: a", "X-One: 1", "Cookie: a=1;b=2; a=3", "x-one: 2", "ACCEPT: b", "Empty:"},
			[]string{"accept: a", "X-One: 1", "Cookie: a=1;b=2; a=3", "x-one: 2", "ACCEPT: b", "Empty:"}},
		{"nothing is invented", nil, nil},
		{"what ends here is dropped, in any case",
			[]string{
				"connection: keep-alive", "KEEP-ALIVE: timeout=5", "proxy-Connection: keep-alive",
				"Proxy-Authenticate: Basic", "Proxy-Authorization: Basic eA==", "Trailer: X-T",
				"Transfer-Encoding: chunked", "Upgrade: websocket", "Accept: a",
			},
			[]string{"Accept: a"}},
		{"what Connection names is dropped, on any of its lines",
			[]string{"X-A: 1", "X-B: 2", "Connection: close, x-a ", "X-C: 3", "Connection: ,\tX-C,, upgrade", "X-a: 4"},
			[]string{"X-B: 2"}},
		{"an empty Connection names nothing",
			[]string{"Connection:", "X-A: 1"}, []string{"X-A: 1"}},
		{"a name that only begins alike is not named",
			[]string{"Connection: X-Ab", "X-A: 1", "X-Abc: 2"}, []string{"X-A: 1", "X-Abc: 2"}},
		{"only ASCII folds: the Kelvin sign is no k",
			[]string{"Connection: \u212a-X", "K-X: 1"}, []string{"K-X: 1"}},
		{"TE: trailers stays, and nothing else of TE",
			[]string{"Te: deflate;q=0.5, Trailers;q=1, gzip", "Connection: TE", "TE: trailers", "X-A: 1"},
			[]string{"Te: trailers", "X-A: 1"}},
		{"TE without trailers goes",
			[]string{"TE: gzip, nottrailers"}, nil},
		{"Expect is the server's to answer",
			[]string{"Expect: 100-continue", "X-A: 1"}, []string{"X-A: 1"}},
		{"Via grows by a line",
			[]string{"Via: 1.0 fred, 1.1 p.example"}, []string{"Via: 1.0 fred, 1.1 p.example"}},
		{"what the gateway adds cannot be named away",
			[]string{"Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Via"}, nil},
		{"Authorization can be named away, as its owner wishes",
			[]string{"Authorization: Basic eA==", "Connection: authorization"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t)
			h.serve(inbound("GET", "/", fields(tc.in...)...))
			want := append(fields(tc.want...), added...)
			if diff := cmp.Diff(want, nameless(h.upstream.last.Fields)); diff != "" {
				t.Errorf("upstream got (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponseFields(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in, want []string
	}{
		{"end-to-end fields keep order, case and repetition",
			[]string{"Set-Cookie: a=1", "set-cookie: a=2; Path=/", "ETag: \"x\"", "Content-Type: text/plain", "Set-Cookie: b=3"},
			[]string{"Set-Cookie: a=1", "set-cookie: a=2; Path=/", "ETag: \"x\"", "Content-Type: text/plain", "Set-Cookie: b=3"}},
		{"nothing is invented", nil, nil},
		{"what ends here is dropped",
			[]string{
				"Connection: close", "Keep-Alive: timeout=5", "Proxy-Connection: x", "Proxy-Authenticate: Basic",
				"Proxy-Authorization: x", "TE: trailers", "Trailer: X-T", "Transfer-Encoding: chunked", "Upgrade: h2c", "Server: s",
			},
			[]string{"Server: s"}},
		{"what Connection names is dropped",
			[]string{"X-N: 1", "Connection: x-n", "Connection: X-M", "X-M: 2", "X-O: 3"}, []string{"X-O: 3"}},
		{"forwarding fields and Expect mean nothing in a response",
			[]string{"X-Forwarded-For: a", "Forwarded: for=a", "Expect: x"},
			[]string{"X-Forwarded-For: a", "Forwarded: for=a", "Expect: x"}},
		{"redirects, cookies and encodings pass",
			[]string{"Location: http://elsewhere/", "Content-Encoding: gzip", "Content-Encoding: br"},
			[]string{"Location: http://elsewhere/", "Content-Encoding: gzip", "Content-Encoding: br"}},
		{"own Via does not make a response a loop", []string{"Via: 1.1 other"}, []string{"Via: 1.1 other"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t)
			h.upstream.answer = responds(200, fields(tc.in...)...)
			resp, body := h.serve(inbound("GET", "/"))
			want := append(fields(tc.want...), field("Via: 1.1 NAME"))
			if diff := cmp.Diff(want, nameless(resp.Fields)); diff != "" {
				t.Errorf("downstream got (-want +got):\n%s", diff)
			}
			if body != "hello" {
				t.Errorf("body %q", body)
			}
		})
	}
}

func TestForwarding(t *testing.T) {
	spoofed := fields(
		"X-Forwarded-For: 198.51.100.1", "x-forwarded-for: 198.51.100.2 ", "X-Forwarded-For:",
		"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "Forwarded: for=198.51.100.9")
	for _, tc := range []struct {
		name   string
		policy gateway.ForwardedPolicy
		in     []clients.Field
		want   []string
	}{
		{"append starts a list", gateway.ForwardedAppend, nil, []string{"X-Forwarded-For: 192.0.2.7"}},
		{"append joins the lines to one", gateway.ForwardedAppend, spoofed,
			[]string{"Forwarded: for=198.51.100.9", "X-Forwarded-For: 198.51.100.1, 198.51.100.2 , 192.0.2.7"}},
		{"append drops what Connection names first", gateway.ForwardedAppend,
			append(fields("Connection: x-forwarded-for"), spoofed...),
			[]string{"Forwarded: for=198.51.100.9", "X-Forwarded-For: 192.0.2.7"}},
		{"strip believes nobody", gateway.ForwardedStrip, spoofed, []string{"X-Forwarded-For: 192.0.2.7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t, func(c *gateway.Config) { c.Forwarded = tc.policy })
			h.serve(inbound("GET", "/", tc.in...))
			want := append(fields(tc.want...), added[1:]...)
			if diff := cmp.Diff(want, nameless(h.upstream.last.Fields)); diff != "" {
				t.Errorf("upstream got (-want +got):\n%s", diff)
			}
		})
	}
}

func TestViaNamesTheProtocolReceived(t *testing.T) {
	h := open(t)
	in := inbound("GET", "/")
	in.ProtoMinor = 0
	h.serve(in)
	if got := nameless(h.upstream.last.Fields); got[len(got)-1] != field("Via: 1.0 NAME") {
		t.Errorf("got %v", got)
	}
}

func TestHost(t *testing.T) {
	for _, tc := range []struct {
		policy         gateway.HostPolicy
		received, want string
		forwarded      bool
	}{
		{gateway.HostUpstream, "front.example", "up.example:81", true},
		{gateway.HostPreserve, "front.example", "front.example", true},
		{gateway.HostPreserve, "", "up.example:81", false}, // HTTP/1.0 without one
		{gateway.HostUpstream, "", "up.example:81", false},
	} {
		h := open(t, func(c *gateway.Config) { c.Host, c.Upstream = tc.policy, "http://up.example:81" })
		in := inbound("GET", "/")
		in.Host = tc.received
		h.serve(in)
		if got := h.upstream.last.Host; got != tc.want {
			t.Errorf("host: %s, received %q: upstream got %q, want %q", tc.policy, tc.received, got, tc.want)
		}
		if got, ok := h.upstream.last.Fields.Lookup("X-Forwarded-Host"); ok != tc.forwarded || got != tc.received {
			t.Errorf("host: %s, received %q: X-Forwarded-Host %q, %v", tc.policy, tc.received, got, ok)
		}
	}
}

// Targets go byte for byte; traps S6, S7 and F4.
func TestTarget(t *testing.T) {
	for _, target := range []string{
		"/", "/a%2Fb", "/a//b", "/a/../b", "/a/%2e%2e/b", "/a?", "/a?x=1;y=2", "/a?x=%zz",
		"/%E2%82%AC", "/\xe2\x82\xac", "/a%3Fb", "/a;p=1", "//h/p", "/?q=a://b", "/product/p!q", "/%252e", "/-", "/-x", "/a/-/b",
	} {
		for base, prefix := range map[string]string{"": "", "/": "", "/base": "/base", "/base/": "/base", "/b%2Fc/d": "/b%2Fc/d"} {
			h := open(t, func(c *gateway.Config) { c.Upstream = "http://up.example" + base })
			h.serve(inbound("GET", target))
			if got, want := h.upstream.last.Target, prefix+target; got != want {
				t.Errorf("base %q: target %q went as %q, want %q", base, target, got, want)
			}
		}
	}
	h := open(t, func(c *gateway.Config) { c.Upstream = "http://up.example/base" })
	h.serve(inbound("OPTIONS", "*"))
	if got := h.upstream.last.Target; got != "*" {
		t.Errorf("OPTIONS * went as %q", got)
	}
}

func TestWhatIsNotHTTPNeverReachesUpstream(t *testing.T) {
	for name, spoil := range map[string]func(*server.Inbound){
		"asterisk without OPTIONS": func(in *server.Inbound) { in.Target = "*" },
		"absolute target":          func(in *server.Inbound) { in.Target = "http://evil.example/" },
		"authority target":         func(in *server.Inbound) { in.Method, in.Target = "CONNECT", "evil.example:443" },
		"empty target":             func(in *server.Inbound) { in.Target = "" },
		"relative target":          func(in *server.Inbound) { in.Target = "a/b" },
		"space in the target":      func(in *server.Inbound) { in.Target = "/a HTTP/1.1" },
		"line end in the target":   func(in *server.Inbound) { in.Target = "/a\r\nX: y" },
		"method no token":          func(in *server.Inbound) { in.Method = "GET /x" },
		"empty method":             func(in *server.Inbound) { in.Method = "" },
		"line end in the host":     func(in *server.Inbound) { in.Host = "a\nb" },
		"line end in a value":      func(in *server.Inbound) { in.Fields.Add("X", "a\r\nSet-Cookie: x=1") },
		"bare return in a value":   func(in *server.Inbound) { in.Fields.Add("X", "a\rb") },
		"NUL in a value":           func(in *server.Inbound) { in.Fields.Add("X", "a\x00b") },
		"DEL in a value":           func(in *server.Inbound) { in.Fields.Add("X", "a\x7fb") },
		"space in a name":          func(in *server.Inbound) { in.Fields.Add("Transfer-Encoding ", "chunked") },
		"colon in a name":          func(in *server.Inbound) { in.Fields.Add("X:", "a") },
		"empty name":               func(in *server.Inbound) { in.Fields.Add("", "a") },
		"folded line's rest":       func(in *server.Inbound) { in.Fields.Add(" folded", "") },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			in := inbound("GET", "/")
			spoil(in)
			resp, body := h.serve(in)
			wantProblem(t, resp, body, 400, "bad_request")
			if h.upstream.sent != 0 {
				t.Error("upstream was called")
			}
		})
	}
}

// TestEveryByteOfAValue puts each byte at each place: values are looked at in words.
func TestEveryByteOfAValue(t *testing.T) {
	h := open(t)
	for at := range 19 {
		for c := range 256 {
			value := []byte("plain text,\tplain ä")
			value[at] = byte(c)
			resp, _ := h.serve(inbound("GET", "/", clients.Field{Name: "X", Value: string(value)}))
			if want := c >= ' ' && c != 0x7f || c == '\t'; (resp.Status == 200) != want {
				t.Fatalf("byte %#x at %d: status %d", c, at, resp.Status)
			}
		}
	}
}

// wantProblem checks an answer that the gateway made up.
func wantProblem(t *testing.T, resp *clients.Response, body string, status int, reason string) {
	t.Helper()
	if resp == nil {
		t.Fatalf("no answer, want %d %s", status, reason)
	}
	var p struct {
		Type, Title, Detail, Reason string
		Status                      int
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	if resp.Status != status || p.Status != status || p.Reason != reason || p.Type != "about:blank" || p.Title == "" || p.Detail == "" {
		t.Errorf("status %d, body %s; want %d %s", resp.Status, body, status, reason)
	}
	if got := resp.Fields.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	if resp.ContentLength != int64(len(body)) {
		t.Errorf("length %d announced, %d sent", resp.ContentLength, len(body))
	}
	if strings.Contains(body, "secret-address") {
		t.Errorf("the library's error reaches downstream: %s", body)
	}
}

func TestEveryReasonHasItsStatus(t *testing.T) {
	want := map[clients.Kind]int{
		clients.Dial: 502, clients.TLS: 502, clients.Reset: 502, clients.Protocol: 502, clients.ResponseTooLarge: 502,
		clients.TimeoutConnect: 504, clients.TimeoutHeader: 504, clients.TimeoutBody: 504,
		clients.PoolExhausted: 503, clients.BreakerOpen: 503, clients.RequestTooLarge: 413, clients.BadRequest: 400,
		clients.Unsupported: 501,
	}
	for _, kind := range clients.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			h := open(t)
			h.upstream.answer = fails(kind, 2)
			resp, body := h.serve(inbound("GET", "/"))
			code := "0"
			if kind == clients.Canceled {
				if resp != nil {
					t.Errorf("an answer for nobody: %d", resp.Status)
				}
			} else {
				wantProblem(t, resp, body, want[kind], kind.String())
				code = strconv.Itoa(want[kind])
			}
			wantMetrics(t, h, "gatebench_gateway_requests_total", `{code="`+code+`",reason="`+kind.String()+`"} 1`)
			wantMetrics(t, h, "gatebench_gateway_upstream_attempts_total", " 2")
		})
	}
	t.Run("an error without a kind is the gateway's fault", func(t *testing.T) {
		h := open(t)
		h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
			return nil, errors.New("secret-address")
		}
		resp, body := h.serve(inbound("GET", "/"))
		wantProblem(t, resp, body, 500, "fault")
	})
}

// wantMetrics compares the samples of one metric, without its name.
func wantMetrics(t *testing.T, h *house, name string, want ...string) {
	t.Helper()
	var got []string
	for _, line := range h.metrics(name) {
		got = append(got, strings.TrimPrefix(line, name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestStatusesPassUntouched(t *testing.T) {
	for _, status := range []int{200, 204, 206, 301, 304, 401, 404, 407, 418, 429, 451, 500, 503, 599, 600, 999} {
		h := open(t)
		h.upstream.answer = responds(status, field("Retry-After: 7"))
		resp, body := h.serve(inbound("GET", "/"))
		if resp.Status != status || body != "hello" || resp.Fields.Get("Retry-After") != "7" {
			t.Errorf("upstream's %d came as %d, %q, %v", status, resp.Status, body, resp.Fields)
		}
	}
}

// What a server could not write, or would take for something else, does not get
// that far; trap N19 and case PX02.
func TestWhatIsNoFinalResponse(t *testing.T) {
	for name, answer := range map[string]func(context.Context, *clients.Request) (*clients.Response, error){
		"status 0":               responds(0),
		"status 99":              responds(99),
		"status 1000":            responds(1000),
		"interim as final":       responds(103),
		"a switch nobody wanted": responds(101),
		"line end in a value":    responds(200, clients.Field{Name: "Location", Value: "/\r\nSet-Cookie: x=1"}),
		"name no token":          responds(200, clients.Field{Name: "Content-Length ", Value: "1"}),
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			var ended error
			h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
				resp, err := answer(ctx, r)
				resp.OnEnd(func(err error) { ended = err })
				return resp, err
			}
			resp, body := h.serve(inbound("GET", "/"))
			wantProblem(t, resp, body, 502, "protocol")
			if clients.KindOf(ended) != clients.Protocol {
				t.Errorf("upstream's response ended with %v, want protocol", ended)
			}
		})
	}
}

func TestALoopIsCut(t *testing.T) {
	h := open(t)
	h.serve(inbound("GET", "/"))
	once := slices.Clone(h.upstream.last.Fields)
	resp, body := h.serve(inbound("GET", "/", once...))
	wantProblem(t, resp, body, 508, "loop")
	if h.upstream.sent != 1 {
		t.Errorf("sent %d times", h.upstream.sent)
	}
	if resp, _ := open(t).serve(inbound("GET", "/", once...)); resp.Status != 200 {
		t.Errorf("a second gateway in the row answers %d", resp.Status)
	}
}

func TestInformationalResponses(t *testing.T) {
	h := open(t)
	h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
		if r.Informational != nil {
			r.Informational(103, fields("Link: </a>", "Connection: X-N", "X-N: 1"))
			r.Informational(103, fields("Link: </b>\r\nX: y"))
		}
		return responds(200)(ctx, r)
	}
	var got [][]clients.Field
	in := inbound("GET", "/")
	in.Informational = func(status int, fs clients.Fields) {
		if status != 103 {
			t.Errorf("status %d", status)
		}
		got = append(got, nameless(fs))
	}
	h.serve(in)
	want := [][]clients.Field{fields("Link: </a>", "Via: 1.1 NAME")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("downstream got (-want +got):\n%s", diff)
	}
	in = inbound("GET", "/")
	in.ProtoMinor = 0
	in.Informational = func(int, clients.Fields) { t.Error("a 1xx for HTTP/1.0") }
	h.serve(in)
}

func TestTrailers(t *testing.T) {
	h := open(t)
	trailers := fields("X-Sum: 1", "Connection: X-N", "X-N: 1", "Transfer-Encoding: chunked", "Content-Length: 7", "host: evil", "Trailer: X")
	h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
		resp, err := responds(200)(ctx, r)
		resp.Trailers = func() clients.Fields { return slices.Clone(trailers) }
		return resp, err
	}
	resp, _ := h.serve(inbound("GET", "/"))
	if got := resp.Fields; len(got) != 1 { // Via
		t.Errorf("without an announcement: %v", got)
	}
	if diff := cmp.Diff(clients.Fields(fields("X-Sum: 1")), resp.Trailers()); diff != "" {
		t.Errorf("downstream got (-want +got):\n%s", diff)
	}
	trailers = fields("X-Sum: 1\r\n\r\nHTTP/1.1 200 OK")
	resp, _ = h.serve(inbound("GET", "/"))
	if got := resp.Trailers(); got != nil {
		t.Errorf("a malformed trailer section gave %v", got)
	}
	h.upstream.answer = responds(200)
	if resp, _ = h.serve(inbound("GET", "/")); resp.Trailers != nil {
		t.Error("trailers out of nothing")
	}

	// What is announced is announced anew, but for what does not go on.
	h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
		resp, err := responds(200, fields("Trailer: X-Sum, Transfer-Encoding,Host", "trailer: X-Late", "Trailer: , a b")...)(ctx, r)
		resp.Trailers = func() clients.Fields { return nil }
		return resp, err
	}
	resp, _ = h.serve(inbound("GET", "/"))
	if got := resp.Fields.Get("Trailer"); got != "X-Sum, X-Late" {
		t.Errorf("announced downstream: %q, want X-Sum and X-Late", got)
	}
}

func TestTheBodyIsTheClientsOwn(t *testing.T) {
	h := open(t)
	body := io.NopCloser(strings.NewReader("streamed"))
	h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) {
		return &clients.Response{Status: 200, Body: body, ContentLength: -1}, nil
	}
	resp := h.Serve(t.Context(), inbound("GET", "/"))
	if resp.Body != body || resp.ContentLength != -1 {
		t.Errorf("body %T of length %d: wrapped or buffered", resp.Body, resp.ContentLength)
	}
	resp.End(nil)
}
