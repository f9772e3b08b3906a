//go:build !linux

package server

import "net"

// hangUpsAreSeen says whether peerGone can tell.
const hangUpsAreSeen = false

func (c *conn) peerGone() bool { return false }

// unacknowledged is how many written bytes the peer's system has not taken yet,
// 0 if unknown.
func (c *conn) unacknowledged() int64 { return 0 }

// queued reports whether a connection waits in ln's queue: unknown here.
func queued(net.Listener) bool { return false }
