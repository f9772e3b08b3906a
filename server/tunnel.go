package server

import (
	"io"
	"sync"

	"gatebench/clients"
)

// join carries bytes both ways between a connection that left HTTP and its
// counterpart upstream, until both ways have ended. The end of one way is passed
// on as a half-close where that can be; where it cannot, and on any error, both
// ways end. fromDown is what to read downstream's bytes from: the library may
// have read ahead.
func (s *Server) join(down *conn, fromDown io.Reader, up io.ReadWriteCloser) {
	shut := func() {
		down.cut()
		_ = up.Close()
	}
	var both sync.WaitGroup
	both.Go(func() { s.carry(up, fromDown, shut) })
	both.Go(func() { s.carry(down, up, shut) })
	both.Wait()
	shut()
}

func (s *Server) carry(dst io.Writer, src io.Reader, shut func()) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("tunnel", v)
			shut()
		}
	}()
	if _, err := io.Copy(onlyWriter{dst}, onlyReader{src}); err != nil {
		shut()
		return
	}
	if cw, ok := dst.(interface{ CloseWrite() error }); !ok || cw.CloseWrite() != nil {
		shut()
	}
}

// These hide ReadFrom and WriteTo, by which a copy would go round conn's bounds.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// tunnel answers 101 on a connection taken over from the library and lets the
// bytes flow. The exchange counts as over: Shutdown does not wait for tunnels, it
// closes them.
func (s *Server) tunnel(down *conn, fromDown io.Reader, resp *clients.Response) {
	s.tunnels.Add(1)
	defer s.tunnels.Add(-1)
	s.exchanges.Add(-1)
	defer s.exchanges.Add(1)
	if _, err := down.Write(appendHead(nil, resp.Status, resp.Fields)); err != nil {
		down.cut()
		s.end(resp, &clients.Error{Kind: clients.Canceled, Err: err})
		return
	}
	s.join(down, fromDown, resp.Upgraded)
	s.end(resp, nil)
}
