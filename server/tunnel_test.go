package server

import (
	"io"
	"net"
	"testing"
	"time"

	"gatebench/clients"
)

// pipe is both ends of a TCP connection.
func (c *check) pipe() (ours, theirs *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	c.must(err)
	far, err := ln.Accept()
	c.must(err)
	c.onEnd(func() { _, _ = near.Close(), far.Close() })
	return near.(*net.TCPConn), far.(*net.TCPConn)
}

// tunnel opens one from a peer to up.
func (c *check) tunnel(up io.ReadWriteCloser) (*peer, *ended) {
	e := newEnded()
	p := c.serve(answers(func() *clients.Response {
		return e.watch(&clients.Response{Status: 101, Body: clients.NoBody, Upgraded: up})
	})).dial()
	p.send("GET" + head + "Connection: Upgrade\r\nUpgrade: x\r\n\r\n")
	_ = p.head()
	return p, e
}

const briefly = 60 * time.Millisecond

func TestSilenceEndsNoTunnel(t *testing.T) {
	each(t, func(_ *testing.T, c *check) {
		c.cfg.BodyIdle = briefly
		c.cfg.ReadHeaderTimeout, c.cfg.IdleTimeout = briefly, briefly
		ours, theirs := c.pipe()
		p, e := c.tunnel(ours)
		for range 2 {
			time.Sleep(4 * briefly) // nothing may happen, so there is nothing to wait for
			c.flows(p.TCPConn, []byte("there"), theirs, "there")
			c.flows(theirs, []byte("back"), readWriter{p.r, p}, "back")
		}
		_ = p.Close()
		_ = theirs.Close()
		e.wants(c, 0)
	})
}

// A half-close is a state in which something can still come; but not for ever.
func TestSilenceEndsAHalfClosedTunnel(t *testing.T) {
	each(t, func(_ *testing.T, c *check) {
		c.cfg.BodyIdle = 4 * briefly
		for bytes, downstreamFirst := range []bool{true, false, true, false} {
			ours, theirs := c.pipe()
			p, e := c.tunnel(ours)
			first, second := p.TCPConn, theirs
			if !downstreamFirst {
				first, second = second, first
			}
			c.must(first.CloseWrite())
			for range bytes { // each is worth another wait
				time.Sleep(2 * briefly)
				c.flows(second, []byte("."), first, ".")
			}
			e.wants(c, 0)
			if _, err := io.ReadAll(second); isTimeout(err) {
				c.errorf("the silent end stays connected")
			}
		}
	})
}

func TestATunnelIntoWhichNothingGoesEnds(t *testing.T) {
	each(t, func(_ *testing.T, c *check) {
		c.cfg.BodyIdle = briefly
		ours, theirs := net.Pipe() // takes a byte only when it is read
		c.onEnd(func() { _ = theirs.Close() })
		p, e := c.tunnel(ours)
		p.send("nobody reads this")
		e.wants(c, 0)
		p.closed()
	})
}

func TestAPanicEndsItsTunnelOnly(t *testing.T) {
	each(t, func(_ *testing.T, c *check) {
		for _, panics := range []string{"read", "write", "close"} {
			p, e := c.tunnel(&explosive{panics, make(chan struct{})})
			p.send("x")
			if panics == "close" {
				_ = p.CloseWrite()
			}
			e.wants(c, 0)
			p.closed()
		}
		c.eventually("the panics to be logged", func() bool { return c.logs.count("panic=boom") >= 3 })
	})
}

// explosive is a connection of which one method panics, or two.
type explosive struct {
	panics string
	closed chan struct{}
}

func (x *explosive) Read([]byte) (int, error) {
	if x.panics == "read" {
		panic("boom")
	}
	<-x.closed
	return 0, io.EOF
}

func (x *explosive) Write(p []byte) (int, error) {
	if x.panics == "write" {
		panic("boom")
	}
	return len(p), nil
}

func (x *explosive) Close() error {
	select {
	case <-x.closed:
	default:
		close(x.closed)
	}
	if x.panics == "close" {
		panic("boom")
	}
	return nil
}
