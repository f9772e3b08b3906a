package resty

import (
	"io"

	"github.com/go-resty/resty/v2"

	"gatebench/clients"
)

var _ clients.Decoder = (*client)(nil)

// Decode implements [clients.Decoder] as SetResult does it: the body is read whole,
// then [resty.Unmarshalc] has the client's own unmarshaller fill v.
//
// How it differs from SetResult itself: that reads before Execute returns, where
// neither the limit on silence in bodies nor the one on their size would hold. And
// that goes by Content-Type, leaving v empty without a word where it is not JSON;
// here the type is forced, as with ForceContentType, so that all clients refuse the
// same answers.
func (c *client) Decode(body io.Reader, v any) error {
	whole, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return resty.Unmarshalc(c.resty, "application/json", whole, v)
}
