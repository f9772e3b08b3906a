package backend

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/server"
)

// One works, two wait, and the others are turned away at once.
func TestAcceptQueueTurnsAwayWhatItHasNoRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.MaxWorkers, c.AcceptQueue, c.Latency = 1, 2, "100ms" })
		var mu sync.Mutex
		took := map[int][]time.Duration{}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				start := time.Now()
				got := ask(t, s, newInbound("GET", "/product", "", ""))
				mu.Lock()
				took[got.Status] = append(took[got.Status], time.Since(start))
				mu.Unlock()
			})
		}
		all.Wait()
		if len(took[200]) != 3 || len(took[503]) != 3 {
			t.Fatalf("%v", took)
		}
		for _, d := range took[503] {
			if d != 0 {
				t.Errorf("it took %v to turn a request away", d)
			}
		}
		// The queue is free again, and nothing is counted twice.
		if got := ask(t, s, newInbound("GET", "/product", "", "")); got.Status != 200 {
			t.Errorf("%d afterwards", got.Status)
		}
		if busy, queued := s.workers.load(); busy != 0 || queued != 0 || s.metrics.inFlight.Load() != 0 {
			t.Errorf("%d busy, %d queued, %d in flight", busy, queued, s.metrics.inFlight.Load())
		}
		scrape := ask(t, s, newInbound("GET", "/metrics", "", "")).Body
		for _, line := range []string{`{code="200",route="/product"} 4`, `{code="503",route="/product"} 3`} {
			if !strings.Contains(scrape, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

func TestBodySizePadsProducts(t *testing.T) {
	for _, size := range []int{1, 60, 70, 1000} {
		s := newTestService(t, func(c *Config) { c.BodySize = 0 })
		s.padding = newPadding(size)
		for _, in := range []*server.Inbound{
			newInbound("GET", "/product", "", ""),
			newInbound("GET", "/product?type=other", "", ""),
			newInbound("GET", "/products", "", ""),
			newInbound("GET", "/products?type=other", "", ""),
			newInbound("GET", "/product/7?name=a&price=1", "", ""),
			newInbound("POST", "/postProduct?id=7&name=a&price=1", "", ""),
			newInbound("POST", "/postProduct2", "application/json", `{"name":"a","id":"7","price":1}`),
		} {
			plain := ask(t, newTestService(t, nil), clone(in)).Body
			got := ask(t, s, in).Body
			// Where the field does not fit in, the body is a few bytes longer.
			if len(got) < size || len(got) > max(size, len(plain)+len(`,"padding":""`)) || len(plain) >= size && got != plain {
				t.Errorf("%s: %d bytes for %d, %d without", in.Target, len(got), size, len(plain))
			}
			var with, without any
			if strings.HasPrefix(plain, "{") {
				with, without = &Product{}, &Product{}
			} else {
				with, without = &[]Product{}, &[]Product{}
			}
			if json.Unmarshal([]byte(got), with) != nil || json.Unmarshal([]byte(plain), without) != nil {
				t.Errorf("%s: %s", in.Target, got)
			}
			a, _ := json.Marshal(with)
			if b, _ := json.Marshal(without); string(a) != string(b) {
				t.Errorf("%s: %s became %s", in.Target, b, a)
			}
		}
	}
}

// clone copies a request whose body has not been read.
func clone(in *server.Inbound) *server.Inbound {
	body := ""
	if in.Body != nil {
		b, _ := io.ReadAll(in.Body)
		body = string(b)
		in.Body = strings.NewReader(body)
	}
	return newInbound(in.Method, in.Target, in.Fields.Get("Content-Type"), body)
}

// Two connections are served, the third when one of them closes.
func TestMaxConnections(t *testing.T) {
	for _, kind := range server.Kinds() {
		t.Run(kind, func(t *testing.T) {
			b, base := newBackend(t, func(c *Config) { c.Server, c.MaxConnections = kind, 2 })
			addr := strings.TrimPrefix(base, "http://")
			dial := func() net.Conn {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if _, err := io.WriteString(c, "GET /product HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				return c
			}
			answered := func(c net.Conn, within time.Duration) bool {
				_ = c.SetReadDeadline(time.Now().Add(within))
				var head [12]byte
				_, err := io.ReadFull(c, head[:])
				return err == nil && string(head[9:]) == "200"
			}
			first, second := dial(), dial()
			if !answered(first, 5*time.Second) || !answered(second, 5*time.Second) {
				t.Fatal("no answer below the bound")
			}
			third := dial()
			if answered(third, 50*time.Millisecond) || b.Conns().Live != 2 {
				t.Errorf("%d connections are served", b.Conns().Live)
			}
			_ = first.Close()
			if !answered(third, 5*time.Second) {
				t.Error("the third is not served when there is room")
			}
		})
	}
}

// A backend that waits for a connection to close can be closed all the same.
func TestFullBackendCloses(t *testing.T) {
	_, base := newBackend(t, func(c *Config) { c.MaxConnections = 1 })
	resp, err := http.Get(base + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	_ = resp.Body.Close()
}
