package clients

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A Dialer opens the connections of one client and counts them. Counting here,
// and not in each library, gives "connections opened" one meaning for all; it is
// checked against what the backend accepted.
type Dialer struct {
	// Timeout bounds one connection attempt. It is timeouts.connect.
	Timeout time.Duration

	opened atomic.Int64
	closed atomic.Int64
	failed atomic.Int64
}

// Opened is how many connections came about so far.
func (d *Dialer) Opened() int64 { return d.opened.Load() }

// Open is how many of them are open now.
func (d *Dialer) Open() int64 { return d.opened.Load() - d.closed.Load() }

// Failed is how many attempts to connect came to nothing.
func (d *Dialer) Failed() int64 { return d.failed.Load() }

// DialContext connects over TCP, v4 or v6. Its error is an [*Error] of kind
// [Dial], [TimeoutConnect] or [Canceled].
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	nd := net.Dialer{Timeout: d.Timeout}
	c, err := nd.DialContext(ctx, network, addr)
	if err != nil {
		d.failed.Add(1)
		return nil, &Error{Kind: dialKind(err), Err: err}
	}
	d.opened.Add(1)
	return &countedConn{Conn: c, closed: &d.closed}, nil
}

func dialKind(err error) Kind {
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return TimeoutConnect
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return TimeoutConnect
	}
	return Dial
}

// countedConn counts its own first Close.
type countedConn struct {
	net.Conn
	done   atomic.Bool
	closed *atomic.Int64
}

func (c *countedConn) Close() error {
	if c.done.CompareAndSwap(false, true) {
		c.closed.Add(1)
	}
	return c.Conn.Close()
}

// CloseWrite half-closes, for upgraded connections.
func (c *countedConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errors.ErrUnsupported
}
