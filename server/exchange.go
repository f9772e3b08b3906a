package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"gatebench/clients"
)

// An exchange is one request and its answer, as far as both libraries have it in
// common. It is reused; its body is not.
type exchange struct {
	s    *Server
	conn *conn
	in   Inbound
}

// BodyErr is why Body gave no more than it did, nil if it ended well or was not
// read so far: an [*clients.Error] of kind RequestTooLarge, TimeoutBody,
// BadRequest or Canceled. It is what to answer when a client fails within an
// upload: net/http cancels a request whose body times out, so the client may have
// seen the cancellation only.
func (in *Inbound) BodyErr() error {
	if in.upload == nil {
		return nil
	}
	return in.upload.failure()
}

// attach gives the request a body; length is -1 if unknown.
func (x *exchange) attach(src io.Reader, length int64) {
	x.in.upload = newBody(src, x.conn, length, x.s.cfg.MaxBodyBytes)
	x.in.Body = x.in.upload
}

// reset lets go of what the exchange held, except room for fields.
func (x *exchange) reset() {
	clear(x.in.Fields)
	x.in = Inbound{Request: clients.Request{Fields: x.in.Fields[:0]}}
	x.conn = nil
}

// refusal is what the server itself has against a request.
type refusal struct {
	status int
	reason clients.Kind
	detail string
}

// admit completes the request and says what speaks against it, if anything.
func (x *exchange) admit() *refusal {
	origin, host, ok := originForm(x.in.Method, x.in.Target)
	switch {
	case !ok:
		return &refusal{http.StatusBadRequest, clients.BadRequest, "the request target is none that a gateway serves"}
	case x.s.cfg.MaxBodyBytes > 0 && x.in.ContentLength > x.s.cfg.MaxBodyBytes:
		return x.s.bodyTooLong()
	}
	x.in.Target = origin
	if host != "" {
		x.in.Host = host
	}
	return nil
}

func (s *Server) bodyTooLong() *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, clients.RequestTooLarge,
		fmt.Sprintf("the request body is longer than %d bytes", s.cfg.MaxBodyBytes)}
}

// refuse words an answer of the server's own.
func (s *Server) refuse(r *refusal) *clients.Response {
	if s.cfg.Reject != nil {
		if resp := s.cfg.Reject(r.status, r.reason, r.detail); resp != nil {
			return resp
		}
	}
	return clients.NewResponse(r.status, nil, nil)
}

// ask asks the handler. A panic becomes an answer and a log line, except that
// [http.ErrAbortHandler] cuts the connection, as it is known to.
func (s *Server) ask(ctx context.Context, in *Inbound) (resp *clients.Response) {
	defer func() {
		if v := recover(); v != nil {
			resp = nil
			if v != http.ErrAbortHandler {
				s.logPanic("handler", v)
				resp = s.refuse(&refusal{http.StatusInternalServerError, 0, "the handler failed"})
			}
		}
	}()
	resp = s.handler.Serve(ctx, in)
	if resp != nil && (resp.Status < 200 && resp.Status != http.StatusSwitchingProtocols || resp.Status > 999) {
		s.log.Error("the handler's status cannot be sent", "status", resp.Status)
		s.end(resp, &clients.Error{Kind: clients.Protocol, Err: fmt.Errorf("status %d", resp.Status)})
		resp = s.refuse(&refusal{http.StatusInternalServerError, 0, "the handler failed"})
	}
	return resp
}

// end ends an answer; a hook that panics harms nothing else.
func (s *Server) end(resp *clients.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("end of an exchange", v)
		}
	}()
	resp.End(err)
}

