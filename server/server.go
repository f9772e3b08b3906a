// Package server is the inbound side of the gateway and of the backend: net/http
// or fasthttp, one word of configuration. Both only fill an [Inbound] and write
// the [clients.Response] that the handler returns, so that what a request means
// is written once.
//
// Why the handler returns a value instead of writing: fasthttp pulls a streamed
// body after its handler has returned, so a push view cannot serve both.
//
// The package leaves to others: what hop-by-hop means, statuses, metrics.
package server

import (
	"context"

	"gatebench/clients"
)

// Handler answers one request. A nil response means that nobody is there to read
// one: the connection is closed with nothing written. The server calls End on
// the response.
//
// ctx ends when downstream goes away (as far as the server can see it) or when
// the response has been written. in and all it holds are reused afterwards.
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
