package fasthttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gatebench/clients"
	"gatebench/clients/clienttest"

	"go.uber.org/goleak"
)

// Whatever goroutine stays is a fault of ours, but for the library's cleaner of
// idle connections, which is declared.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

func TestClient(t *testing.T) { clienttest.Run(t, New, Deviations()...) }

// settings for an upstream that answers each request on its nth connection with
// what answer gives; "" closes the connection.
func settings(t *testing.T, answer func(r *http.Request, n int) string) clients.Settings {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for n := 1; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(conn, n, answer)
		}
	}()
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: "http", Host: ln.Addr().String()}
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	return s
}

func serve(conn net.Conn, n int, answer func(*http.Request, int) string) {
	defer conn.Close()
	for br := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		a := answer(r, n)
		if a == "" {
			return
		}
		_, _ = io.WriteString(conn, a)
	}
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nx-Odd-CASE: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func newClient(t *testing.T, s clients.Settings) *client {
	t.Helper()
	c, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*client)
}

func get(target string) *clients.Request {
	return &clients.Request{Method: "GET", Target: target, Host: "shop.example"}
}

func whole(t *testing.T, c clients.Client, req *clients.Request) string {
	t.Helper()
	resp, err := c.Do(context.Background(), req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.Target, err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.End(err)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.Target, err)
	}
	return string(b)
}

func TestPoolPolicies(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	s.Pool.MaxConns, s.Pool.IdleTimeout = 7, 0

	equal := newClient(t, s)
	if h := &equal.host; h.MaxConns != 7 || h.MaxIdleConnDuration < 24*time.Hour {
		t.Errorf("equal: %d connections, idle for %v; want 7, for ever", h.MaxConns, h.MaxIdleConnDuration)
	}
	s.Pool.Policy = clients.PoolLibrary
	shipped := newClient(t, s)
	if h := &shipped.host; h.MaxConns != 0 || h.MaxIdleConnDuration != 0 || h.ConnPoolStrategy != 0 {
		t.Errorf("library: a number of the pool is not the library's: %d, %v, %v", h.MaxConns, h.MaxIdleConnDuration, h.ConnPoolStrategy)
	}
}

func TestNoFreeConnectionIsPoolExhausted(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("12345") })
	s.Pool.MaxConns = 1
	c := newClient(t, s)
	held, err := c.Do(context.Background(), get("/"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(context.Background(), get("/"))
	if e, ok := errors.AsType[*clients.Error](err); !ok || e.Kind != clients.PoolExhausted || e.Attempts != 0 {
		t.Errorf("got %#v, want pool_exhausted after no attempt", err)
	}
	held.End(nil)
	whole(t, c, get("/"))
}

// A whole pool of connections may be dead: a request must get through them all.
func TestGetSurvivesManyStaleConnections(t *testing.T) {
	const idle = 20
	s := settings(t, func(r *http.Request, n int) string {
		if r.RequestURI == "/again" && n <= idle {
			return ""
		}
		return ok(r.RequestURI)
	})
	c := newClient(t, s)
	var held []*clients.Response
	for range idle {
		resp, err := c.Do(context.Background(), get("/first"))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, resp)
	}
	for _, resp := range held {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.End(nil)
	}
	if got := whole(t, c, get("/again")); got != "/again" {
		t.Errorf("got %q", got)
	}
	if n := s.Dialer.Opened(); n != idle+1 {
		t.Errorf("%d connections, want %d", n, idle+1)
	}
}

// net/http would send a POST with such a key once more; here the policy decides.
func TestPostOnStaleConnectionIsSentOnceWhateverItsKey(t *testing.T) {
	for _, name := range []string{"X-Other", "Idempotency-Key", "X-Idempotency-Key"} {
		var arrived atomic.Int64
		s := settings(t, func(r *http.Request, n int) string {
			if r.Method == "POST" {
				arrived.Add(1)
				return ""
			}
			return ok(r.RequestURI)
		})
		c := newClient(t, s)
		whole(t, c, get("/"))
		req := get("/")
		req.Method = "POST"
		req.Fields.Add(name, "1")
		if _, err := c.Do(context.Background(), req); clients.KindOf(err) != clients.Reset {
			t.Errorf("with %s: %v, want a reset", name, err)
		}
		if n := arrived.Load(); n != 1 {
			t.Errorf("with %s: sent %d times", name, n)
		}
	}
}

