package server

import (
	"fmt"
	"time"

	"gatebench/clients"
)

// Wire is a connection below HTTP, for answers that no HTTP server gives: faults on
// purpose.
type Wire struct{ c *conn }

// TakeOver leaves the connection to f instead of answering. The handler returns nil;
// f runs after it, and the connection closes after f. What the peer has sent beyond
// this request is lost.
func (in *Inbound) TakeOver(f func(Wire)) { in.taken = f }

// WriteHead writes a response head that announces a body of that length, whatever
// will come.
func (w Wire) WriteHead(status int, fields clients.Fields, length int) error {
	head := appendHead(make([]byte, 0, 256), status, fields)
	head = head[:len(head)-len("\r\n")]
	return w.Write(fmt.Appendf(head, "Content-Length: %d\r\n\r\n", length))
}

// Write writes bytes as they are.
func (w Wire) Write(p []byte) error {
	_, err := w.c.Write(p)
	return err
}

// Reset breaks the connection by a TCP reset. What was written before it arrives.
func (w Wire) Reset() { w.c.reset() }

// Await waits until the peer closes or sends something more, a minute at most.
func (w Wire) Await() {
	if w.c.SetReadDeadline(time.Now().Add(time.Minute)) == nil {
		_, _ = w.c.Read(make([]byte, 1))
	}
}

// giveWire runs f, and closes the connection whatever f does.
func (s *Server) giveWire(c *conn, f func(Wire)) {
	defer s.rescue("taken connection")
	defer c.cut()
	f(Wire{c})
}
