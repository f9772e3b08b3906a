package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

// accept refuses a head that cannot be relayed as it is.
func (x *Exchange) accept(resp *http.Response) error {
	limit := int64(x.c.limits.ResponseBody)
	switch status := resp.StatusCode; {
	case resp.ProtoMajor != 1:
		return &Error{Kind: Protocol, Err: fmt.Errorf("answer in %s", resp.Proto)}
	case status < 100 || status > 999:
		return &Error{Kind: Protocol, Err: fmt.Errorf("status %03d", status)}
	case status == http.StatusSwitchingProtocols:
		if _, ok := resp.Body.(io.ReadWriteCloser); !ok || len(x.header["Upgrade"]) == 0 {
			return &Error{Kind: Protocol, Err: errors.New("switch of protocols that nobody asked for")}
		}
	case limit > 0 && resp.ContentLength > limit && x.bodyFollows(status):
		return &Error{Kind: ResponseTooLarge, Err: fmt.Errorf("body of %d bytes, limits.response_body is %v", resp.ContentLength, x.c.limits.ResponseBody)}
	}
	return nil
}

func (x *Exchange) bodyFollows(status int) bool {
	return x.req.Method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified
}

// response makes the exchange's response of net/http's.
func (x *Exchange) response(resp *http.Response) *Response {
	x.in, x.got = resp.Body, 0
	x.resp = Response{
		Status:        resp.StatusCode,
		Fields:        appendFields(x.room[:0], resp.Header),
		Body:          (*responseBody)(x),
		ContentLength: resp.ContentLength,
	}
	for _, v := range x.location {
		x.resp.Fields.Add("Location", v)
	}
	for name := range resp.Trailer { // net/http took the announcement out
		x.resp.Fields.Add("Trailer", name)
	}
	switch {
	case resp.StatusCode == http.StatusNotModified:
		x.resp.ContentLength = announced(resp.Header)
	case resp.StatusCode == http.StatusSwitchingProtocols:
		x.resp.Upgraded, _ = resp.Body.(io.ReadWriteCloser)
		x.resp.Body = NoBody
	case len(resp.TransferEncoding) > 0:
		x.resp.Trailers = func() Fields { return appendFields(nil, resp.Trailer) }
	}
	return &x.resp
}

// announced is the Content-Length of a 304, which net/http leaves in the header
// since no body follows.
func announced(h http.Header) int64 {
	if v := h["Content-Length"]; len(v) > 0 {
		if n, err := strconv.ParseUint(v[0], 10, 63); err == nil {
			return int64(n)
		}
	}
	return -1
}

// appendFields appends the lines of h, except those that only frame the message.
// The order of the names is not kept: net/http has forgotten it.
func appendFields(fs Fields, h http.Header) Fields {
	for name, values := range h {
		if name == "Content-Length" || name == "Transfer-Encoding" {
			continue
		}
		for _, v := range values {
			fs = append(fs, Field{Name: name, Value: v})
		}
	}
	return fs
}

// responseBody is the response body as the relay reads it: silence, size and
// truncation end it with an [*Error].
type responseBody Exchange

var errBodyTooLarge = errors.New("body beyond limits.response_body")

func (b *responseBody) Read(p []byte) (int, error) {
	x := (*Exchange)(b)
	limit := int64(x.c.limits.ResponseBody)
	if limit > 0 && x.got > limit { // said before: a reader that asks again sees no clean end
		return 0, &Error{Kind: ResponseTooLarge, Err: errBodyTooLarge}
	}
	if limit > 0 && int64(len(p)) > limit-x.got+1 {
		p = p[:limit-x.got+1] // one byte more than may come
	}
	x.startRead()
	n, err := x.in.Read(p)
	x.endRead()
	x.got += int64(n)
	switch {
	case limit > 0 && x.got > limit:
		n -= int(x.got - limit)
		return n, &Error{Kind: ResponseTooLarge, Err: errBodyTooLarge}
	case err == nil || err == io.EOF:
		return n, err
	}
	return n, x.bodyError(err)
}

// bodyError classifies what broke a response body off. Short, reset or malformed,
// the kind is Protocol: the head has already gone downstream, so the ways differ
// for nobody.
func (x *Exchange) bodyError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if err := contextError(x); err != nil {
		e, _ := errors.AsType[*Error](err)
		return e
	}
	return &Error{Kind: Protocol, Err: err}
}

// Close gives the connection back if the body was read whole, and cuts it if not.
func (b *responseBody) Close() error { return b.in.Close() }

// Drain reads a rest that is worth a connection.
func (b *responseBody) Drain() { (*Exchange)(b).drain(b.in, b.resp.ContentLength) }

// classify makes an [*Error] of what a round trip or a library returned. ctx is the
// attempt's or the exchange's. Some of net/http's errors are plain text; what had
// come in when they arose tells them apart.
func (x *Exchange) classify(ctx context.Context, err error) *Error {
	x.mu.Lock()
	upload, conn, begun := x.upload.err, x.conn, x.begun
	x.mu.Unlock()
	for _, known := range []error{upload, err, contextError(ctx)} {
		if e, ok := errors.AsType[*Error](known); ok {
			return e
		}
	}
	kind := Protocol
	switch {
	case !wellFormed(x.req):
		kind = BadRequest
	case conn != nil && conn.read.Load()-begun >= int64(x.c.limits.Header):
		kind = ResponseTooLarge
	case conn != nil && conn.ended.Load(), isDisconnect(err):
		kind = Reset
	case isTimeout(err):
		kind = TimeoutHeader
	}
	return &Error{Kind: kind, Err: err}
}

func isDisconnect(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}
