package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
)

// dialFunc opens a connection that is ready for a request. The context carries
// the request's deadline.
type dialFunc func(context.Context) (net.Conn, error)

// newDialer resolves the host once, so that no request pays for a name server and
// all go to the same machine.
func newDialer(ctx context.Context, m endpoint) (dialFunc, error) {
	d, err := findTarget(ctx, m)
	if err != nil {
		return nil, err
	}
	return d.dial, nil
}

func findTarget(ctx context.Context, m endpoint) (*dialer, error) {
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, m.host)
	if err != nil {
		return nil, fmt.Errorf("find the target: %w", err)
	}
	d := &dialer{}
	for _, ip := range ips {
		d.targets = append(d.targets, destination{net.JoinHostPort(ip.String(), m.port), canSpread && ip.IP.IsLoopback() && ip.IP.To4() != nil})
	}
	if m.tls {
		d.tls = &tls.Config{ServerName: m.host, NextProtos: []string{"http/1.1"}}
	}
	return d, nil
}

type dialer struct {
	targets []destination
	tls     *tls.Config  // nil in the clear
	first   atomic.Int64 // the target that answered last: tried first

	// source is the source address in use: 0 leaves it to the system, which is
	// 127.0.0.1, and k is 127.0.0.(1+k). To one target an address has as many
	// connections as there are local ports, some 28,000, and one that was
	// closed holds its port for a minute. So when they run out the next
	// address takes over.
	source atomic.Int64

	// portsPerSource bounds the local ports of one source address, 0 leaves
	// that to the system. For tests.
	portsPerSource int
}

// destination is an address of the target. A local one can be reached from any address of
// 127.0.0.0/8.
type destination struct {
	addr  string
	local bool
}

// lastSource ends the search for an address with a free port: seven million ports
// are more than descriptors allow.
const lastSource = 253

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
	for i := range int64(len(d.targets)) {
		k := (first + i) % int64(len(d.targets))
		if c, err = d.reach(ctx, d.targets[k]); err == nil {
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

// reach connects to one address, from the next source address if the ports of the
// present one have run out.
func (d *dialer) reach(ctx context.Context, to destination) (net.Conn, error) {
	for {
		source := d.source.Load()
		from := net.Dialer{Control: d.control(to, source)}
		if to.local && source > 0 {
			from.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+source))}
		}
		c, err := from.DialContext(ctx, "tcp", to.addr)
		if err == nil || !to.local || source == lastSource || !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return c, err
		}
		d.source.CompareAndSwap(source, source+1)
	}
}

// control prepares a socket, where there is anything to prepare.
func (d *dialer) control(to destination, source int64) func(string, string, syscall.RawConn) error {
	if !to.local || source == 0 && d.portsPerSource == 0 {
		return nil
	}
	return func(_, _ string, raw syscall.RawConn) error {
		var set error
		if err := raw.Control(func(fd uintptr) { set = preparePorts(int(fd), d.portsPerSource) }); err != nil {
			return err
		}
		return set
	}
}
