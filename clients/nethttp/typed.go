package nethttp

import (
	"io"

	"gatebench/clients"
)

var _ clients.Decoder = (*client)(nil)

// Decode implements [clients.Decoder] with a decoder on the body, the way of the
// standard library.
func (c *client) Decode(body io.Reader, v any) error { return clients.DecodeJSON(body, v) }
