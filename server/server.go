// Package server is the inbound side of the gateway and of the backend: net/http
// or fasthttp, one word of configuration. Both only fill an [Inbound] and write
// the [clients.Response] that the handler returns, so that what a request means
// is written once.
//
// Why the handler returns a value instead of writing: fasthttp pulls a streamed
// body after its handler has returned, so a push view cannot serve both.
//
// The package leaves to others: what hop-by-hop means, statuses, metrics. What a
// library cannot do although the contract asks for it is declared in
// [Deviations].
//
// The trap: a client may still be reading the request body when the exchange has
// ended (an early 413), and fasthttp has reused the connection's buffers by then.
// So Body is detached at the end: a late Read gives an error, a Read in progress
// is interrupted and waited for.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gatebench/clients"
)

// Handler answers one request. A nil response means that nobody is there to read
// one: the connection is closed with nothing written, or left to whom
// [Inbound.TakeOver] names. The server calls End on
// the response.
//
// ctx ends when downstream goes away (as far as the server can see it) or when
// the response has been written. in and all it holds are reused afterwards,
// except Body, which then only gives errors.
type Handler interface {
	Serve(ctx context.Context, in *Inbound) *clients.Response
}

// Inbound is a request as received: all fields but Host, Content-Length and
// Transfer-Encoding, hop-by-hop ones included, and Target raw.
type Inbound struct {
	clients.Request

	// RemoteIP is the peer's address without port.
	RemoteIP string

	// ProtoMinor is 1 for HTTP/1.1 and 0 for HTTP/1.0.
	ProtoMinor int

	upload *body      // Body, whatever the handler has put in its place
	taken  func(Wire) // see TakeOver
}

// Config is what both servers are built from.
type Config struct {
	// Kind is the library, one of [Kinds].
	Kind string

	// MaxHeaderBytes bounds a request head: more is 431. It must be positive.
	MaxHeaderBytes int64

	// MaxBodyBytes bounds a request body, 0 is unbounded. A longer one is
	// 413 before any of it is read if its length is announced; otherwise
	// Body.Read gives an error of kind [clients.RequestTooLarge] in place of
	// the first byte beyond.
	MaxBodyBytes int64

	// ReadHeaderTimeout bounds the time from a request's first byte (or from
	// the start of a connection) to the end of its head; IdleTimeout bounds
	// the silence between two requests. Then the connection is closed. 0 is
	// unbounded.
	ReadHeaderTimeout, IdleTimeout time.Duration

	// BodyIdle bounds silence while a request body is read, which is then an
	// error of kind [clients.TimeoutBody], and while a response is written to
	// a peer that does not read. 0 is unbounded.
	BodyIdle time.Duration

	// Reject words the answers that the server must give without the handler:
	// 400, 413, 431, 505 and, for a handler that panicked, 500 with reason 0.
	// nil gives answers without a body. What net/http refuses by itself
	// cannot be worded, see [Deviations].
	Reject func(status int, reason clients.Kind, detail string) *clients.Response

	// Log gets panics and trouble in accepting; nil discards them.
	Log *slog.Logger
}

// Conns counts a server's connections.
type Conns struct {
	Opened int64 // accepted so far
	Live   int64 // open now
	Idle   int64 // open now and not serving a request
}

// The kinds of server.
const (
	NetHTTP  = "net/http"
	FastHTTP = "fasthttp"
)

// Kinds lists the servers by name.
func Kinds() []string { return []string{NetHTTP, FastHTTP} }

const (
	// drainTick is how often Shutdown looks.
	drainTick = 10 * time.Millisecond

	// quietGrace is how long Shutdown lets a connection live on which nothing
	// is going on: a request may be on its way. (The libraries close idle
	// connections at once, and those that have not said anything yet after
	// five seconds.)
	quietGrace = 250 * time.Millisecond
)

// A Server is one of the two, serving one handler.
type Server struct {
	cfg     Config
	log     *slog.Logger
	handler Handler
	engine  engine
	conns   *connSet
	buffers sync.Pool // of *[bufferSize]byte

	exchanges atomic.Int64 // running, until their answer is written
	tunnels   atomic.Int64

	stopped atomic.Bool // answers end their connections

	mu        sync.Mutex
	listeners []*listener
}

// An engine is what a library has to offer.
type engine interface {
	serve(net.Listener) error
	shutdown(context.Context) error
	close()
}

// New makes a server. Its error names a Config that cannot be.
func New(cfg Config, h Handler) (*Server, error) {
	if cfg.MaxHeaderBytes <= 0 {
		return nil, errors.New("server: MaxHeaderBytes must be positive")
	}
	s := &Server{cfg: cfg, log: cfg.Log, handler: h, conns: newConnSet()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.buffers.New = func() any { return new([bufferSize]byte) }
	switch cfg.Kind {
	case NetHTTP:
		s.engine = newNetServer(s)
	case FastHTTP:
		s.engine = newFastServer(s)
	default:
		return nil, fmt.Errorf("server: there is no %q, only %q", cfg.Kind, Kinds())
	}
	return s, nil
}

// Serve accepts connections on ln until Shutdown or Close, and then returns nil.
// It outlives errors that pass, like too many open files. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	l := newListener(ln, s.conns, s.cfg.BodyIdle, s.log)
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	stopped := s.stopped.Load()
	s.mu.Unlock()
	if stopped {
		_ = l.Close()
		return nil
	}
	err := s.engine.serve(l)
	_ = l.Close()
	if s.stopped.Load() {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// Shutdown stops accepting, answers what runs and what is on its way, and then
// closes what left HTTP (tunnels). If ctx ends first, its error is returned and
// exchanges run on: Close ends them.
//
// No request is lost on the way: who is in the listener's queue is served, every
// answer from now on says that it is its connection's last, and a connection on
// which nothing is going on is closed only after a while of that.
func (s *Server) Shutdown(ctx context.Context) error {
	s.conns.closing.Store(int64(time.Since(s.conns.born)))
	for _, l := range s.stop() {
		l.end()
		select {
		case <-l.stop:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.poll(ctx, s.quiet); err != nil {
		return err
	}
	if err := s.engine.shutdown(ctx); err != nil {
		return err
	}
	s.conns.cutAll()
	return s.poll(ctx, func() bool { return s.tunnels.Load() == 0 })
}

// quiet closes connections that have been quiet for long enough, and reports
// whether there are but tunnels left.
func (s *Server) quiet() bool {
	s.conns.each((*conn).dismiss)
	return s.exchanges.Load() == 0 && s.conns.live.Load() <= s.tunnels.Load()
}

func (s *Server) poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close closes the listeners and every connection, whatever is running on it.
func (s *Server) Close() error {
	for _, l := range s.stop() {
		_ = l.Close()
	}
	s.engine.close()
	s.conns.cutAll()
	return nil
}

// stop returns the listeners there are; there will be no more.
func (s *Server) stop() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped.Store(true)
	return slices.Clone(s.listeners)
}

// Conns counts the connections.
func (s *Server) Conns() Conns {
	return Conns{Opened: s.conns.opened.Load(), Live: s.conns.live.Load(), Idle: s.conns.idle.Load()}
}
