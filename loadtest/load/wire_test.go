package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tests here use real sockets. They send few requests and assert no times.

// iterations is a short closed run.
func iterations(n int64, users int) Profile {
	return profile(Profile{Executor: SharedIterations, Iterations: n, VUs: users})
}

func loadURL(t *testing.T, target Target, p Profile) *Summary {
	t.Helper()
	s, err := Run(t.Context(), target, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, s)
	return s
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestAnswersOfARealServer(t *testing.T) {
	large := strings.Repeat("x", 300_000)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			_, _ = io.WriteString(w, large)
		case "/chunked":
			for range 3 {
				_, _ = io.WriteString(w, large[:100_000])
				_ = http.NewResponseController(w).Flush()
			}
		case "/close":
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "ok")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/echo":
			// All of it first: net/http gives up the rest at the first write.
			b, _ := io.ReadAll(r.Body)
			_, _ = w.Write(b)
		case "/missing":
			http.NotFound(w, r)
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "ok")
		}
	})
	for _, tt := range []struct {
		method, path string
		body         string
		status       string
		bytes, opens int64 // opens at most: one user may be through before the other starts
	}{
		{"GET", "/large", "", "200", 300_000, 2},
		{"HEAD", "/large", "", "200", 0, 2},
		{"GET", "/chunked", "", "200", 300_000, 2},
		{"GET", "/close", "", "200", 2, 20},
		{"GET", "/empty", "", "204", 0, 2},
		{"POST", "/echo", large, "200", 300_000, 2},
		{"GET", "/missing", "", "404", 19, 2},
		{"GET", "/hints", "", "200", 2, 2},
	} {
		got := loadURL(t, Target{URL: s.URL + tt.path, Method: tt.method, Body: []byte(tt.body)}, iterations(20, 2))
		if diff := cmp.Diff(map[string]int64{tt.status: 20}, got.Statuses); diff != "" {
			t.Errorf("%s %s: %s %v", tt.method, tt.path, diff, got.ErrorExamples)
		}
		if got.BodyBytes != 20*tt.bytes || got.ConnectionsOpened > tt.opens {
			t.Errorf("%s %s: %d body bytes over %d connections", tt.method, tt.path, got.BodyBytes, got.ConnectionsOpened)
		}
		if tt.path == "/close" && got.ConnectionsOpened != 20 {
			t.Errorf("%d connections for 20 answers that close theirs", got.ConnectionsOpened)
		}
	}
}

func TestOpenLoadOverSockets(t *testing.T) {
	var seen atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	got := loadURL(t, Target{URL: s.URL}, profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(400), Duration: 500 * time.Millisecond}))
	if got.Requests.Planned != 200 || got.Requests.Failed != 0 || seen.Load() != got.Requests.Sent {
		t.Errorf("%+v, and the server saw %d", got.Requests, seen.Load())
	}
	if got.Generator.CPUMicrosPerRequest <= 0 {
		t.Error("no CPU per request")
	}
}

func TestInterruptOverSockets(t *testing.T) {
	arrived := make(chan struct{}, 100)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-r.Context().Done() })
	for _, p := range []Profile{
		{Executor: ConstantVUs, VUs: 5, Duration: time.Hour},
		{Executor: ConstantArrivalRate, Rate: perSecond(.001), Duration: 24 * time.Hour, VUs: 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *Summary)
		go func() {
			s, err := Run(ctx, Target{URL: s.URL}, profile(p), nil)
			if err != nil {
				t.Error(err)
			}
			done <- s
		}()
		for range p.VUs {
			<-arrived
		}
		cancel()
		got := <-done
		balanced(t, got)
		if !got.Interrupted || got.Errors["cut"] != int64(p.VUs) {
			t.Errorf("interrupted = %v, errors %v", got.Interrupted, got.Errors)
		}
	}
}

func TestLoadOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()

	t.Run("trusted", func(t *testing.T) {
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		m, err := Target{URL: s.URL}.prepare(profile(Profile{}))
		if err != nil {
			t.Fatal(err)
		}
		d := &dialer{targets: []destination{{addr: s.Listener.Addr().String()}}, tls: &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}}}
		e := newEngine(m, iterations(50, 2), d.dial)
		if err := e.run(t.Context(), newWaker, nil); err != nil {
			t.Fatal(err)
		}
		got := e.summary()
		balanced(t, got)
		if got.Requests.OK != 50 || got.ConnectionsOpened != 2 || got.BodyBytes != 50*int64(len("HTTP/1.1")) {
			t.Errorf("%+v over %d connections, %v", got.Requests, got.ConnectionsOpened, got.ErrorExamples)
		}
	})
	t.Run("not trusted", func(t *testing.T) {
		got := loadURL(t, Target{URL: s.URL}, iterations(2, 1))
		if got.Errors["tls"] != 2 {
			t.Errorf("%v %v", got.Errors, got.ErrorExamples)
		}
	})
}

func TestEveryAddressOfAHostIsTried(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	d := &dialer{targets: []destination{{addr: dead.Addr().String()}, {addr: s.Listener.Addr().String()}}}
	for range 2 {
		c, err := d.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if d.first.Load() != 1 {
			t.Error("the address that answered is not remembered")
		}
	}
}

func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if got := loadURL(t, Target{URL: "http://" + l.Addr().String()}, iterations(3, 1)); got.Requests.OK != 3 {
		t.Errorf("%+v %v", got.Requests, got.ErrorExamples)
	}
}

