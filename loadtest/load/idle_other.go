//go:build !unix

package load

import (
	"net"
	"time"
)

const idleCheckAfter = 10 * time.Millisecond

// idleProbe cannot look into a connection here: one that the server closed while
// it was idle counts as reset.
type idleProbe struct{}

func probe(net.Conn) idleProbe { return idleProbe{} }

func (idleProbe) stale() bool { return false }
