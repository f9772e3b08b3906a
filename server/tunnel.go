package server

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"gatebench/clients"
)

// A tunnel is what an exchange has become after 101: bytes both ways between a
// connection that left HTTP and its counterpart upstream, until both ways have
// ended. The end of one way is passed on as a half-close where that can be; where
// it cannot, and on any error, both ways end.
//
// Silence does not end a tunnel, since only its ends know what silence means. What
// does, after Config.BodyIdle: an end that takes nothing of what it is sent, and
// one that is silent although the other has said its last.
type tunnel struct {
	s     *Server
	down  *conn
	up    io.ReadWriteCloser
	ended atomic.Bool // one of the ways has
}

// way is one of a tunnel's two directions. Its timer runs while there is something
// that must not take long.
type way struct {
	t     *tunnel
	dst   io.Writer
	src   io.Reader
	timer *time.Timer
}

// tunnel answers 101 on a connection taken over from the library and lets the
// bytes flow. fromDown is what to read downstream's bytes from: the library may
// have read ahead. The exchange counts as over: Shutdown does not wait for
// tunnels, it closes them.
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
	down.lifetime.Store(nil) // a half-close is no hang-up any more
	t := &tunnel{s: s, down: down, up: resp.Upgraded}
	t.join(fromDown)
	s.end(resp, nil)
}

// join runs until both ways have ended.
func (t *tunnel) join(fromDown io.Reader) {
	toUp := &way{t: t, dst: t.up, src: fromDown}
	toDown := &way{t: t, dst: t.down, src: t.up}
	for _, w := range []*way{toUp, toDown} {
		w.timer = time.AfterFunc(time.Hour, t.shut)
		w.timer.Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		toUp.run(toDown)
	}()
	toDown.run(toUp)
	<-done
	toUp.timer.Stop()
	toDown.timer.Stop()
	t.shut()
}

// shut ends both ways, from wherever it is called.
func (t *tunnel) shut() {
	defer t.s.rescue("end of a tunnel")
	t.down.cut()
	_ = t.up.Close()
}

// run carries one way to its end and says so to the other.
func (w *way) run(other *way) {
	t := w.t
	if !w.carry() {
		t.shut()
	}
	w.timer.Stop()
	t.ended.Store(true)
	other.hurry() // it may be reading, and does not look at ended then
}

// hurry starts the time that the next step may take.
func (w *way) hurry() {
	if d := w.t.s.cfg.BodyIdle; d > 0 {
		w.timer.Reset(d)
	}
}

// carry reports whether its way has ended in order, and the other may go on.
func (w *way) carry() (inOrder bool) {
	defer w.t.s.rescue("tunnel")
	buf := w.t.s.buffers.Get().(*[bufferSize]byte)
	defer w.t.s.buffers.Put(buf)
	for {
		if w.t.ended.Load() {
			w.hurry()
		}
		n, err := w.src.Read(buf[:])
		if n > 0 {
			w.hurry()
			_, werr := w.dst.Write(buf[:n])
			w.timer.Stop()
			if werr != nil {
				return false
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			cw, ok := w.dst.(interface{ CloseWrite() error })
			return ok && cw.CloseWrite() == nil
		case err != nil:
			return false
		}
	}
}

// rescue is deferred where foreign code could end the process by a panic.
func (s *Server) rescue(where string) {
	if v := recover(); v != nil {
		s.logPanic(where, v)
	}
}
