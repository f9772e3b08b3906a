package clients_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"gatebench/clients"
)

// settings are the defaults, pointed at addr.
func settings(addr string, change ...func(*clients.Settings)) clients.Settings {
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: "http", Host: addr}
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	for _, f := range change {
		f(&s)
	}
	return s
}

// BenchmarkRoundTrip has an upstream that costs next to nothing: canned bytes on a
// loopback socket. "plain" is the same transport called with a request made anew,
// fields copied both ways, and no timeouts: the least that a hop can do on it.
func BenchmarkRoundTrip(b *testing.B) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n" +
		"Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nX-Appid: android01\r\nSet-Cookie: sid=1000101111\r\n\r\n" +
		`{"name":"TA","id":"1","price":56.67}    `
	fields := clients.Fields{
		{Name: "Accept", Value: "*/*"}, {Name: "Accept-Language", Value: "en"},
		{Name: "User-Agent", Value: "bench"}, {Name: "Cookie", Value: "a=b"},
		{Name: "X-Forwarded-For", Value: "127.0.0.1"}, {Name: "X-Forwarded-Host", Value: "h"},
		{Name: "X-Forwarded-Proto", Value: "http"}, {Name: "Via", Value: "1.1 gatebench"},
	}
	addr := canned(b, answer)
	s := settings(addr)
	transport, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
	if err != nil {
		b.Fatal(err)
	}
	defer transport.CloseIdleConnections()

	b.Run("client", func(b *testing.B) {
		c := clients.RoundTripper(transport, s)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		buf := make([]byte, 1<<10)
		b.ReportAllocs()
		for b.Loop() {
			resp, err := c.Do(ctx, &clients.Request{Method: "GET", Target: "/product?type=T", Host: addr, Fields: fields})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, buf[:40]); err != nil {
				b.Fatal(err)
			}
			resp.End(nil)
		}
	})
	b.Run("plain", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		buf := make([]byte, 1<<10)
		b.ReportAllocs()
		for b.Loop() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/product?type=T", nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, f := range fields {
				r.Header.Add(f.Name, f.Value)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				b.Fatal(err)
			}
			var got clients.Fields
			for name, values := range resp.Header {
				for _, v := range values {
					got.Add(name, v)
				}
			}
			if _, err := io.ReadFull(resp.Body, buf[:40]); err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
}

// canned answers every request head with the same bytes.
func canned(tb testing.TB, answer string) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for br := bufio.NewReader(c); ; {
					for line := []byte(nil); len(line) != len("\r\n"); {
						if line, err = br.ReadSlice('\n'); err != nil {
							return
						}
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
