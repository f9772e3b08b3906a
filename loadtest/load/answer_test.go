package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// readAnswer reads one answer from src and says how many bytes of it were used.
func readAnswer(src io.Reader, noBody bool) (a answer, used int, err error) {
	var read int
	r := new(answers)
	r.reset(readerFunc(func(b []byte) (int, error) {
		n, err := src.Read(b)
		read += n
		return n, err
	}))
	a, err = r.next(noBody)
	return a, read - r.buffered(), err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, in string
		noBody   bool
		want     answer
		rest     string // of in, left for the next answer
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 ", false, answer{status: 200, body: 3, reuse: true}, "HTTP/1.1 "},
		{"come back later", "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n", false, answer{status: 503, reuse: true, later: true}, ""},
		{"no reason", "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", false, answer{status: 200, body: 0, reuse: true}, ""},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", false, answer{status: 200, body: 1, reuse: true}, ""},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", false, answer{status: 200, body: 1, reuse: true}, ""},
		{"large body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long, false, answer{status: 200, body: 100_000, reuse: true}, ""},
		{"large head", "HTTP/1.1 200 OK\r\nX: " + long[:60_000] + "\r\nContent-Length: 1\r\n\r\na", false, answer{status: 200, body: 1, reuse: true}, ""},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;q=\"1\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\n", false, answer{status: 200, body: 13, reuse: true}, ""},
		{"large chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + long + "\r\n1\r\na\r\n0\r\n\r\n", false, answer{status: 200, body: 100_001, reuse: true}, ""},
		{"both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", false, answer{status: 200, body: 1, reuse: false}, ""},
		{"until close", "HTTP/1.1 200 OK\r\n\r\n" + long, false, answer{status: 200, body: 100_000, reuse: false}, ""},
		{"close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na", false, answer{status: 200, body: 1, reuse: false}, ""},
		{"old", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", false, answer{status: 200, body: 1, reuse: false}, ""},
		{"old, kept", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", false, answer{status: 200, body: 1, reuse: true}, ""},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", false, answer{status: 204, body: 0, reuse: true}, ""},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", false, answer{status: 304, body: 0, reuse: true}, ""},
		{"head", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, answer{status: 200, body: 0, reuse: true}, ""},
		{"head, no length", "HTTP/1.1 200 OK\r\n\r\n", true, answer{status: 200, body: 0, reuse: true}, ""},
	} {
		for kind, src := range sources(tt.in) {
			a, used, err := readAnswer(src, tt.noBody)
			// What came behind the answer was not asked for.
			want := tt.want
			want.reuse = want.reuse && (tt.rest == "" || kind == "byte by byte")
			if err != nil || a != want || tt.in[used:] != tt.rest {
				t.Errorf("%s, %s: %+v, %q left, %v; want %+v", tt.name, kind, a, tt.in[used:], err, want)
			}
		}
	}
}

// sources yields in whole, in single bytes, and with the error beside the last
// bytes.
func sources(in string) map[string]io.Reader {
	return map[string]io.Reader{
		"at once":         strings.NewReader(in),
		"byte by byte":    iotest.OneByteReader(strings.NewReader(in)),
		"error with data": iotest.DataErrReader(strings.NewReader(in)),
		"halves":          iotest.HalfReader(strings.NewReader(in)),
	}
}

func TestMalformedAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, in := range []string{
		"SSH-2.0-OpenSSH_9.6\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.2 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1-200 OK\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100),
		ok + "no colon\r\n\r\n",
		ok + ": no name\r\n\r\n",
		ok + "Content-Length : 1\r\n\r\na",
		ok + "X: 1\r\n folded\r\n\r\n",
		ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		ok + "Content-Length: +1\r\n\r\na",
		ok + "Content-Length: -1\r\n\r\na",
		ok + "Content-Length:\r\n\r\n",
		ok + "Content-Length: 99999999999999999999\r\n\r\n",
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 9000),
		ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("T: "+strings.Repeat("x", 1000)+"\r\n", 100),
		ok + "X: " + strings.Repeat("x", maxHead),
	} {
		for kind, src := range sources(in) {
			_, _, err := readAnswer(src, false)
			if classify(err) != protocol {
				t.Errorf("%.60q, %s: %v", in, kind, err)
			}
		}
	}
}

func TestCutAnswersAreNotWhole(t *testing.T) {
	for _, in := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n012345678",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r",
	} {
		for n := range len(in) {
			if _, _, err := readAnswer(strings.NewReader(in[:n]), false); !errors.Is(err, io.EOF) {
				t.Fatalf("%q: %v", in[:n], err)
			}
		}
	}
}

// Whatever the bytes: no panic, bounded memory, the same result however they are
// split, nothing used beyond the answer, and wherever net/http takes the answer
// too, the same status and body and no reuse that it forbids.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		answer200, answer503,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 200 OK\n\nuntil the end",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, noBody bool) {
		whole, used, err := readAnswer(bytes.NewReader(in), noBody)
		split, usedSplit, errSplit := readAnswer(iotest.OneByteReader(bytes.NewReader(in)), noBody)
		if classify(err) != classify(errSplit) {
			t.Fatalf("at once %v, split %v", err, errSplit)
		}
		if err != nil {
			return
		}
		if used > len(in) || used != usedSplit || whole.status != split.status || whole.body != split.body {
			t.Fatalf("at once %+v of %d bytes, split %+v of %d", whole, used, split, usedSplit)
		}
		if whole.reuse && used != len(in) {
			t.Fatalf("reused with %d bytes unread", len(in)-used)
		}
		if whole.body > int64(used) {
			t.Fatalf("a body of %d in %d bytes", whole.body, used)
		}
		method := http.MethodGet
		if noBody {
			method = http.MethodHead
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), &http.Request{Method: method})
		if err != nil || resp.StatusCode < 200 {
			return
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			return
		}
		if resp.StatusCode != whole.status || n != whole.body {
			t.Fatalf("net/http reads %d with %d bytes, we %+v", resp.StatusCode, n, whole)
		}
		if whole.reuse && resp.Close {
			t.Fatalf("reused, where net/http closes")
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	in := []byte("HTTP/1.1 200 OK\r\nServer: fasthttp\r\nDate: Mon, 01 Dec 2025 03:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n" + strings.Repeat("x", 60))
	r := new(answers)
	r.reset(readerFunc(func(b []byte) (int, error) { return copy(b, in), nil }))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.next(false); err != nil {
			b.Fatal(err)
		}
	}
}
