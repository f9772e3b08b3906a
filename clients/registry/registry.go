// Package registry is the one list of clients: a name as it stands in the
// configuration, and what makes it. A client of your own is one more line here.
//
// Only the command line and tests import it; the gateway is given a client.
package registry

import (
	"gatebench/clients"
	"gatebench/clients/fasthttp"
	"gatebench/clients/nethttp"
	"gatebench/clients/resty"
	"gatebench/clients/retryablehttp"
)

// An Entry is one client.
type Entry struct {
	// Name is the value of the configuration's key client.
	Name string
	// Module is the Go module that the library comes in, whose version the
	// build information has; "" for the standard library, whose version is
	// Go's.
	Module string
	// New makes a client of one upstream.
	New func(clients.Settings) (clients.Client, error)
	// Deviations are what the library cannot do.
	Deviations func() []clients.Deviation
}

// All lists every client, net/http first: the others are compared with it.
func All() []Entry {
	return []Entry{
		{"net/http", "", nethttp.New, nethttp.Deviations},
		{"resty", "github.com/go-resty/resty/v2", resty.New, resty.Deviations},
		{"retryablehttp", "github.com/hashicorp/go-retryablehttp", retryablehttp.New, retryablehttp.Deviations},
		{"fasthttp", "github.com/valyala/fasthttp", fasthttp.New, fasthttp.Deviations},
	}
}

// Lookup returns the client of that name.
func Lookup(name string) (Entry, bool) {
	for _, e := range All() {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists the names, in the order of All.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}
