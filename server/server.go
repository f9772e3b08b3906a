// Package server is the inbound side of the gateway and of the backend: net/http
// or fasthttp, one word of configuration. Both only fill an [Inbound] and write
// the [clients.Response] that the handler returns, so that what a request means
// is written once.
//
// Why the handler returns a value instead of writing: fasthttp pulls a streamed
// body after its handler has returned, so a push view cannot serve both.
//
// The package leaves to others: what hop-by-hop means, statuses, metrics. What a
// library cannot do although the contract asks for it is declared in
// [Deviations].
//
// The trap: a client may still be reading the request body when the exchange has
// ended (an early 413), and fasthttp has reused the connection's buffers by then.
// So Body is detached at the end: a late Read gives an error, a Read in progress
// is interrupted and waited for.
package server

import (
	"context"
	"log/slog"
	"time"

	"gatebench/clients"
)

// Handler answers one request. A nil response means that nobody is there to read
// one: the connection is closed with nothing written. The server calls End on
// the response.
//
// ctx ends when downstream goes away (as far as the server can see it) or when
// the response has been written. in and all it holds are reused afterwards,
// except Body, which then only gives errors.
type Handler interface {
	Serve(ctx context.Context, in *Inbound) *clients.Response
}

// Inbound is a request as received: all fields but Host, Content-Length and
// Transfer-Encoding, hop-by-hop ones included, and Target raw.
type Inbound struct {
	clients.Request

	// RemoteIP is the peer's address without port.
	RemoteIP string

	// ProtoMinor is 1 for HTTP/1.1 and 0 for HTTP/1.0.
	ProtoMinor int
}

// Config is what both servers are built from.
type Config struct {
	// Kind is the library, one of [Kinds].
	Kind string

	// MaxHeaderBytes bounds a request head: more is 431. It must be positive.
	MaxHeaderBytes int64

	// MaxBodyBytes bounds a request body, 0 is unbounded. A longer one is
	// 413 before any of it is read if its length is announced; otherwise
	// Body.Read gives an error of kind [clients.RequestTooLarge] in place of
	// the first byte beyond.
	MaxBodyBytes int64

	// ReadHeaderTimeout bounds the time from a request's first byte (or from
	// the start of a connection) to the end of its head; IdleTimeout bounds
	// the silence between two requests. Then the connection is closed without
	// an answer. 0 is unbounded.
	ReadHeaderTimeout, IdleTimeout time.Duration

	// BodyIdle bounds silence while a request body is read, which is then an
	// error of kind [clients.TimeoutBody], and while a response is written to
	// a peer that does not read. 0 is unbounded.
	BodyIdle time.Duration

	// Reject words the answers that the server must give without the handler:
	// 400, 413, 431, 505 and, for a handler that panicked, 500 with reason 0.
	// nil gives answers without a body. What net/http refuses by itself
	// cannot be worded, see [Deviations].
	Reject func(status int, reason clients.Kind, detail string) *clients.Response

	// Log gets panics and trouble in accepting; nil discards them.
	Log *slog.Logger
}

// Conns counts a server's connections.
type Conns struct {
	Opened int64 // accepted so far
	Live   int64 // open now
	Idle   int64 // open now and not serving a request
}

// The kinds of server.
const (
	NetHTTP  = "net/http"
	FastHTTP = "fasthttp"
)

// Kinds lists the servers by name.
func Kinds() []string { return []string{NetHTTP, FastHTTP} }
