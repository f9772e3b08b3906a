// Package backend is the product service behind the gateway: the endpoints of the
// published experiments, on either inbound server, with as many workers and as
// slow as its configuration says.
//
// It leaves HTTP itself to package server. What a request means is written once,
// as a function from a request to a response.
//
// The trap: the metrics of connections include the connection that reads them.
// Whoever counts connections keeps one open for that and takes it off.
package backend
