package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	spent  atomic.Int64 // ns
}

// Opened is how many connections came about so far.
func (d *Dialer) Opened() int64 { return d.opened.Load() }

// Open is how many of them are open now.
func (d *Dialer) Open() int64 { return d.opened.Load() - d.closed.Load() }

// Failed is how many attempts to connect came to nothing.
func (d *Dialer) Failed() int64 { return d.failed.Load() }

// Spent is how long connecting took, all attempts together, handshakes included.
// Libraries connect aside while a request waits, or instead for another one, so it is
// not the time that requests waited for it.
func (d *Dialer) Spent() time.Duration { return time.Duration(d.spent.Load()) }

// DialContext connects over TCP, v4 or v6. Its error is an [*Error] of kind
// [Dial], [TimeoutConnect] or [Canceled].
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	began := time.Now()
	defer func() { d.spent.Add(int64(time.Since(began))) }()
	nd := net.Dialer{Timeout: d.Timeout}
	c, err := nd.DialContext(ctx, network, addr)
	if err != nil {
		d.failed.Add(1)
		return nil, &Error{Kind: dialKind(err), Err: err}
	}
	d.opened.Add(1)
	return &countedConn{Conn: c, closed: &d.closed}, nil
}

// DialTLS connects over TCP and does the TLS handshake, both within Timeout. Its
// error is an [*Error] of one of DialContext's kinds or [TLS]. A connection whose
// handshake failed counts as opened: the backend accepted it.
func (d *Dialer) DialTLS(ctx context.Context, network, addr string, config *tls.Config) (*tls.Conn, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, config)
	began := time.Now()
	defer func() { d.spent.Add(int64(time.Since(began))) }()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		kind := dialKind(err)
		if kind == Dial {
			kind = TLS
		}
		return nil, &Error{Kind: kind, Err: err}
	}
	return c, nil
}

// TLSConfig is what every client trusts and asks for in a handshake with an https
// upstream, nil for a clear one. It offers HTTP/1.1 only, and resumes sessions,
// for all clients alike.
func (s Settings) TLSConfig() (*tls.Config, error) {
	if s.Upstream.Scheme != "https" {
		return nil, nil
	}
	c := &tls.Config{
		ServerName:         s.TLS.ServerName,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if c.ServerName == "" {
		c.ServerName = s.Upstream.Hostname()
	}
	if s.TLS.CA != "" {
		pem, err := os.ReadFile(s.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls.ca: no certificate in PEM form in %s", s.TLS.CA)
		}
	}
	return c, nil
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
