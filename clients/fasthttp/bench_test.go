package fasthttp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatebench/clients"
)

// BenchmarkDo is one GET of a product over loopback, fields as a gateway sends
// them. The upstream allocates nothing of note, so allocs/op are the client's.
func BenchmarkDo(b *testing.B) {
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: "http", Host: productUpstream(b)}
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	c, err := New(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	req := &clients.Request{
		Method: http.MethodGet, Target: "/product?type=T", Host: "shop.example",
		Fields: clients.Fields{
			{Name: "User-Agent", Value: "bench/1"}, {Name: "Accept", Value: "*/*"}, {Name: "X-Forwarded-For", Value: "127.0.0.1"},
			{Name: "X-Forwarded-Host", Value: "shop.example"}, {Name: "X-Forwarded-Proto", Value: "http"}, {Name: "Via", Value: "1.1 gatebench"},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Do(context.Background(), req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.End(nil)
	}
}

// productUpstream answers every request head with the product.
func productUpstream(b *testing.B) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ln.Close() })
	const product = `{"name":"TA","id":"1","price":56.67}`
	answer := []byte(strings.Join([]string{
		"HTTP/1.1 200 OK", "Content-Type: application/json", "X-appId: android01",
		"Set-Cookie: sid=1000101111", "Date: Mon, 02 Jan 2006 15:04:05 GMT", "Content-Length: 36", "", product,
	}, "\r\n"))
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for br := bufio.NewReader(conn); ; {
					line, err := br.ReadSlice('\n')
					if err != nil {
						return
					}
					if len(line) == 2 {
						_, _ = conn.Write(answer)
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}
