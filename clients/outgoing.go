package clients

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Fill makes r, whose context it keeps, the request of the next try. What r had
// before is gone: a library's own fields, body and URL included.
func (x *Exchange) Fill(r *http.Request) {
	r.Method = x.req.Method
	r.URL = &x.url
	r.Host = x.req.Host
	r.Header = x.header
	r.Body, r.GetBody, r.ContentLength, r.TransferEncoding = nil, nil, 0, nil
	if x.upload.body == nil {
		return
	}
	r.Body = (*requestBody)(x)
	r.ContentLength = x.req.ContentLength
	if r.ContentLength < 0 {
		// Said outright, as net/http would read ahead to find out whether
		// a GET of unknown length has a body at all.
		r.TransferEncoding = []string{"chunked"}
	}
}

// NewRequest returns a new request of the exchange, filled.
func (x *Exchange) NewRequest() *http.Request {
	r := (&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(x)
	x.Fill(r)
	return r
}

// aim points the URL at upstream so that net/http writes the target byte for byte.
// Opaque does that, except that it takes a leading // for an authority; there the
// raw path and query do, if the path's escapes are well-formed.
func (x *Exchange) aim() error {
	target := x.req.Target
	x.url = url.URL{Scheme: x.c.scheme, Host: x.c.host, Opaque: target}
	if strings.HasPrefix(target, "//") {
		raw, query, asked := strings.Cut(target, "?")
		path, err := url.PathUnescape(raw)
		if err != nil {
			return &Error{Kind: BadRequest, Err: err}
		}
		x.url = url.URL{
			Scheme: x.c.scheme, Host: x.c.host,
			Path: path, RawPath: raw, RawQuery: query, ForceQuery: asked,
		}
	}
	if x.url.RequestURI() != target || strings.ContainsFunc(target, breaksLine) {
		return &Error{Kind: BadRequest, Err: fmt.Errorf("target %q cannot be sent as it is", target)}
	}
	return nil
}

// outgoingHeader makes net/http's header of fs, as faithful as net/http lets: the
// case of names is kept, except where it looks a name up; lines of one name keep
// their order.
func outgoingHeader(fs Fields) http.Header {
	h := make(http.Header, len(fs)+1)
	values := make([]string, 0, len(fs)) // one array behind all lines
	h["User-Agent"] = noUserAgent
	for i := range fs {
		value := fs[i].Value
		name := spell(fs, i)
		if name == "" {
			continue
		}
		if same := h[name]; same != nil {
			h[name] = append(same, value)
			continue
		}
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return h
}

// noUserAgent keeps net/http from inventing one.
var noUserAgent = []string{""}

// manyFields is from where on names are spelled canonically, since to find an
// earlier spelling among n names takes n² comparisons.
const manyFields = 64

// spell gives the key for the name of fs[i], "" if the field must not be sent.
func spell(fs Fields, i int) string {
	name := fs[i].Name
	switch len(name) {
	case 4, 14, 17:
		// Framing and Host are not fields here. In any other case than
		// net/http's own they would slip past it, a second framing.
		if EqualName(name, "Host") || EqualName(name, "Content-Length") || EqualName(name, "Transfer-Encoding") {
			return ""
		}
		if EqualName(name, "X-Idempotency-Key") {
			return "x-idempotency-key"
		}
	case 7:
		if EqualName(name, "Upgrade") {
			return "Upgrade"
		}
	case 10:
		if EqualName(name, "Connection") {
			return "Connection"
		}
		if EqualName(name, "User-Agent") {
			return "user-agent" // beside the empty one that net/http looks up
		}
	case 15:
		// net/http takes a POST with this field for one that it may send
		// twice, unless it does not see it.
		if EqualName(name, "Idempotency-Key") {
			return "idempotency-key"
		}
	}
	if len(fs) > manyFields {
		return http.CanonicalHeaderKey(name)
	}
	for j := range i {
		if EqualName(fs[j].Name, name) {
			return fs[j].Name
		}
	}
	return name
}

// requestBody is the request body as the transport reads it. The transport may
// still hold it after the exchange has ended, and then gets an error.
type requestBody Exchange

var (
	errDetached    = errors.New("read of a request body after its exchange ended")
	errShortUpload = errors.New("request body is shorter than announced")
)

func (b *requestBody) Read(p []byte) (n int, err error) {
	x := (*Exchange)(b)
	u := &x.upload
	if u.closed.Load() {
		return 0, errDetached
	}
	defer func() {
		// It runs on a goroutine of the transport's, where a panic would
		// end the process.
		if v := recover(); v != nil {
			n, err = 0, x.uploadFailed(fmt.Errorf("panic: %v", v))
		}
	}()
	n, err = u.body.Read(p)
	if u.left >= 0 {
		u.left -= int64(n)
	}
	whole := errors.Is(err, io.EOF)
	if n > 0 || whole {
		x.moved(whole || u.left == 0)
	}
	switch {
	case whole && u.left > 0:
		err = x.uploadFailed(errShortUpload)
	case whole:
		err = io.EOF // itself, which is all that io.Copy knows
	case err != nil:
		err = x.uploadFailed(err)
	}
	return n, err
}

// uploadFailed remembers that it was downstream's body that failed, whatever the
// transport makes of it.
func (x *Exchange) uploadFailed(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Kind: BadRequest, Err: err}
	}
	x.mu.Lock()
	x.upload.err = e
	x.mu.Unlock()
	return e
}

// Close does nothing: a retry layer may close a body that has more readers. The
// exchange's end is what detaches it.
func (b *requestBody) Close() error { return nil }

// wellFormed reports whether r can be put on the wire at all (RFC 9110, sections
// 5.5, 5.6.2 and 9.1).
func wellFormed(r *Request) bool {
	if !isToken(r.Method) {
		return false
	}
	for _, f := range r.Fields {
		if !isToken(f.Name) || strings.ContainsFunc(f.Value, func(c rune) bool { return isControl(c) && c != '\t' }) {
			return false
		}
	}
	return true
}

// breaksLine reports whether c ends a request target where upstream reads it.
func breaksLine(c rune) bool { return c <= ' ' || c == 0x7f }

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && strings.IndexByte("0123456789!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
