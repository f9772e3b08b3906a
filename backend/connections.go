package backend

import (
	"net"
	"sync"
)

// turnstile accepts no more connections than its bound; the next ones wait in the
// kernel's queue until one closes, as they do before a servlet container that has
// reached its maxConnections.
type turnstile struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

// bound returns ln itself where there is no bound.
func bound(ln net.Listener, most int) net.Listener {
	if most == 0 {
		return ln
	}
	return &turnstile{Listener: ln, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a place, and then for a connection.
func (b *turnstile) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return placed(c, sync.OnceFunc(func() { <-b.places })), nil
}

// Close ends an Accept that waits for a place, too.
func (b *turnstile) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// placed gives a connection's place back when it closes. A TCP connection stays
// one, so that whoever needs its descriptor still gets at it.
func placed(c net.Conn, leave func()) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		return tcpPlace{tcp, leave}
	}
	return place{c, leave}
}

type tcpPlace struct {
	*net.TCPConn
	leave func()
}

func (p tcpPlace) Close() error {
	defer p.leave()
	return p.TCPConn.Close()
}

type place struct {
	net.Conn
	leave func()
}

func (p place) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
