package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatebench/clients"
)

// A netServer is net/http. It parses and writes heads as maps, so that order and
// case of fields are lost; and it hides a Transfer-Encoding that came with a
// Content-Length or over HTTP/1.0, so the connection is not kept after a chunked
// or an HTTP/1.0 request: what hides behind the body never becomes a request.
type netServer struct {
	s    *Server
	http http.Server
	pool sync.Pool // of *netExchange
}

// readSlop is what net/http adds to MaxHeaderBytes.
const readSlop = 4096

type connKey struct{}

func newNetServer(s *Server) *netServer {
	n := &netServer{s: s}
	n.pool.New = func() any {
		x := &netExchange{exchange: exchange{s: s}}
		x.informational = x.inform
		return x
	}
	n.http = http.Server{
		Handler:                      n,
		MaxHeaderBytes:               int(max(s.cfg.MaxHeaderBytes-readSlop, 1)),
		ReadHeaderTimeout:            s.cfg.ReadHeaderTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		DisableGeneralOptionsHandler: true, // OPTIONS * is for the handler
		Protocols:                    new(http.Protocols),
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(nc net.Conn, state http.ConnState) {
			switch c := nc.(*conn); state {
			case http.StateActive:
				c.enter(active)
			case http.StateIdle:
				c.enterIdle()
			}
		},
	}
	n.http.Protocols.SetHTTP1(true)
	return n
}

func (n *netServer) serve(ln net.Listener) error        { return n.http.Serve(ln) }
func (n *netServer) shutdown(ctx context.Context) error { return n.http.Shutdown(ctx) }
func (n *netServer) close()                             { _ = n.http.Close() }
func (n *netServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	x := n.pool.Get().(*netExchange)
	x.conn, x.w = c, w
	intact := x.serve(r)
	x.reset()
	x.w = nil
	n.pool.Put(x)
	if !intact {
		panic(http.ErrAbortHandler) // closes the connection, not logged
	}
}

type netExchange struct {
	exchange
	w             http.ResponseWriter
	informational func(int, clients.Fields) // inform, bound once

	// last says that the connection ends with this exchange.
	last bool
}

// serve carries out one exchange and reports whether its answer is whole.
func (x *netExchange) serve(r *http.Request) (intact bool) {
	x.s.exchanges.Add(1)
	defer x.s.exchanges.Add(-1)

	x.receive(r)
	var resp *clients.Response
	if no := x.admit(); no != nil {
		x.last = true
		resp = x.s.refuse(no)
	} else {
		resp = x.s.ask(r.Context(), &x.in)
	}
	switch {
	case resp == nil && x.in.taken != nil:
		x.handOver()
		return false
	case resp == nil:
		x.finishBody()
		return false
	case resp.Status == http.StatusSwitchingProtocols:
		return x.upgrade(resp)
	}
	err := x.send(resp)
	x.finishBody()
	x.s.end(resp, err)
	return err == nil
}

// receive fills the inbound request.
func (x *netExchange) receive(r *http.Request) {
	in := &x.in
	in.Method, in.Target, in.Host = r.Method, r.RequestURI, r.Host
	in.ContentLength = r.ContentLength
	in.RemoteIP, in.ProtoMinor = x.conn.remoteIP, min(r.ProtoMinor, 1) // net/http serves HTTP/1.2 too
	in.Informational = x.informational
	for name, values := range r.Header {
		if frames(name) {
			continue
		}
		for _, v := range values {
			in.Fields = append(in.Fields, clients.Field{Name: name, Value: v})
		}
	}
	// The map has no order of its own, and two equal requests shall be equal.
	slices.SortStableFunc(in.Fields, func(a, b clients.Field) int { return strings.Compare(a.Name, b.Name) })

	x.last = r.ProtoMinor == 0 || r.ContentLength < 0
	if r.Body != http.NoBody {
		x.attach(r.Body, r.ContentLength)
		// Otherwise net/http reads the rest of the body before it writes the
		// head, and an early answer waits for a slow upload.
		_ = http.NewResponseController(x.w).EnableFullDuplex()
	}
}

