package retryablehttp

import (
	"io"

	"gatebench/clients"
)

var _ clients.Decoder = (*client)(nil)

// Decode implements [clients.Decoder] with a decoder on the body: the library
// returns net/http's response and has nothing of its own for what is in it.
func (c *client) Decode(body io.Reader, v any) error { return clients.DecodeJSON(body, v) }