// The raw head shows what http.ReadRequest does not: the case of names.
func TestFieldNamesKeepTheirCase(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	head := make(chan string, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 4<<10)
		n, _ := conn.Read(b)
		head <- string(b[:n])
		_, _ = io.WriteString(conn, ok("-"))
	}()
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: "http", Host: ln.Addr().String()}
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	req := get("/")
	req.Fields = clients.Fields{{Name: "x-LOWER-upper", Value: "1"}, {Name: "x-b", Value: "2"}, {Name: "x-LOWER-upper", Value: "3"}}
	whole(t, newClient(t, s), req)
	want := "GET / HTTP/1.1\r\nHost: shop.example\r\nx-LOWER-upper: 1\r\nx-b: 2\r\nx-LOWER-upper: 3\r\n\r\n"
	if got := <-head; got != want {
		t.Errorf("the head on the wire is\n%q, want\n%q", got, want)
	}
}

func TestUpgradeIsRefusedBeforeItIsSent(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	req := get("/")
	req.Fields = clients.Fields{{Name: "Connection", Value: "Upgrade"}, {Name: "upgrade", Value: "websocket"}}
	_, err := newClient(t, s).Do(context.Background(), req)
	if clients.KindOf(err) != clients.Unsupported || s.Dialer.Opened() != 0 {
		t.Errorf("%v after %d connections, want unsupported after none", err, s.Dialer.Opened())
	}
}

func TestTargetThatIsNoPathIsRefused(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	c := newClient(t, s)
	for _, target := range []string{"", "a", "http://other/", "*x"} {
		if _, err := c.Do(context.Background(), get(target)); clients.KindOf(err) != clients.BadRequest {
			t.Errorf("target %q: %v, want bad_request", target, err)
		}
	}
	if n := s.Dialer.Opened(); n != 0 {
		t.Errorf("%d connections for requests that cannot be sent", n)
	}
}

func TestUnaskedSwitchOfProtocolsIsRefused(t *testing.T) {
	s := settings(t, func(r *http.Request, n int) string {
		if r.RequestURI == "/switch" {
			return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
		}
		return ok(r.RequestURI)
	})
	c := newClient(t, s)
	if _, err := c.Do(context.Background(), get("/switch")); clients.KindOf(err) != clients.Protocol {
		t.Errorf("got %v, want protocol", err)
	}
	whole(t, c, get("/"))
	if n := s.Dialer.Opened(); n != 2 {
		t.Errorf("%d connections, want 2: one was upgraded", n)
	}
}

