package load

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
)

var digestOfOK = func() string { d := sha256.Sum256([]byte("ok")); return hex.EncodeToString(d[:]) }()

func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMixIsWrittenAsAsked(t *testing.T) {
	names := write(t, "names.csv", "\ufeffname,price\n\"a \"\"b\"\"&c\",1.5\nÄ/ö,2\n")
	text := write(t, "body.txt", "from a file")
	for _, tt := range []struct {
		r    Request
		base string
		want []string
	}{
		{Request{Get: "/product?type=T"}, "http://h", []string{"GET /product?type=T HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"}},
		{Request{Get: "/x"}, "http://h/base/", []string{"GET /base/x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"}},
		{Request{Delete: "/x", Headers: map[string]string{"Z": "1", "Y": "2"}}, "http://h", []string{"DELETE /x HTTP/1.1\r\nHost: h\r\nA: b\r\nY: 2\r\nZ: 1\r\n\r\n"}},
		{
			Request{Post: "/p", JSON: []byte(`{"name":"${name}"}`), Data: names}, "http://h",
			[]string{
				"POST /p HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n" + `{"name":"a \"b\"\u0026c"}`,
				"POST /p HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n" + `{"name":"Ä/ö"}`,
			},
		},
		{
			Request{Put: "/${name}", Form: map[string]string{"b b": "x${price}&", "a": "1"}, Data: names, Headers: map[string]string{"content-type": "mine"}}, "http://h",
			[]string{
				"PUT /a%20%22b%22%26c HTTP/1.1\r\nHost: h\r\nA: b\r\ncontent-type: mine\r\nContent-Length: 17\r\n\r\na=1&b+b=x1.5%26",
				"PUT /%C3%84%2F%C3%B6 HTTP/1.1\r\nHost: h\r\nA: b\r\ncontent-type: mine\r\nContent-Length: 15\r\n\r\na=1&b+b=x2%26",
			},
		},
		{Request{Patch: "/p", Body: "${raw}"}, "http://h", []string{"PATCH /p HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Length: 6\r\n\r\n${raw}"}},
		{Request{Post: "/p", BodyFile: text}, "http://h", []string{"POST /p HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Length: 11\r\n\r\nfrom a file"}},
	} {
		p := profile(Profile{Requests: []Request{tt.r}})
		m, err := Target{URL: tt.base, Fields: []Field{{"A", "b"}}}.prepare(p)
		if err != nil {
			t.Errorf("%+v: %v", tt.r, err)
			continue
		}
		var got []string
		for _, b := range m.kinds[0].bytes {
			got = append(got, string(b))
			head, body, _ := strings.Cut(string(b), "\r\n\r\n")
			if body != "" && !strings.Contains(head, fmt.Sprintf("Content-Length: %d", len(body))) {
				t.Errorf("the body has %d bytes: %s", len(body), head)
			}
		}
		for i := range tt.want { // lengths are checked above
			if i < len(got) {
				got[i], tt.want[i] = lengthless(got[i]), lengthless(tt.want[i])
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func lengthless(s string) string {
	before, after, ok := strings.Cut(s, "Content-Length: ")
	if !ok {
		return s
	}
	_, after, _ = strings.Cut(after, "\r\n")
	return before + after
}

func TestMixRefusesWhatCannotBeSent(t *testing.T) {
	data := write(t, "d.csv", "a,b\n1,\"x\r\ny\"\n")
	empty := write(t, "e.csv", "a,b\n")
	ragged := write(t, "r.csv", "a,b\n1\n")
	for _, tt := range []struct {
		name string
		r    Request
		path string
	}{
		{"nothing", Request{}, "requests[0].get"},
		{"two", Request{Get: "/a", Post: "/b"}, "requests[0].get"},
		{"another host", Request{Post: "http://other/"}, "requests[0].post"},
		{"a blank", Request{Get: "/a b"}, "requests[0].get"},
		{"two bodies", Request{Post: "/", Body: "a", JSON: []byte("1")}, "requests[0].body"},
		{"a body for GET", Request{Get: "/", Body: "a"}, "requests[0].body"},
		{"upload nowhere", Request{Upload: data}, "requests[0].to"},
		{"to without upload", Request{Get: "/", To: "/x"}, "requests[0].to"},
		{"no file", Request{Upload: "/no/such/file", To: "/"}, "requests[0]"},
		{"a line in a field", Request{Get: "/", Data: data, Headers: map[string]string{"X": "${b}"}}, "requests[0].headers"},
		{"framing", Request{Get: "/", Headers: map[string]string{"content-length": "5"}}, "requests[0].headers"},
		{"no column", Request{Get: "/${c}", Data: data}, "requests[0]"},
		{"no lines", Request{Get: "/", Data: empty}, "requests[0]"},
		{"ragged lines", Request{Get: "/", Data: ragged}, "requests[0]"},
		{"weight", Request{Get: "/", Weight: -1}, "requests[0].weight"},
		{"status", Request{Get: "/", Expect: Expect{Status: 99}}, "requests[0].expect.status"},
		{"digest", Request{Get: "/", Expect: Expect{SHA256: "abc"}}, "requests[0].expect.sha256"},
		{"field", Request{Get: "/", Expect: Expect{Headers: map[string]string{"a b": ""}}}, "requests[0].expect.headers"},
	} {
		_, err := Target{URL: "http://h/"}.prepare(profile(Profile{Requests: []Request{tt.r}}))
		ps := conf.Problems(err)
		if len(ps) != 1 || ps[0].Path != tt.path {
			t.Errorf("%s: %v, want one problem with %s", tt.name, err, tt.path)
		}
	}
	for name, target := range map[string]Target{
		"query":  {URL: "http://h/?a"},
		"method": {URL: "http://h/", Method: "PUT"},
		"body":   {URL: "http://h/", Body: []byte("x")},
	} {
		if _, err := target.prepare(profile(Profile{Requests: []Request{{Get: "/"}}})); len(conf.Problems(err)) != 1 {
			t.Errorf("%s beside a mix: %v", name, err)
		}
	}
}

// Of each kind as many come as its weight says, lines of data come in turn, and the
// seed decides.
func TestMixKeepsItsWeights(t *testing.T) {
	p := profile(Profile{Seed: 3, Requests: []Request{
		{Weight: 70, Get: "/a"}, {Weight: 25, Post: "/b"}, {Weight: 5, Get: "/${n}", Data: write(t, "n.csv", "n\n0\n1\n2\n")},
	}})
	pick := func(p Profile) (counts [3]float64, order string) {
		m, err := Target{URL: "http://h"}.prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(100_000) {
			k, b := m.pick(i)
			counts[k]++
			if k == 2 && string(b[5]) != fmt.Sprint(i%3) {
				t.Fatalf("request %d has line %c of the data", i, b[5])
			}
			if i < 64 {
				order += fmt.Sprint(k)
			}
		}
		return counts, order
	}
	counts, order := pick(p)
	for k, share := range []float64{.70, .25, .05} {
		near(t, "share", counts[k]/100_000, share, 4*math.Sqrt(share*(1-share)/100_000))
	}
	if _, again := pick(p); again != order {
		t.Error("the same seed gave another order")
	}
	p.Seed++
	if _, other := pick(p); other == order {
		t.Error("another seed gave the same order")
	}
}

func TestMixOverSockets(t *testing.T) {
	file := write(t, "file.bin", strings.Repeat("\x00\xff", 40_000))
	var mu sync.Mutex
	seen := map[string]int64{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		what := r.Method + " " + r.URL.Path
		if f, _, err := r.FormFile("file"); err == nil {
			if b, err := io.ReadAll(f); err != nil || len(b) != 80_000 {
				what = fmt.Sprintf("an upload of %d bytes, %v", len(b), err)
			}
		}
		mu.Lock()
		seen[what]++
		mu.Unlock()
		w.Header().Set("X-Kind", r.Method)
		_, _ = io.WriteString(w, strings.Repeat("x", 50_000)+"ok")
	})
	p := iterations(300, 3)
	p.Requests = []Request{
		{Name: "fine", Weight: 2, Get: "/a", Expect: Expect{Contains: "xok", Headers: map[string]string{"x-kind": "GET"}}},
		{Weight: 1, Post: "/b", JSON: []byte(`{}`), Expect: Expect{Contains: "no such text"}},
		{Weight: 1, Upload: file, To: "/u", Expect: Expect{SHA256: digestOfOK}},
		{Weight: 1, Head: "/h", Expect: Expect{Headers: map[string]string{"X-Kind": "GET"}}},
		{Weight: 1, Get: "/s", Expect: Expect{Status: 201}},
	}
	got := loadURL(t, Target{URL: s.URL}, p)
	if len(got.ByRequest) != 5 {
		t.Fatalf("%+v", got.ByRequest)
	}
	var sent int64
	for i, name := range []string{"fine", "POST /b", "POST /u", "HEAD /h", "GET /s"} {
		k := got.ByRequest[i]
		sent += k.Requests.Sent
		if k.Name != name || k.Requests.Sent == 0 || k.Requests.Completed != k.Requests.Sent || (k.Requests.OK > 0) != (i == 0) {
			t.Errorf("%+v, want %s", k, name)
		}
	}
	fine := got.ByRequest[0].Requests.OK
	want := map[string]int64{"check": 300 - fine - got.ByRequest[4].Requests.Sent, "status": got.ByRequest[4].Requests.Sent}
	if diff := cmp.Diff(want, got.Errors); diff != "" || sent != 300 || got.Requests.OK != fine {
		t.Errorf("%s, %d in all: %v", diff, sent, got.ErrorExamples)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["GET /a"] != fine || seen["POST /u"] != got.ByRequest[2].Requests.Sent {
		t.Errorf("the server saw %v", seen)
	}
}

// What an open load drops is counted for the kind that it would have been.
func TestDroppedRequestsHaveAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := loadPipes(t, t.Context(), profile(Profile{
			Executor: ConstantArrivalRate, Rate: perSecond(10), VUs: 2, Duration: 10 * time.Second, Timeout: 3 * time.Second,
			Requests: []Request{{Get: "/a"}, {Get: "/b"}},
		}), &pipes{script: afterDelay(time.Second)})
		var sum Requests
		for _, k := range s.ByRequest {
			sum.Planned += k.Requests.Planned
			sum.Sent += k.Requests.Sent
			sum.Completed += k.Requests.Completed
			sum.OK += k.Requests.OK
			sum.Dropped += k.Requests.Dropped
		}
		if diff := cmp.Diff(s.Requests, sum); diff != "" {
			t.Error(diff)
		}
	})
}

// What one answer held does not count for the next.
func TestChecksLookAtOneAnswerAlone(t *testing.T) {
	bodies := []string{"right", "wrong", "right", "wrong"}
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{script: func(i int64) string {
			b := bodies[i]
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Body: %s\r\nContent-Length: %d\r\n\r\n%s", b, len(b), b)
		}}
		right := sha256.Sum256([]byte("right"))
		for _, e := range []Expect{{Contains: "right"}, {SHA256: hex.EncodeToString(right[:])}, {Headers: map[string]string{"x-body": "right"}}} {
			server.seen.Store(0)
			p := iterations(4, 1)
			p.Requests = []Request{{Get: "/", Expect: e}}
			_, s := loadPipes(t, t.Context(), p, server)
			if s.Requests.OK != 2 || s.Errors["check"] != 2 || s.ErrorExamples["check"] == "" {
				t.Errorf("%+v: %+v %v", e, s.Requests, s.Errors)
			}
		}
	})
}
