package gateway

import (
	"errors"
	"fmt"
	"strings"

	"gatebench/clients"
	"gatebench/server"
)

// A change of protocol (RFC 9110, section 7.8) is agreed hop by hop, so this hop
// asks upstream for what it was asked for itself, and passes bytes once both sides
// have agreed. What it means for the layers:
//
//   - A tunnel holds its place in the pool until it ends: it has a connection.
//   - The breaker has its answer with the 101. What the tunnel carries says nothing
//     about upstream's HTTP.
//   - No timeout of a request applies to it, and silence does not end it: only
//     whoever speaks the protocol knows what silence means. That a side takes
//     nothing of what it is sent does (timeouts.body_idle).
//   - It does not keep a stopping gateway from stopping.
//
// Where the client cannot hand a connection over, the answer is 501 and nothing
// goes upstream: a WebSocket's caller could make nothing of an ordinary answer.

// upgradeRequest is what a request says about another protocol, as far as it has
// been read.
type upgradeRequest struct {
	protocols  string // of all Upgrade lines
	nominated  bool   // by Connection, without which Upgrade means nothing
	impossible bool   // whatever it asks for
}

// offer is what is asked of upstream: "" for nothing. A protocol that carries HTTP
// past the rules of this hop is left out, and so is a change in HTTP/1.0 or with a
// body, whose end upstream and this hop might see in different places. An offer may
// be ignored, so whoever made it goes on in HTTP/1.1.
func (u upgradeRequest) offer() string {
	if !u.nominated || u.impossible || u.protocols == "" {
		return ""
	}
	offer := ""
	for protocol := range strings.SplitSeq(u.protocols, ",") {
		if protocol = trim(protocol); isProtocol(protocol) && !carriesHTTP(protocol) {
			offer = join(offer, protocol)
		}
	}
	return offer
}

// carriesHTTP reports whether what is spoken after the change is HTTP again.
func carriesHTTP(protocol string) bool {
	name, _, _ := strings.Cut(protocol, "/")
	for _, n := range [...]string{"h2c", "h2", "HTTP", "TLS"} {
		if strings.EqualFold(name, n) {
			return true
		}
	}
	return false
}

// isProtocol is the grammar of a member of Upgrade: name [ "/" version ].
func isProtocol(s string) bool {
	name, version, versioned := strings.Cut(s, "/")
	return isToken(name) && (!versioned || isToken(version))
}

// addUpgrade asks for another protocol, after all that came in has been stripped.
func addUpgrade(in *server.Inbound, offer string) {
	if offer != "" {
		in.Fields.Add("Connection", "Upgrade")
		in.Fields.Add("Upgrade", offer)
	}
}

var errNotOffered = errors.New("101 for a protocol that was not asked for")

// agreed returns the one protocol that upstream has changed to.
func agreed(resp *clients.Response, offer string) (protocol string, _ error) {
	protocol = trim(resp.Fields.Get("Upgrade"))
	switch {
	case resp.Upgraded == nil:
		return "", &clients.Error{Kind: clients.Protocol, Err: errors.New("101 without a connection")}
	case protocol == "" || !lists(offer, protocol):
		return "", &clients.Error{Kind: clients.Protocol, Err: fmt.Errorf("%w: %q", errNotOffered, protocol)}
	}
	return protocol, nil
}
