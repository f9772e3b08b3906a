package clients_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gatebench/clients"
	"gatebench/clients/nethttp"
	"gatebench/clients/resty"
	"gatebench/clients/retryablehttp"
)

// family is what rides on net/http, with how many idle connections each keeps to a
// host as shipped.
var family = []struct {
	name    string
	new     func(clients.Settings) (clients.Client, error)
	shipped int
}{
	{"net/http", nethttp.New, http.DefaultMaxIdleConnsPerHost},
	{"resty", resty.New, runtime.GOMAXPROCS(0) + 1},
	{"retryablehttp", retryablehttp.New, runtime.GOMAXPROCS(0) + 1},
}

// crowd answers when n requests are there at once, so that it takes n connections
// to get any answer. A request for /reset is cut off.
func crowd(t *testing.T, n int) *httptest.Server {
	var mu sync.Mutex
	waiting := make(chan struct{})
	here := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			panic(http.ErrAbortHandler)
		}
		mu.Lock()
		here++
		all := waiting
		if here == n {
			here, waiting = 0, make(chan struct{})
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// burst sends n requests at once.
func burst(t *testing.T, c clients.Client, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			resp, err := c.Do(t.Context(), get())
			if err != nil {
				t.Error(err)
				return
			}
			resp.End(nil)
		})
	}
	wg.Wait()
}

func eachOf(t *testing.T, f func(t *testing.T, build func(clients.Settings) (clients.Client, error), shipped int)) {
	for _, lib := range family {
		t.Run(lib.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the servers' cleanups
			f(t, lib.new, lib.shipped)
		})
	}
}

// The policy "library" is not a label: it leaves each library the idle connections
// that it keeps as shipped, and the rest of a burst is dialed anew.
func TestPoolPolicies(t *testing.T) {
	const n = 8
	eachOf(t, func(t *testing.T, build func(clients.Settings) (clients.Client, error), shipped int) {
		for policy, again := range map[clients.PoolPolicy]int{
			clients.PoolEqual:   0,
			clients.PoolLibrary: max(n-shipped, 0),
		} {
			srv := crowd(t, n)
			s := settings(strings.TrimPrefix(srv.URL, "http://"), func(s *clients.Settings) { s.Pool.Policy = policy })
			c, err := build(s)
			if err != nil {
				t.Fatal(err)
			}
			burst(t, c, n)
			burst(t, c, n)
			if got := s.Dialer.Opened(); got != int64(n+again) {
				t.Errorf("%s: %d connections opened for two bursts of %d, want %d", policy, got, n, n+again)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			srv.Close()
		}
	})
}

// One request that fails must not cut the idle connections of the others
// (go-retryablehttp#237).
func TestFailureLeavesIdleConnections(t *testing.T) {
	const n = 4
	eachOf(t, func(t *testing.T, build func(clients.Settings) (clients.Client, error), _ int) {
		srv := crowd(t, n)
		s := settings(strings.TrimPrefix(srv.URL, "http://"))
		c, err := build(s)
		if err != nil {
			t.Fatal(err)
		}
		burst(t, c, n)
		bad := get()
		bad.Target = "/reset"
		bad.Method = "POST" // a GET would be sent again on a new connection by net/http
		if _, err := c.Do(t.Context(), bad); clients.KindOf(err) != clients.Reset {
			t.Errorf("got %v, want a reset", err)
		}
		burst(t, c, n)
		if got := s.Dialer.Opened(); got != n+1 {
			t.Errorf("%d connections opened, want %d and one for the one that was reset", got, n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
}

// An upstream that answers an upload without reading it, and closes, resets the
// connection behind its answer. Often, since it is a race that is lost now and then.
func TestAnswerBeforeAResetIsRead(t *testing.T) {
	const head = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 40000\r\nConnection: close\r\n\r\n"
	apology := strings.Repeat("a", 40000)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1)) // the upload has begun
			_, _ = io.WriteString(conn, head+apology)
			_ = conn.Close()
		}
	}()
	eachOf(t, func(t *testing.T, build func(clients.Settings) (clients.Client, error), _ int) {
		c, err := build(settings(ln.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			const size = 8 << 20
			req := get()
			req.Method, req.Body, req.ContentLength = "POST", bytes.NewReader(make([]byte, size)), size
			resp, err := c.Do(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if resp.Status != 413 || string(body) != apology || err != nil {
				t.Errorf("got %d with %d bytes, %v", resp.Status, len(body), err)
			}
			resp.End(nil)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A Location that cannot be parsed is no business of the client's.
func TestOddLocationIsRelayed(t *testing.T) {
	const head = "HTTP/1.1 302 Found\r\nLocation: http://[::1/%zz\r\nContent-Length: 0\r\n\r\n"
	eachOf(t, func(t *testing.T, build func(clients.Settings) (clients.Client, error), _ int) {
		c, err := build(settings(canned(t, head)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Fields.Get("location"); resp.Status != 302 || got != "http://[::1/%zz" {
			t.Errorf("got %d, Location %q", resp.Status, got)
		}
		resp.End(nil)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An upstream that answers twice: the surplus is nobody's answer. In parallel, so
// that connections go from hand to hand as fast as they can.
func TestSurplusIsNobodysAnswer(t *testing.T) {
	const twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	log.SetOutput(io.Discard) // net/http writes a line for each
	defer log.SetOutput(os.Stderr)
	eachOf(t, func(t *testing.T, build func(clients.Settings) (clients.Client, error), _ int) {
		c, err := build(settings(canned(t, twice)))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					resp, err := c.Do(t.Context(), get())
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(resp.Body)
					if string(body) != "ok" || err != nil {
						t.Errorf("got %q, %v", body, err)
					}
					resp.End(nil)
				}
			})
		}
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
