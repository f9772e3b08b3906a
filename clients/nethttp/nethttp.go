// Package nethttp is the client that calls [net/http.Transport] directly, the
// baseline: what the standard library costs without anything on top.
//
// How it differs from http.Client used plainly: no redirect is followed, no cookie
// kept, nothing decoded, no field invented, and neither the environment's proxy
// nor HTTP/2 is used. Package clients does all of that ([clients.NewTransport],
// [clients.RoundTripper]) and also the retries, which net/http does not have.
//
// The trap that stays: on its own, the transport sends a request without a body
// again if its idle connection turns out to be dead, for GET, HEAD, OPTIONS and
// TRACE. That replay is the library's and is not counted as an attempt.
package nethttp

import (
	"net/http"

	"gatebench/clients"
)

// New builds the client.
func New(s clients.Settings) (clients.Client, error) {
	t, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
	if err != nil {
		return nil, err
	}
	return &client{clients.RoundTripper(t, s)}, nil
}

// client adds to the round tripper what it does with an answer's content.
type client struct{ clients.Client }

// Deviations says that there are none.
func Deviations() []clients.Deviation { return nil }
