package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
)

// dialFunc opens a connection that is ready for a request. The context carries
// the request's deadline.
type dialFunc func(context.Context) (net.Conn, error)

// newDialer resolves the host once, so that no request pays for a name server and
// all go to the same machine.
func newDialer(ctx context.Context, m endpoint) (dialFunc, error) {
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, m.host)
	if err != nil {
		return nil, fmt.Errorf("find the target: %w", err)
	}
	d := &dialer{}
	for _, ip := range ips {
		d.addrs = append(d.addrs, net.JoinHostPort(ip.String(), m.port))
	}
	if m.tls {
		d.tls = &tls.Config{ServerName: m.host, NextProtos: []string{"http/1.1"}}
	}
	return d.dial, nil
}

type dialer struct {
	addrs []string
	tls   *tls.Config  // nil in the clear
	first atomic.Int64 // the address that answered last: tried first
	net   net.Dialer
}

func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	c, err := d.connect(ctx)
	if err != nil || d.tls == nil {
		return c, err
	}
	t := tls.Client(c, d.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, handshakeError{err}
	}
	return t, nil
}

// connect tries the addresses in turn: "localhost" is two of them, and few
// servers listen on both.
func (d *dialer) connect(ctx context.Context) (c net.Conn, err error) {
	first := d.first.Load()
	for i := range int64(len(d.addrs)) {
		k := (first + i) % int64(len(d.addrs))
		if c, err = d.net.DialContext(ctx, "tcp", d.addrs[k]); err == nil {
			if k != first {
				d.first.Store(k)
			}
			return c, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}