func TestConnectionInUseAtCloseIsClosedAtEnd(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("12345") })
	c := newClient(t, s)
	resp, err := c.Do(context.Background(), get("/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "12345" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	resp.End(nil)
	if n := s.Dialer.Open(); n != 0 {
		t.Errorf("%d connections open, want none", n)
	}
}

// The stock client cannot be interrupted, but what it says afterwards must not
// count against upstream.
func TestTimeoutAfterCancellationIsCanceled(t *testing.T) {
	asked, ended := make(chan bool, 1), make(chan struct{})
	s := settings(t, func(*http.Request, int) string {
		asked <- true
		<-ended
		return ""
	})
	t.Cleanup(func() { close(ended) })
	s.Timeouts.ResponseHeader = 100 * time.Millisecond
	c := newClient(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.Do(ctx, get("/")); clients.KindOf(err) != clients.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}

// The abort may strike at any time from the cancellation on, so the connection is
// not for the pool although its body was read whole.
func TestConnectionOfCanceledExchangeIsNotPooled(t *testing.T) {
	more := make(chan bool)
	s := settings(t, func(*http.Request, int) string {
		go func() { more <- true }()
		return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"
	})
	c := newClient(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resp, err := c.Do(ctx, get("/"))
	if err != nil {
		t.Fatal(err)
	}
	<-more
	x := resp.Body.(*exchange)
	x.watch(x.conn) // as a read that waits does
	x.conn.Conn = &replay{Conn: x.conn.Conn, left: "345"}
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "12345" {
		t.Fatalf("got %q, %v", b, err)
	}
	cancel()
	resp.End(nil)
	if n := c.host.ConnsCount(); n != 0 {
		t.Errorf("%d connections in the pool", n)
	}
}

// replay gives some bytes of its own.
type replay struct {
	net.Conn
	left string
}

func (r *replay) Read(p []byte) (int, error) {
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func TestTimeUpBeforeTheLibraryBegins(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	s.Retry.PerTryTimeout = 1
	if _, err := newClient(t, s).Do(context.Background(), get("/")); clients.KindOf(err) != clients.TimeoutHeader {
		t.Errorf("got %v, want timeout_header", err)
	}
}

func TestBodyLongerThanItsLengthIsRefused(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	c := newClient(t, s)
	req := get("/")
	req.Method, req.Body, req.ContentLength = "POST", strings.NewReader("1234567890"), 5
	if _, err := c.Do(context.Background(), req); clients.KindOf(err) != clients.BadRequest {
		t.Errorf("got %v, want bad_request", err)
	}
}

// What is sent ahead must stand on the wire once, however head and body lie in the
// library's buffer of 4096 bytes.
func TestUploadStandsOnTheWireOnce(t *testing.T) {
	s := settings(t, func(r *http.Request, _ int) string {
		body, _ := io.ReadAll(r.Body)
		return ok(fmt.Sprint(len(r.Header.Get("X-Pad")), " ", string(body)))
	})
	c := newClient(t, s)
	paddings := []int{0, 3 << 10, 9 << 10}
	for n := 3960; n < 4100; n++ { // a head of 4096 bytes is among them
		paddings = append(paddings, n)
	}
	for _, padding := range paddings {
		for _, size := range []int{1, 2, 100, 20_000} {
			for _, length := range []int64{int64(size), -1} {
				body := strings.Repeat("0123456789", size/10+1)[:size]
				req := get("/")
				req.Method, req.Body, req.ContentLength = "POST", iotest.HalfReader(strings.NewReader(body)), length
				req.Fields.Add("X-Pad", strings.Repeat("p", padding))
				if got, want := whole(t, c, req), fmt.Sprint(padding, " ", body); got != want {
					t.Fatalf("padding %d, body of %d, length %d: arrived %d bytes %.20q, want %d bytes %.20q", padding, size, length, len(got), got, len(want), want)
				}
			}
		}
	}
	if n := s.Dialer.Opened(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A body longer than it said must not look whole to upstream.
func TestBodyLongerThanItsLengthNeverArrives(t *testing.T) {
	var arrived atomic.Int64
	s := settings(t, func(r *http.Request, _ int) string {
		if r.Method == "POST" {
			arrived.Add(1)
		}
		return ok("-")
	})
	c := newClient(t, s)
	req := get("/")
	req.Method, req.Body, req.ContentLength = "POST", iotest.OneByteReader(strings.NewReader("1234567890")), 5
	if _, err := c.Do(context.Background(), req); clients.KindOf(err) != clients.BadRequest {
		t.Errorf("got %v, want bad_request", err)
	}
	whole(t, c, get("/"))
	if n := arrived.Load(); n != 0 {
		t.Error("upstream saw a complete request")
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("broken body") }

func TestPanickingBodyCostsNoPlaceInThePool(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("-") })
	s.Pool.MaxConns = 1
	c := newClient(t, s)
	for range 3 {
		req := get("/")
		req.Method, req.Body, req.ContentLength = "POST", panicking{}, -1
		if _, err := c.Do(context.Background(), req); clients.KindOf(err) != clients.BadRequest {
			t.Fatalf("got %v, want bad_request", err)
		}
	}
	whole(t, c, get("/"))
}

func TestOwnedFieldsOutliveTheExchange(t *testing.T) {
	s := settings(t, func(r *http.Request, _ int) string { return ok(r.RequestURI) })
	c := newClient(t, s)
	resp, err := c.Do(context.Background(), get("/"))
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Borrowed {
		t.Error("the fields are views of the library's buffer, but not said to be")
	}
	resp.Own()
	kept := resp.Fields
	resp.End(nil)
	for range 10 {
		whole(t, c, get("/"+strings.Repeat("x", 100)))
	}
	if len(kept) != 1 || kept[0] != (clients.Field{Name: "x-Odd-CASE", Value: "1"}) {
		t.Errorf("after End the owned fields are %q", kept)
	}
}

func TestBodyErrorStays(t *testing.T) {
	s := settings(t, func(*http.Request, int) string {
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n"
	})
	s.Limits.ResponseBody = 5
	resp, err := newClient(t, s).Do(context.Background(), get("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.End(nil)
	_, _ = io.ReadAll(resp.Body)
	if _, err := resp.Body.Read(make([]byte, 5)); clients.KindOf(err) != clients.ResponseTooLarge {
		t.Errorf("a read after the error gave %v", err)
	}
}

func TestReadAfterEnd(t *testing.T) {
	s := settings(t, func(*http.Request, int) string { return ok("12345") })
	c := newClient(t, s)
	resp, err := c.Do(context.Background(), get("/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.End(nil)
	if n, err := resp.Body.Read(make([]byte, 5)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read after End gave %d, %v; want an error that is not the end of the body", n, err)
	}
}

func TestAddress(t *testing.T) {
	for upstream, want := range map[string]string{
		"http://h": "h:80", "https://h": "h:443", "http://h:8080": "h:8080", "http://[::1]": "[::1]:80", "http://[::1]:81/base": "[::1]:81",
	} {
		u, err := url.Parse(upstream)
		if err != nil {
			t.Fatal(err)
		}
		if got := address(clients.Settings{Upstream: u}); got != want {
			t.Errorf("address of %s is %s, want %s", upstream, got, want)
		}
	}
}
