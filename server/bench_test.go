package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/valyala/fasthttp"

	"gatebench/clients"
)

const (
	benchBody    = `{"name":"TA","id":"1","price":56.67}`
	benchRequest = "GET /product?type=T HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Request-Id: 0123456789\r\n\r\n"
)

var benchFields = clients.Fields{
	{Name: "Content-Type", Value: "application/json"},
	{Name: "X-appId", Value: "android01"},
	{Name: "Set-Cookie", Value: "sid=1000101111"},
}

// BenchmarkServe is one exchange over one keep-alive connection, loopback and the
// asking side included. The plain ones are the libraries by themselves, with the
// same answer: what is above them is this package.
func BenchmarkServe(b *testing.B) {
	for _, kind := range Kinds() {
		b.Run(kind, func(b *testing.B) {
			cfg := config(kind)
			s, err := New(cfg, handlerFunc(func(_ context.Context, in *Inbound) *clients.Response {
				return clients.NewResponse(200, benchFields, []byte(benchBody))
			}))
			if err != nil {
				b.Fatal(err)
			}
			ask(b, func(ln net.Listener) { _ = s.Serve(ln) })
			_ = s.Close()
		})
	}
	b.Run("net/http/plain", func(b *testing.B) {
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, f := range benchFields {
				w.Header().Add(f.Name, f.Value)
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(benchBody)))
			_, _ = io.WriteString(w, benchBody)
		})}
		ask(b, func(ln net.Listener) { _ = s.Serve(ln) })
		_ = s.Close()
	})
	b.Run("fasthttp/plain", func(b *testing.B) {
		s := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
			for _, f := range benchFields {
				ctx.Response.Header.Add(f.Name, f.Value)
			}
			ctx.Response.SetBodyString(benchBody)
		}}
		ask(b, func(ln net.Listener) { _ = s.Serve(ln) })
		_ = s.Shutdown()
	})
}

// ask sends b.N requests one after the other and reads the answers whole.
func ask(b *testing.B, serve func(net.Listener)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go serve(ln)
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	r, request := bufio.NewReader(nc), []byte(benchRequest)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(request); err != nil {
			b.Fatal(err)
		}
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := r.Discard(len(benchBody)); err != nil {
			b.Fatal(err)
		}
	}
}
