// Package registry is the one list of clients: a name as it stands in the
// configuration, and what makes it. A client of your own is one more line here.
//
// The floor stands apart: it is no client under test, and takes part where an arm asks
// for it by name.
//
// Only the command line and tests import it; the gateway is given a client.
package registry

import (
	"gatebench/clients"
	"gatebench/clients/fasthttp"
	"gatebench/clients/floor"
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

// All lists every client under test, net/http first: the others are compared with it.
func All() []Entry {
	return []Entry{
		{"net/http", "", nethttp.New, nethttp.Deviations},
		{"resty", "github.com/go-resty/resty/v2", resty.New, resty.Deviations},
		{"retryablehttp", "github.com/hashicorp/go-retryablehttp", retryablehttp.New, retryablehttp.Deviations},
		{"fasthttp", "github.com/valyala/fasthttp", fasthttp.New, fasthttp.Deviations},
	}
}

// Floor is the client that answers from memory. It has no deviations to declare: the
// contract speaks of an upstream, and it has none.
func Floor() Entry {
	return Entry{"floor", "gatebench/clients/floor", floor.New, func() []clients.Deviation { return nil }}
}

// Lookup returns the client of that name, the floor too.
func Lookup(name string) (Entry, bool) {
	for _, e := range append(All(), Floor()) {
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
