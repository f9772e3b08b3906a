package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// queuedTime bounds an Accept of what was seen in the queue. It is there at once,
// unless its peer broke it off in between and nobody is behind it.
const queuedTime = 100 * time.Millisecond

// A deadliner's Accept can be interrupted.
type deadliner interface{ SetDeadline(time.Time) error }

// A listener hands out counted connections and outlives what ends a server: a
// process without free descriptors must not stop serving (fasthttp's Serve
// returns on the first error).
type listener struct {
	net.Listener
	conns   *connSet
	silence time.Duration
	log     *slog.Logger

	ending atomic.Bool // what has come is still accepted, then it closes

	once sync.Once
	stop chan struct{}
}

func newListener(ln net.Listener, conns *connSet, silence time.Duration, log *slog.Logger) *listener {
	return &listener{Listener: ln, conns: conns, silence: silence, log: log, stop: make(chan struct{})}
}

// Accept tries again, after a wait that doubles up to a second, as long as the
// error is one that passes. It says so once per spell.
func (l *listener) Accept() (net.Conn, error) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		nc, err := l.next()
		if err == nil {
			return l.conns.add(nc, l.silence), nil
		}
		if !passes(err) {
			return nil, err
		}
		if wait == 5*time.Millisecond {
			l.log.Warn("cannot accept connections, trying again", "err", err)
		}
		select {
		case <-l.stop:
			return nil, net.ErrClosed
		case <-time.After(wait):
		}
	}
}

// end lets Accept take what the system has accepted already, and close l then:
// whoever is in that queue thinks himself connected, may have sent his request, and
// would get a reset.
func (l *listener) end() {
	l.ending.Store(true)
	d, ok := l.Listener.(deadliner)
	if !ok || d.SetDeadline(past) != nil {
		_ = l.Close()
	}
}

// next waits for a connection, under an end for what is queued only. Then it looks
// first and accepts after that, because past its deadline Accept does not look and
// before it it waits.
func (l *listener) next() (net.Conn, error) {
	for {
		ending := l.ending.Load()
		if ending && !queued(l.Listener) {
			_ = l.Close()
			return nil, net.ErrClosed
		}
		if d, ok := l.Listener.(deadliner); ok && ending {
			_ = d.SetDeadline(time.Now().Add(queuedTime))
		}
		nc, err := l.Listener.Accept()
		// The deadline is that of end, or who was queued has been dropped.
		if !l.ending.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return nc, err
		}
	}
}

// Close is idempotent: the server closes it and so does the library, and which
// comes second has nothing to report.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.stop)
		err = l.Listener.Close()
	})
	return err
}

// passes reports whether an accept error is about the moment and not about the
// listener.
func passes(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR, syscall.EAGAIN,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}