// inform sends a 1xx response.
func (x *netExchange) inform(status int, fields clients.Fields) {
	if x.in.ProtoMinor == 0 {
		return
	}
	h := x.w.Header()
	for _, f := range fields {
		h[f.Name] = append(h[f.Name], f.Value)
	}
	x.w.WriteHeader(status)
	clear(h)
}

// send writes the response. Its error is relay's.
func (x *netExchange) send(resp *clients.Response) error {
	// net/http writes the head of a short response after ServeHTTP has
	// returned, when the strings of a borrowed one are gone.
	resp.Own()
	x.putHead(resp)
	x.w.WriteHeader(resp.Status)
	if !hasBody(x.in.Method, resp.Status) {
		return nil
	}
	eager := x.w.(flusher)
	var first piece
	if isStream(resp) {
		if err := eager.FlushError(); err != nil {
			return &clients.Error{Kind: clients.Canceled, Err: err}
		}
	} else if first = x.s.peek(resp); first.completes(resp) {
		eager = nil
	}
	if _, err := x.s.relay(x.w, resp, first, eager); err != nil {
		if resp.ContentLength < 0 && x.in.ProtoMinor == 0 {
			x.conn.reset()
		}
		return err
	}
	if !x.chunks(resp) {
		return nil
	}
	trailers, err := x.s.trailersOf(resp)
	for _, f := range trailers {
		name := http.TrailerPrefix + f.Name
		x.w.Header()[name] = append(x.w.Header()[name], f.Value)
	}
	return err
}

// putHead fills net/http's header map.
func (x *netExchange) putHead(resp *clients.Response) {
	h := x.w.Header()
	values := make([]string, 0, len(resp.Fields)+2)
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	h["Content-Type"] = nil // otherwise it is guessed from the body
	for i := range resp.Fields {
		f := &resp.Fields[i]
		name := mapName(f.Name)
		switch before := h[name]; {
		case frames(name), name == "Trailer" && !x.chunks(resp):
		case len(before) == 0:
			set(name, f.Value)
		default:
			h[name] = append(before, f.Value)
		}
	}
	if resp.ContentLength >= 0 && resp.Status != http.StatusNoContent {
		set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	if x.in.upload != nil {
		x.last = x.last || x.in.upload.outlastsHead()
	}
	if x.last || x.s.stopped.Load() {
		x.last = true
		set("Connection", "close")
	}
}

// mapName gives the names that net/http looks for the case that it looks for.
func mapName(name string) string {
	for _, known := range [...]string{"Date", "Trailer", "Connection", "Content-Type", "Content-Encoding"} {
		if clients.EqualName(name, known) {
			return known
		}
	}
	return name
}

// finishBody lets go of the request body and decides whether the connection can
// be kept.
func (x *netExchange) finishBody() {
	b := x.in.upload
	if b == nil {
		return
	}
	whole, sound := b.detach()
	switch {
	case whole:
		return
	case x.last:
		// net/http would look for the end of the body before it closes.
		_ = x.conn.SetReadDeadline(past)
		x.conn.unread.Store(true)
		return
	}
	// The answer shall not wait for the rest of a body that nobody wanted.
	_ = http.NewResponseController(x.w).Flush()
	if !sound || !b.discard() {
		x.conn.doomed = true
	}
}

// upgrade answers 101 and tunnels.
func (x *netExchange) upgrade(resp *clients.Response) bool {
	if resp.Upgraded == nil {
		x.s.end(resp, protocolError("101 without a connection"))
		return false
	}
	x.finishBody()
	_, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.s.end(resp, err)
		return false
	}
	x.s.tunnel(x.conn, buffered.Reader, resp)
	return true
}

// handOver leaves the connection to whom the handler has named.
func (x *netExchange) handOver() {
	if b := x.in.upload; b != nil {
		b.detach()
	}
	if _, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
		x.s.giveWire(x.conn, x.in.taken)
	}
}
