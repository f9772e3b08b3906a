package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gatebench/clients"
)

// wire sends req over net/http's transport and returns the bytes that came out of it
// up to the answer, which comes as soon as the head is through.
func wire(t *testing.T, req *clients.Request) (string, error) {
	t.Helper()
	c := &tape{answered: make(chan struct{})}
	s := settings("upstream.example")
	transport, err := clients.NewTransport(s, new(http.Transport))
	if err != nil {
		t.Fatal(err)
	}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return c, nil }
	resp, err := clients.RoundTripper(transport, s).Do(t.Context(), req)
	if err != nil {
		return "", err
	}
	resp.End(nil)
	return c.String(), nil
}

// tape is a connection that records what is written and answers a head once.
type tape struct {
	net.Conn // nil: no other method may be called
	mu       sync.Mutex
	written  bytes.Buffer
	answered chan struct{}
	once     sync.Once
	answer   strings.Reader
}

func (c *tape) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written.Write(p)
	if bytes.Contains(c.written.Bytes(), []byte("\r\n\r\n")) {
		c.once.Do(func() {
			c.answer.Reset("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			close(c.answered)
		})
	}
	return len(p), nil
}

func (c *tape) Read(p []byte) (int, error) {
	<-c.answered
	return c.answer.Read(p)
}

func (c *tape) Close() error {
	c.once.Do(func() { close(c.answered) })
	return nil
}

func (c *tape) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written.String()
}

func TestTargetGoesOutByteForByte(t *testing.T) {
	for _, target := range []string{
		"/", "/a%2Fb", "/a//b", "/a/../b", "/a/%2e%2e/b", "/a?", "/a?x=1;y=2", "/a?x=%zz", "/%zz",
		"/%E2%82%AC", "/a%3Fb", "/a;p=1", "//h/p", "//h/p?", "//h/a%2Fb?x=%zz&y=%2F", "//", "///", "*",
		"/a?x=http://b//c", "/{a}|b\"c", "/\xe2\x82\xac",
	} {
		req := get()
		req.Target = target
		got, err := wire(t, req)
		if err != nil {
			t.Errorf("%q: %v", target, err)
			continue
		}
		if line, _, _ := strings.Cut(got, "\r\n"); line != "GET "+target+" HTTP/1.1" {
			t.Errorf("%q went out as %q", target, line)
		}
	}
}

// What net/http would rewrite or upstream would read as something else is refused.
func TestTargetThatWouldChangeIsRefused(t *testing.T) {
	for _, target := range []string{"", "//h/%zz", "//h/{a}", "/a b", "/ HTTP/1.1", "/a\r\nX: y", "/a\x7f"} {
		req := get()
		req.Target = target
		if got, err := wire(t, req); clients.KindOf(err) != clients.BadRequest {
			t.Errorf("%q: %q, %v; want bad_request", target, got, err)
		}
	}
}

