package fasthttp

import (
	"encoding/json"
	"io"

	"github.com/valyala/fasthttp"

	"gatebench/clients"
)

var _ clients.Decoder = (*client)(nil)

// Decode implements [clients.Decoder] as one does with the library: the body lies
// whole in a response's pooled buffer, and what Body gives is unmarshalled.
//
// How it differs from plain use: the buffer is filled from the exchange's stream, so
// that the limits on silence in bodies and on their size hold.
func (c *client) Decode(body io.Reader, v any) error {
	r := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(r)
	if _, err := io.Copy(r.BodyWriter(), body); err != nil {
		return err
	}
	return json.Unmarshal(r.Body(), v) // copies what it keeps
}
