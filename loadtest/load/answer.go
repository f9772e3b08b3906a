package load

import (
	"bytes"
	"io"
	"net/http"
)

// Bounds on what a server may make the engine hold or wait for.
const (
	firstBuffer    = 2 << 10  // holds a usual head and a small body
	maxHead        = 64 << 10 // of one head, interim ones each for themselves
	maxChunkLine   = 4 << 10  // size and extensions, or one trailer line
	maxTrailers    = 64 << 10
	maxInterim     = 16       // 1xx answers before the final one
	discardBuffer  = 64 << 10 // reads of what is left of a large body
	discardAtLeast = 16 << 10 // bodies with that much left are worth it
)

// protocolError is an answer that is not HTTP/1.1 as RFC 9112 has it.
type protocolError string

func (e protocolError) Error() string { return "malformed answer: " + string(e) }

// answer is what one response amounts to.
type answer struct {
	status int
	body   int64 // bytes, framing not included
	reuse  bool  // the connection can carry another request
	later  bool  // it asks to come back later: Retry-After
}

// answers reads responses off one connection. It keeps nothing of them, so after
// the first it allocates nothing.
type answers struct {
	src  io.Reader
	buf  []byte // buf[r:w] is read and not used
	r, w int

	look *inspection // at the next answer; nil for none

	phase phase // of the exchange
}

// reset begins on a new connection.
func (a *answers) reset(src io.Reader) {
	a.src, a.r, a.w = src, 0, 0
	if a.buf == nil {
		a.buf = make([]byte, firstBuffer)
	}
}

// buffered is how many bytes have come that no answer has used.
func (a *answers) buffered() int { return a.w - a.r }

// next reads one response to its end. noBody is for answers to HEAD. An error of
// src comes back as it is; io.EOF means that it ended before the answer did.
func (a *answers) next(noBody bool) (answer, error) {
	for range maxInterim {
		h, err := a.head()
		if err != nil {
			return answer{}, err
		}
		if h.status >= 200 {
			a.phase = readingBody
			n, err := a.body(h, noBody)
			return answer{status: h.status, body: n, reuse: h.persistent(noBody) && a.buffered() == 0, later: h.later}, err
		}
		if h.status == http.StatusSwitchingProtocols {
			return answer{}, protocolError("101 without having been asked")
		}
	}
	return answer{}, protocolError("endless interim answers")
}

// fill reads more into the buffer, which it grows up to limit.
func (a *answers) fill(limit int) error {
	if a.r > 0 {
		a.w = copy(a.buf, a.buf[a.r:a.w])
		a.r = 0
	}
	if a.w == len(a.buf) {
		if len(a.buf) >= limit {
			return protocolError("a head or line longer than the engine reads")
		}
		a.buf = append(a.buf, make([]byte, min(len(a.buf), limit-len(a.buf)))...)
	}
	n, err := a.src.Read(a.buf[a.w:])
	a.w += n
	if n > 0 {
		return nil // err comes back with the next read
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// head is what of a response head decides its framing.
type head struct {
	status    int
	length    int64 // -1 if not given
	oldMinor  bool  // HTTP/1.0
	chunked   bool
	close     bool
	keepAlive bool
	later     bool // with a Retry-After; no part of the framing
}

// framed reports whether the body, if any, ends before the connection does.
func (h head) framed(noBody bool) bool {
	return noBody || h.bodiless() || h.chunked || h.length >= 0
}

func (h head) bodiless() bool {
	return h.status == http.StatusNoContent || h.status == http.StatusNotModified
}

func (h head) persistent(noBody bool) bool {
	return h.framed(noBody) && !h.close && (!h.oldMinor || h.keepAlive) &&
		// Both lengths given smells of smuggling: RFC 9112 6.3 has us close.
		!(h.chunked && h.length >= 0)
}

func (a *answers) head() (head, error) {
	for {
		h, n, err := parseHead(a.buf[a.r:a.w])
		if err != nil {
			return h, err
		}
		if n > 0 {
			if a.look != nil && h.status >= 200 {
				a.look.head(a.buf[a.r : a.r+n])
			}
			a.r += n
			return h, nil
		}
		if err := a.fill(maxHead); err != nil {
			return h, err
		}
	}
}

const version = "HTTP/1."

// parseHead reads a whole response head off the front of b and returns its
// length, or 0 if b does not hold all of it. Lines end in CRLF; a bare LF is
// taken too, as RFC 9112 2.2 allows.
func parseHead(b []byte) (h head, n int, err error) {
	h.length = -1
	if k := min(len(b), len(version)); string(b[:k]) != version[:k] {
		return h, 0, protocolError("it does not begin with HTTP/1.")
	}
	line, n := cutLine(b)
	if n == 0 {
		return h, 0, nil
	}
	if !h.statusLine(line) {
		return h, 0, protocolError("bad status line")
	}
	for {
		line, k := cutLine(b[n:])
		if k == 0 {
			return h, 0, nil
		}
		n += k
		if len(line) == 0 {
			if h.chunked && h.oldMinor {
				// RFC 9112 6.1: faulty framing.
				return h, 0, protocolError("HTTP/1.0 with a Transfer-Encoding")
			}
			return h, n, nil
		}
		if err := h.field(line); err != nil {
			return h, 0, err
		}
	}
}

// cutLine returns the first line of b without its end, and its length with it; 0
// if there is no whole line.
func cutLine(b []byte) (line []byte, n int) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, 0
	}
	if i > 0 && b[i-1] == '\r' {
		return b[:i-1], i + 1
	}
	return b[:i], i + 1
}