func (s *Server) logPanic(where string, v any) {
	s.log.Error("panic in the "+where, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// hasBody reports whether an answer of that status to that method has a body
// (RFC 9112, section 6.3).
func hasBody(method string, status int) bool {
	return method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified
}

// chunks reports whether the response goes out in chunks, which alone can have
// trailers; a Trailer field among its fields announces them.
func (x *exchange) chunks(resp *clients.Response) bool {
	return resp.ContentLength < 0 && x.in.ProtoMinor > 0 && hasBody(x.in.Method, resp.Status)
}

// isStream reports whether every byte of the response is to go out at once.
func isStream(resp *clients.Response) bool {
	const eventStream = "text/event-stream"
	if resp.ContentLength < 0 {
		return true
	}
	ct := resp.Fields.Get("Content-Type")
	return len(ct) >= len(eventStream) && strings.EqualFold(ct[:len(eventStream)], eventStream)
}

// frames reports whether a field is about the framing of a message, which is
// never a handler's business: two opinions on it are a smuggled response.
func frames(name string) bool {
	return clients.EqualName(name, "Content-Length") || clients.EqualName(name, "Transfer-Encoding")
}

const bufferSize = 32 << 10

// A piece is what the first Read of a response body gave. It says whether the rest
// is worth waiting for: a body that is whole with it goes out in one write with the
// head; of any other, head and piece go out at once.
type piece struct {
	buf *[bufferSize]byte // nil if nothing has been read
	n   int
	err error
}

// peek reads the first piece, which relay wants back.
func (s *Server) peek(resp *clients.Response) piece {
	if resp.Body == clients.NoBody {
		return piece{}
	}
	p := piece{buf: s.buffers.Get().(*[bufferSize]byte)}
	p.n, p.err = s.read(resp.Body, p.buf[:])
	return p
}

// completes reports whether nothing of a body of known length is missing.
func (p piece) completes(resp *clients.Response) bool { return int64(p.n) >= resp.ContentLength }

// A flusher sends what a library holds back, as net/http's ResponseWriter does.
type flusher interface{ FlushError() error }

// relay copies a response's body to w, first what peek gave, with a flush by f (if
// not nil) after every piece, and counts what it wrote. Its error is that of the body,
// or of kind [clients.Canceled] if downstream does not take it. A body that is not
// as long as announced is an error too.
func (s *Server) relay(w io.Writer, resp *clients.Response, p piece, f flusher) (written int64, err error) {
	if p.buf == nil {
		if resp.Body == clients.NoBody && resp.ContentLength <= 0 {
			return 0, nil
		}
		p.buf = s.buffers.Get().(*[bufferSize]byte)
	}
	defer s.buffers.Put(p.buf)
	for ; ; p.n, p.err = s.read(resp.Body, p.buf[:]) {
		if resp.ContentLength >= 0 && written+int64(p.n) > resp.ContentLength {
			return written, protocolError("the body is longer than announced")
		}
		if p.n > 0 {
			if werr := write(w, p.buf[:p.n], f); werr != nil {
				return written, &clients.Error{Kind: clients.Canceled, Err: werr}
			}
			written += int64(p.n)
		}
		switch {
		case p.err == io.EOF && written < resp.ContentLength:
			return written, protocolError("the body is shorter than announced")
		case p.err == io.EOF:
			return written, nil
		case p.err != nil:
			return written, p.err
		}
	}
}

func protocolError(s string) error {
	return &clients.Error{Kind: clients.Protocol, Err: errors.New(s)}
}

func write(w io.Writer, p []byte, f flusher) error {
	if _, err := w.Write(p); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	return f.FlushError()
}

// read is Read whose panic is an error, and one without a kind: neither side is to
// blame for it.
func (s *Server) read(r io.Reader, p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("response body", v)
			n, err = 0, fmt.Errorf("panic in the response body: %v", v)
		}
	}()
	return r.Read(p)
}

// trailersOf gives the trailer section, nil if there is none.
func (s *Server) trailersOf(resp *clients.Response) (fs clients.Fields, err error) {
	if resp.Trailers == nil {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("trailers", v)
			fs, err = nil, fmt.Errorf("panic in the trailers: %v", v)
		}
	}()
	return resp.Trailers(), nil
}
