package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"gatebench/clients"
	"gatebench/gateway"
	"gatebench/server"
)

// onTheWire runs f against a gateway behind each of the two servers. f gets a
// function that sends bytes on a connection of their own and gives the response,
// nil if the connection closes without one, and its body.
func onTheWire(t *testing.T, set func(*gateway.Config), f func(t *testing.T, h *house, send func(string) (*http.Response, string))) {
	for _, kind := range server.Kinds() {
		t.Run(kind, func(t *testing.T) {
			h := open(t, func(c *gateway.Config) {
				c.Server = kind
				if set != nil {
					set(c)
				}
			})
			s, err := server.New(h.ServerConfig(), h)
			if err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- s.Serve(ln) }()
			defer func() {
				_ = s.Close()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			h.addr = ln.Addr().String()
			f(t, h, func(bytes string) (*http.Response, string) {
				t.Helper()
				return exchange(t, h.addr, bytes)
			})
		})
	}
}

func exchange(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("body: %v", err)
	}
	return resp, string(body)
}

// answersWhole reports whether the answer to a request comes to its proper end.
func (h *house) answersWhole(request string) bool {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, request)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil
}

// explosive is a body that panics.
type explosive struct{}

func (explosive) Read([]byte) (int, error) { panic("made for the test") }
func (explosive) Close() error             { return nil }

// wantWire checks an answer of the gateway's own as it arrives.
func wantWire(t *testing.T, resp *http.Response, body string, status int, reason string) {
	t.Helper()
	if resp == nil {
		t.Fatalf("no answer, want %d %s", status, reason)
	}
	wantProblem(t, &clients.Response{
		Status: resp.StatusCode, ContentLength: resp.ContentLength,
		Fields: clients.Fields{{Name: "Content-Type", Value: resp.Header.Get("Content-Type")}},
	}, body, status, reason)
}

// eventually waits for the count that a server makes after its answer.
func eventually(t *testing.T, h *house, sample string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(h.metrics(sample)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came; there is %q", sample, h.metrics("gatebench_gateway_requests_total"))
		}
	}
}

func TestThroughBothServers(t *testing.T) {
	onTheWire(t, nil, func(t *testing.T, h *house, send func(string) (*http.Response, string)) {
		h.upstream.answer = responds(200, fields("X-appId: android01", "Set-Cookie: a=1", "Set-Cookie: b=2", "Connection: x-n", "X-N: 1")...)
		resp, body := send("GET /a%2Fb//c?x=1;y HTTP/1.1\r\nHost: front.example\r\nConnection: X-Secret\r\nX-Secret: 1\r\n\r\n")
		if resp == nil || resp.StatusCode != 200 || body != "hello" {
			t.Fatalf("got %v %q", resp, body)
		}
		if h.upstream.last.Target != "/a%2Fb//c?x=1;y" || h.upstream.last.Fields.Has("X-Secret") ||
			h.upstream.last.Fields.Get("X-Forwarded-For") != "127.0.0.1" {
			t.Errorf("upstream got %q %v", h.upstream.last.Target, h.upstream.last.Fields)
		}
		if len(resp.Header["Set-Cookie"]) != 2 || resp.Header.Get("X-N") != "" || resp.Header.Get("Via") == "" {
			t.Errorf("downstream got %v", resp.Header)
		}
		eventually(t, h, `gatebench_gateway_requests_total{code="200",reason=""} 1`)
	})
}

// A caller who stalls in an upload is told so, although the client has seen no
// more than a cancellation.
func TestTheReasonOfAFailedUploadIsTheUploads(t *testing.T) {
	onTheWire(t, func(c *gateway.Config) { c.Timeouts.BodyIdle = 50 * time.Millisecond },
		func(t *testing.T, h *house, send func(string) (*http.Response, string)) {
			h.upstream.answer = func(_ context.Context, r *clients.Request) (*clients.Response, error) {
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					t.Error("a stalled upload looks complete")
				}
				return nil, &clients.Error{Kind: clients.Canceled, Attempts: 1}
			}
			resp, body := send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
			wantWire(t, resp, body, 504, "timeout_body")
			eventually(t, h, `gatebench_gateway_requests_total{code="504",reason="timeout_body"} 1`)
		})
}

func TestWhatTheServerRefusesIsWordedAndCounted(t *testing.T) {
	onTheWire(t, func(c *gateway.Config) { c.Limits.RequestBody = 4 },
		func(t *testing.T, h *house, send func(string) (*http.Response, string)) {
			resp, body := send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde")
			wantWire(t, resp, body, 413, "request_too_large")
			eventually(t, h, `gatebench_gateway_requests_total{code="413",reason="request_too_large"} 1`)
			if h.upstream.sent != 0 {
				t.Error("upstream was called")
			}
		})
}

func TestAPanicOnTheWire(t *testing.T) {
	onTheWire(t, tight, func(t *testing.T, h *house, send func(string) (*http.Response, string)) {
		const request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) { panic("made for the test") }
		resp, body := send(request)
		wantWire(t, resp, body, 500, "fault")
		h.upstream.answer = func(ctx context.Context, r *clients.Request) (*clients.Response, error) {
			resp, err := responds(200)(ctx, r)
			resp.OnEnd(func(error) { panic("made for the test") })
			return resp, err
		}
		send(request) // the answer is whole; its end is not
		for _, broken := range []*clients.Response{
			{Status: 201, ContentLength: 9, Body: explosive{}},
			{Status: 202, ContentLength: -1, Body: explosive{}},
			{Status: 203, ContentLength: -1, Body: clients.NoBody, Trailers: func() clients.Fields { panic("made for the test") }},
		} {
			h.upstream.answer = func(context.Context, *clients.Request) (*clients.Response, error) { return broken, nil }
			if h.answersWhole(request) {
				t.Errorf("an answer whose body panicked looks whole: %d", broken.Status)
			}
			eventually(t, h, fmt.Sprintf(`gatebench_gateway_requests_total{code="%d",reason="fault"} 1`, broken.Status))
		}
		h.upstream.answer = responds(200)
		if resp, _ := send(request); resp == nil || resp.StatusCode != 200 {
			t.Errorf("afterwards: %v: a place in the pool is lost", resp)
		}
		eventually(t, h, `gatebench_gateway_requests_total{code="500",reason="fault"} 1`)
		eventually(t, h, `gatebench_gateway_in_flight 0`)
	})
}

func TestNobodyIsAnsweredWhoWentAway(t *testing.T) {
	onTheWire(t, nil, func(t *testing.T, h *house, send func(string) (*http.Response, string)) {
		h.upstream.answer = fails(clients.Canceled, 1)
		if resp, _ := send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"); resp != nil {
			t.Errorf("answered %d", resp.StatusCode)
		}
		eventually(t, h, `gatebench_gateway_requests_total{code="0",reason="canceled"} 1`)
	})
}