func TestFieldsGoOutAsTheyCame(t *testing.T) {
	for name, c := range map[string]struct {
		fields clients.Fields
		want   []string // the head's lines after Host, sorted by net/http
	}{
		"none invented":  {nil, nil},
		"case is kept":   {clients.Fields{{"x-lower", "1"}, {"X-APPID", "2"}}, []string{"X-APPID: 2", "x-lower: 1"}},
		"lines in order": {clients.Fields{{"x-a", "1"}, {"b", "0"}, {"X-A", "2"}, {"x-a", "3"}}, []string{"b: 0", "x-a: 1", "x-a: 2", "x-a: 3"}},
		"an empty value": {clients.Fields{{"X-Empty", ""}}, []string{"X-Empty: "}},
		"User-Agent lines": {
			clients.Fields{{"User-Agent", "a"}, {"USER-AGENT", "b"}},
			[]string{"user-agent: a", "user-agent: b"},
		},
		"an empty User-Agent": {clients.Fields{{"User-Agent", ""}}, []string{"user-agent: "}},
		// net/http replays a POST that has one, if it sees it.
		"Idempotency-Key": {
			clients.Fields{{"Idempotency-Key", "k"}, {"X-Idempotency-Key", "k"}},
			[]string{"idempotency-key: k", "x-idempotency-key: k"},
		},
		// net/http looks these up by their canonical names.
		"an upgrade": {
			clients.Fields{{"connection", "upgrade"}, {"UPGRADE", "websocket"}},
			[]string{"Connection: upgrade", "Upgrade: websocket"},
		},
		// A twin of the framing in another case would slip past net/http.
		"framing is not a field": {
			clients.Fields{{"content-length", "5"}, {"TRANSFER-ENCODING", "chunked"}, {"host", "evil"}, {"X", "1"}},
			[]string{"X: 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := get()
			req.Fields = c.fields
			got, err := wire(t, req)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(append([]string{"GET / HTTP/1.1", "Host: h"}, c.want...), "\r\n") + "\r\n\r\n"
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestManyFieldsStayTogether(t *testing.T) {
	req := get()
	for i := range 500 {
		name := "x-many"
		if i%2 == 1 {
			name = "X-MANY"
		}
		req.Fields.Add(name, fmt.Sprintf("%03d", i))
	}
	got, err := wire(t, req)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "X-Many: %03d\r\n", i)
	}
	if !strings.Contains(got, want.String()) {
		t.Error("500 lines of one name in two spellings did not stay in order")
	}
}

func TestFramingOfRequests(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   string
		length int64
		want   string
	}{
		"GET":                         {"GET", "", 0, ""},
		"empty POST":                  {"POST", "", 0, "Content-Length: 0\r\n"},
		"POST":                        {"POST", "abc", 3, "Content-Length: 3\r\n"},
		"GET with a body":             {"GET", "abc", 3, "Content-Length: 3\r\n"},
		"unknown length":              {"POST", "abc", -1, "Transfer-Encoding: chunked\r\n"},
		"GET of unknown length":       {"GET", "", -1, "Transfer-Encoding: chunked\r\n"},
		"a body that is said to be 0": {"DELETE", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &clients.Request{Method: c.method, Target: "/", Host: "h", ContentLength: c.length}
			if c.length != 0 || c.method == "DELETE" {
				req.Body = strings.NewReader(c.body)
			}
			got, err := wire(t, req)
			if err != nil {
				t.Fatal(err)
			}
			if want := c.method + " / HTTP/1.1\r\nHost: h\r\n" + c.want + "\r\n"; !strings.HasPrefix(got, want) {
				t.Errorf("got %q, want %q first", got, want)
			}
		})
	}
}

// FuzzOutgoing: whatever downstream sent, upstream never sees more than one request
// nor more fields than came in.
func FuzzOutgoing(f *testing.F) {
	f.Add("GET", "/", "X-A", "1", "x-a", "2")
	f.Add("POST", "//a?b", "Content-Length", "5", "transfer-encoding", "chunked")
	f.Add("GET", "/a\r\nX: y", "a\r\nb", "c\r\n\r\nGET / HTTP/1.1", "", " ")
	f.Fuzz(func(t *testing.T, method, target, name1, value1, name2, value2 string) {
		req := &clients.Request{Method: method, Target: target, Host: "h", Fields: clients.Fields{{name1, value1}, {name2, value2}}}
		got, err := wire(t, req)
		if err != nil {
			return
		}
		head, rest, _ := strings.Cut(got, "\r\n\r\n")
		if rest != "" {
			t.Errorf("more than a head: %q", got)
		}
		// Request line, Host, two fields, and the length of an empty POST.
		if n := strings.Count(head, "\n"); n > 4 {
			t.Errorf("%d lines after the first: %q", n, head)
		}
		line, fields, _ := strings.Cut(head, "\r\n")
		if strings.Count(line, " ") != 2 {
			t.Errorf("request line %q", line)
		}
		if line != method+" "+target+" HTTP/1.1" && method != "" {
			t.Errorf("request line %q of %q %q", line, method, target)
		}
		for l := range strings.SplitSeq(fields, "\r\n") {
			name, value, _ := strings.Cut(l, ":")
			if clients.EqualName(name, "Transfer-Encoding") || clients.EqualName(name, "Content-Length") && value != " 0" {
				t.Errorf("framing that nobody asked for: %q", l)
			}
		}
	})
}

func TestMalformedRequestIsDownstreamsFault(t *testing.T) {
	for name, req := range map[string]*clients.Request{
		"method":      {Method: "G T", Target: "/", Host: "h"},
		"field name":  {Method: "GET", Target: "/", Host: "h", Fields: clients.Fields{{"a b", "1"}}},
		"field value": {Method: "GET", Target: "/", Host: "h", Fields: clients.Fields{{"a", "1\r\nb: 2"}}},
	} {
		if got, err := wire(t, req); clients.KindOf(err) != clients.BadRequest {
			t.Errorf("malformed %s: %q, %v; want bad_request", name, got, err)
		}
	}
}
