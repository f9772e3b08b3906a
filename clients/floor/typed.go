package floor

import (
	"io"

	"gatebench/clients"
)

var _ clients.Decoder = (*client)(nil)

// Decode implements [clients.Decoder], so that a typed arm has a floor of its own,
// which decodes and encodes as well.
func (c *client) Decode(body io.Reader, v any) error { return clients.DecodeJSON(body, v) }
