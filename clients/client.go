// Package clients is the contract between the gateway and the outbound HTTP
// library under test: what a client is asked ([Request]), what it answers
// ([Response]), how it fails ([Error]) and what it is built from ([Settings]).
//
// It imports nothing third-party, so that an adapter pays for nothing but its own
// library. The adapters are subpackages, one third-party import each;
// the one list of them is clients/registry. What they share because their
// libraries ride on net/http (the transport, the conversions) or because their
// library lacks it (the retry loop) stands here too, once.
//
// The trap: a string may be a view of a library's buffer. See [Request.Borrowed]
// and [Response.Borrowed].
package clients

import (
	"context"
	"io"
	"slices"
)

// A Client sends requests to one upstream with one HTTP library.
type Client interface {
	// Do carries out one logical request, which is several attempts on the
	// wire where the retry policy says so. It returns when the response head
	// is there; the body streams. Every error is an [*Error].
	//
	// Do does not keep req after it returns, except req.Body, which it may
	// read until the response ends (see [Response.End]).
	Do(ctx context.Context, req *Request) (*Response, error)

	// Close closes idle connections and forbids new requests.
	Close() error
}

// A Request is one request as it shall appear upstream. Who fills it (a server,
// then the hop in place) owns it and may reuse it after the exchange.
type Request struct {
	Method string

	// Target is the request target as it goes on the wire, byte for byte:
	// origin-form ("/a%2Fb?x=1") or "*".
	Target string

	// Host is the value of the Host field.
	Host string

	// Fields are the end-to-end fields in the order received, then those that
	// the hop adds. No Host, no Content-Length, and no hop-by-hop field, with
	// one exception: a request for another protocol has "Connection: Upgrade"
	// and one Upgrade field. A client that cannot hand the connection over
	// then (see [Response.Upgraded]) sends nothing and returns an error of kind
	// Unsupported.
	Fields Fields

	// Body is nil where the request has none. It is read by one goroutine at a
	// time, and returns an error once the exchange has ended.
	Body io.Reader

	// ContentLength is the body's length in bytes, -1 if unknown.
	ContentLength int64

	// Borrowed says that the strings above are views of a buffer that is
	// reused when the exchange ends: what must live longer is cloned first
	// ([Request.Own]).
	Borrowed bool

	// Informational, if not nil, is called for every 1xx response except 100
	// and 101, before Do returns, by clients that can see them.
	Informational func(status int, fields Fields)
}

// A Response is one response as it came from upstream, or one made up by a layer
// ([NewResponse]). Who receives it calls End, exactly when nothing more of it
// will be read; calling it twice does nothing.
type Response struct {
	Status int

	// Fields are as received, hop-by-hop fields included (the hop strips
	// them); Content-Length and Transfer-Encoding are not among them.
	Fields Fields

	// Body is never nil. An error other than io.EOF is an [*Error]. Reading
	// past a short upstream body gives an error, never io.EOF.
	Body io.ReadCloser

	// ContentLength is the length of the body in bytes that the head
	// announced, -1 if unknown. After HEAD and 304 it is what the head
	// announced although no body follows.
	ContentLength int64

	// Trailers gives the trailer section once Body has returned io.EOF; nil
	// where there is none or the library cannot tell.
	Trailers func() Fields

	// Attempts is how many tries on the wire it took, 0 for a response that
	// never was on one.
	Attempts int

	// Borrowed says that the strings in Fields are views of the library's
	// buffer: valid until End.
	Borrowed bool

	// Upgraded is the connection to upstream after status 101, else nil.
	// Who takes it closes it; End closes it otherwise.
	Upgraded io.ReadWriteCloser

	ended bool
	hooks []func(error)
	room  [4]func(error) // hooks' first backing array: the usual layers fit
}

// NewResponse returns a response made up by a layer rather than received, with
// body (which may be nil) held in memory.
func NewResponse(status int, fields Fields, body []byte) *Response {
	r := &Response{Status: status, Fields: fields, ContentLength: int64(len(body)), Body: NoBody}
	if len(body) > 0 {
		r.Body = &memoryBody{left: body}
	}
	return r
}

// OnEnd registers f to run when the exchange ends; the last registered runs
// first, so that layers let go in the reverse order of taking. f gets the error
// given to End. Layers hook the end instead of wrapping Body: no allocation, one
// order of release.
func (r *Response) OnEnd(f func(err error)) {
	if r.hooks == nil {
		r.hooks = r.room[:0]
	}
	r.hooks = append(r.hooks, f)
}

// AfterEnd registers f to run after every hook that is there already: for whoever
// stands around all layers, and must outlast them.
func (r *Response) AfterEnd(f func(err error)) {
	if r.hooks == nil {
		r.hooks = r.room[:0]
	}
	r.hooks = slices.Insert(r.hooks, 0, f)
}

// End finishes the exchange: it closes Body, which gives the connection back if
// the body was read whole and discards it otherwise, then runs the hooks. err is
// nil if the response went downstream whole, an [*Error] of kind [Canceled] if
// downstream went away, or the error that reading Body gave.
//
// Only the goroutine that relays the response calls End; it is idempotent but
// not safe for concurrent use.
func (r *Response) End(err error) {
	if r.ended {
		return
	}
	r.ended = true
	defer r.unwind(err)
	if r.Upgraded != nil {
		defer func() { _ = r.Upgraded.Close() }()
	}
	_ = r.Body.Close()
}

// unwind runs the hooks. One that panics, or a Close before them that does, keeps
// none from running: each holds something that is lost to all other exchanges
// otherwise. The panic goes on to End's caller.
func (r *Response) unwind(err error) {
	last := len(r.hooks) - 1
	if last < 0 {
		return
	}
	f := r.hooks[last]
	r.hooks = r.hooks[:last]
	defer r.unwind(err)
	f(err)
}

// NoBody is the body of a response without one.
var NoBody io.ReadCloser = noBody{}

type noBody struct{}

func (noBody) Read([]byte) (int, error)         { return 0, io.EOF }
func (noBody) WriteTo(io.Writer) (int64, error) { return 0, nil }
func (noBody) Close() error                     { return nil }

// memoryBody is bytes.Reader with a Close, without the rest.
type memoryBody struct{ left []byte }

func (b *memoryBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *memoryBody) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.left)
	b.left = b.left[n:]
	return int64(n), err
}

func (b *memoryBody) Close() error { return nil }