// statusLine takes "HTTP/1.x NNN reason", where the reason may be missing.
func (h *head) statusLine(line []byte) bool {
	const at = len(version) + 2 // where the status begins
	if len(line) < at+3 || line[at-1] != ' ' || (len(line) > at+3 && line[at+3] != ' ') {
		return false
	}
	switch line[at-2] {
	case '0':
		h.oldMinor = true
	case '1':
	default:
		return false
	}
	for _, d := range line[at : at+3] {
		if d < '0' || d > '9' {
			return false
		}
		h.status = h.status*10 + int(d-'0')
	}
	return h.status >= 100
}

// field takes in one field line.
func (h *head) field(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || line[0] == ' ' || line[0] == '\t' || line[colon-1] == ' ' || line[colon-1] == '\t' {
		return protocolError("bad field line")
	}
	// The length alone tells most fields from the four that matter.
	switch name := line[:colon]; len(name) {
	case len("Connection"):
		if equalFold(name, "connection") {
			h.connection(line[colon+1:])
		}
	case len("Retry-After"):
		h.later = h.later || equalFold(name, "retry-after")
	case len("Content-Length"):
		if equalFold(name, "content-length") {
			n, ok := parseLength(bytes.Trim(line[colon+1:], " \t"))
			if !ok || (h.length >= 0 && h.length != n) {
				return protocolError("bad Content-Length")
			}
			h.length = n
		}
	case len("Transfer-Encoding"):
		if equalFold(name, "transfer-encoding") {
			if h.chunked || !equalFold(bytes.Trim(line[colon+1:], " \t"), "chunked") {
				return protocolError("a Transfer-Encoding other than chunked")
			}
			h.chunked = true
		}
	}
	return nil
}

func (h *head) connection(value []byte) {
	for len(value) > 0 {
		option := value
		if i := bytes.IndexByte(value, ','); i >= 0 {
			option, value = value[:i], value[i+1:]
		} else {
			value = nil
		}
		option = bytes.Trim(option, " \t")
		h.close = h.close || equalFold(option, "close")
		h.keepAlive = h.keepAlive || equalFold(option, "keep-alive")
	}
}

// equalFold compares b with a lower-case ASCII word.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// parseLength reads 1*DIGIT below 2^60.
func parseLength(b []byte) (n int64, ok bool) {
	for _, d := range b {
		if d < '0' || d > '9' || n >= 1<<56 {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	return n, len(b) > 0
}

// body reads past the body that h announces and counts it.
func (a *answers) body(h head, noBody bool) (int64, error) {
	switch {
	case noBody || h.bodiless():
		return 0, nil
	case h.chunked:
		return a.chunks()
	case h.length >= 0:
		return h.length, a.discard(h.length)
	}
	return a.toEnd()
}

// discard reads past n bytes.
func (a *answers) discard(n int64) error {
	for {
		have := min(n, int64(a.buffered()))
		if a.look != nil {
			a.look.take(a.buf[a.r : a.r+int(have)])
		}
		a.r += int(have)
		if n -= have; n == 0 {
			return nil
		}
		if n >= discardAtLeast {
			a.roomy()
		}
		if err := a.fill(len(a.buf)); err != nil {
			return err
		}
	}
}

// roomy makes the (empty) buffer as large as bodies are worth.
func (a *answers) roomy() {
	if len(a.buf) < discardBuffer {
		a.buf = make([]byte, discardBuffer)
		a.r, a.w = 0, 0
	}
}

// toEnd reads a body that ends with the connection.
func (a *answers) toEnd() (n int64, err error) {
	for {
		n += int64(a.buffered())
		if a.look != nil {
			a.look.take(a.buf[a.r:a.w])
		}
		a.r = a.w
		if err := a.fill(len(a.buf)); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	}
}

// chunks reads a chunked body and its trailers.
func (a *answers) chunks() (total int64, err error) {
	for {
		line, err := a.line()
		if err != nil {
			return total, err
		}
		n, ok := parseChunkSize(line)
		if !ok {
			return total, protocolError("bad chunk size")
		}
		if n == 0 {
			return total, a.trailers()
		}
		if err := a.discard(n); err != nil {
			return total, err
		}
		total += n
		if line, err = a.line(); err != nil {
			return total, err
		}
		if len(line) > 0 {
			return total, protocolError("a chunk longer than its size")
		}
	}
}

// line takes one line; it is good until the next fill.
func (a *answers) line() ([]byte, error) {
	for {
		if line, n := cutLine(a.buf[a.r:a.w]); n > 0 {
			a.r += n
			return line, nil
		}
		if a.buffered() >= maxChunkLine {
			return nil, protocolError("a chunk or trailer line that does not end")
		}
		if err := a.fill(2 * maxChunkLine); err != nil {
			return nil, err
		}
	}
}

func (a *answers) trailers() error {
	for size := 0; size < maxTrailers; {
		line, err := a.line()
		if err != nil || len(line) == 0 {
			return err
		}
		size += len(line)
	}
	return protocolError("endless trailers")
}

// parseChunkSize reads the hexadecimal size before any extension.
func parseChunkSize(line []byte) (n int64, ok bool) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	for _, d := range line {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		if n >= 1<<56 {
			return 0, false
		}
		n = n<<4 + int64(d)
	}
	return n, len(line) > 0
}