// raw is a server of one's own making: it is given every request's connection.
func raw(t *testing.T, serve func(request int, c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				b := make([]byte, 4096)
				for i := 0; ; i++ {
					if n, err := c.Read(b); err != nil || n == 0 {
						return
					}
					serve(i, c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return "http://" + l.Addr().String()
}

func TestBrokenAnswersOverSockets(t *testing.T) {
	abort := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	for _, tt := range []struct {
		name  string
		serve func(int, net.Conn)
		want  map[string]int64
	}{
		{"closed before the answer", func(_ int, c net.Conn) { c.Close() }, map[string]int64{"reset": 4}},
		{"reset before the answer", func(_ int, c net.Conn) { abort(c) }, map[string]int64{"reset": 4}},
		{"closed in the answer", func(_ int, c net.Conn) { _, _ = io.WriteString(c, answer200[:30]); c.Close() }, map[string]int64{"reset": 4}},
		{"not HTTP", func(_ int, c net.Conn) { _, _ = io.WriteString(c, "220 ready\r\n") }, map[string]int64{"protocol": 4}},
		// A request that was written once is not written again, although a
		// browser would: the second on each connection fails.
		{"one answer a connection, unannounced", func(i int, c net.Conn) {
			if i == 0 {
				_, _ = io.WriteString(c, answer200)
			} else {
				abort(c)
			}
		}, map[string]int64{"reset": 2}},
		{"too much, unasked", func(_ int, c net.Conn) { _, _ = io.WriteString(c, answer200+answer200) }, map[string]int64{}},
	} {
		got := loadURL(t, Target{URL: raw(t, tt.serve)}, iterations(4, 1))
		if diff := cmp.Diff(tt.want, got.Errors); diff != "" {
			t.Errorf("%s: %s%v", tt.name, diff, got.ErrorExamples)
		}
	}
}

// A server may close a connection that idles. The engine looks before it writes,
// so no request is lost to that.
func TestConnectionThatWasClosedIdleIsReplaced(t *testing.T) {
	closed := make(chan struct{})
	url := raw(t, func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, answer200)
		c.Close()
		closed <- struct{}{}
	})
	m, err := Target{URL: url}.prepare(profile(Profile{}))
	if err != nil {
		t.Fatal(err)
	}
	dial, err := newDialer(t.Context(), m.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(m, iterations(1, 1), dial)
	e.ctx = t.Context()
	u := e.newUser(0)
	defer u.hangUp()
	for range 3 {
		u.send(0, e.now())
		<-closed
		u.lastDone = -time.Hour // as if it had idled for long
	}
	if s := e.summary(); s.Requests.OK != 3 || s.ConnectionsOpened != 3 {
		t.Errorf("%+v over %d connections, %v", s.Requests, s.ConnectionsOpened, s.ErrorExamples)
	}
}

// An upload may be answered before it is read, and its connection reset then: the
// write fails, but the answer counts.
func TestEarlyAnswerToAnUploadIsRead(t *testing.T) {
	url := raw(t, func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		c.Close() // with most of the upload unread, which is a reset
	})
	got := loadURL(t, Target{URL: url, Method: "POST", Body: make([]byte, 16<<20)}, iterations(3, 1))
	if diff := cmp.Diff(map[string]int64{"413": 3}, got.Statuses); diff != "" {
		t.Errorf("%s%v", diff, got.ErrorExamples)
	}
	if got.ConnectionsOpened != 3 {
		t.Errorf("%d connections, although none was good for another request", got.ConnectionsOpened)
	}
}

func TestUnknownHostIsAnError(t *testing.T) {
	_, err := Run(t.Context(), Target{URL: "http://host.invalid/"}, iterations(1, 1), nil)
	if err == nil {
		t.Error("host.invalid was found")
	}
}

// The hot path allocates nothing: what the engine leaves to collect would be paid
// for by the target beside it.
func TestRequestsAllocateNothing(t *testing.T) {
	mixed := iterations(1, 1)
	mixed.Requests = []Request{
		{Get: "/product", Weight: 3, Expect: Expect{Status: 200, Contains: "ok", Headers: map[string]string{"content-length": "2"}, SHA256: digestOfOK}},
		{Post: "/product", JSON: []byte(`{"a":1}`)},
	}
	for name, p := range map[string]Profile{"one request": iterations(1, 1), "a mix with checks": mixed} {
		m, err := Target{URL: "http://canned/"}.prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(m, p, func(context.Context) (net.Conn, error) { return canned{}, nil })
		e.ctx = t.Context()
		u := e.newUser(0)
		i, due := int64(0), e.now()
		send := func() { due = u.send(i, due); i++ }
		for range 100 {
			send()
		}
		if n := testing.AllocsPerRun(1000, send); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if s := e.summary(); s.Requests.OK != s.Requests.Sent || s.Requests.Sent < 1000 {
			t.Errorf("%s: %+v %v", name, s.Requests, s.ErrorExamples)
		}
	}
}

// canned answers whatever is written.
type canned struct{ net.Conn }

func (canned) Write(b []byte) (int, error) { return len(b), nil }
func (canned) Read(b []byte) (int, error)  { return copy(b, answer200), nil }
func (canned) SetDeadline(time.Time) error { return nil }
func (canned) Close() error                { return nil }
