package clienttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatebench/clients"
)

// upstream is a scripted server: it hands out bytes and remembers what it heard.
type upstream struct {
	c      *check
	scheme string
	addr   string
	script func(*peer)
	ln     net.Listener

	mu       sync.Mutex
	accepted int
	open     map[net.Conn]bool
	most     int // open at once
	heard    []*heard
}

// heard is a request as it came over the wire.
type heard struct {
	Method, Target, Proto string
	// Fields are the field lines in their order and bytes.
	Fields clients.Fields
	Body   string
	// Conn numbers the connection it came on, from 1.
	Conn int
}

// serve starts an upstream that plays script on every connection, then closes
// it.
func (c *check) serve(script func(*peer)) *upstream {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.fatalf("listen: %v", err)
	}
	return c.serveOn(ln, script)
}

func (c *check) serveOn(ln net.Listener, script func(*peer)) *upstream {
	u := &upstream{c: c, scheme: "http", addr: ln.Addr().String(), script: script, ln: ln, open: make(map[net.Conn]bool)}
	c.running.Go(func() { u.accept(ln) })
	c.onEnd(func() {
		u.closeListener()
		u.closeAll()
	})
	return u
}

// closeListener lets further connections be refused.
func (u *upstream) closeListener() { _ = u.ln.Close() }

// answer starts an upstream that answers every request, read whole, with the
// bytes that f makes of it, without the body for HEAD, and keeps connections open
// unless those bytes say otherwise.
func (c *check) answer(f func(*heard) string) *upstream {
	return c.serve(func(p *peer) {
		for {
			h, err := p.request()
			if err != nil {
				return
			}
			answer := f(h)
			if h.Method == "HEAD" {
				head, _, _ := strings.Cut(answer, "\r\n\r\n")
				answer = head + "\r\n\r\n"
			}
			p.send(answer)
			if strings.Contains(answer, "Connection: close") {
				return
			}
		}
	})
}

// always is an upstream with one answer.
func (c *check) always(answer string) *upstream {
	return c.answer(func(*heard) string { return answer })
}

// ok is a 200 with a body of known length.
func ok(body string) string { return reply("200 OK", body) }

func reply(status, body string, fields ...string) string {
	return "HTTP/1.1 " + status + "\r\n" + lines(fields) + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// chunked is a 200 in these chunks; trailers are field lines.
func chunked(chunks []string, trailers ...string) string {
	var b strings.Builder
	b.WriteString(chunkedHead)
	for _, c := range chunks {
		b.WriteString(chunk(c))
	}
	b.WriteString("0\r\n" + lines(trailers) + "\r\n")
	return b.String()
}

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func lines(fields []string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String()
}

func (u *upstream) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		n := u.opened(conn)
		u.c.running.Go(func() {
			defer u.closed(conn)
			u.script(&peer{Conn: conn, br: bufio.NewReader(conn), n: n, u: u})
		})
	}
}

func (u *upstream) opened(conn net.Conn) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accepted++
	u.open[conn] = true
	u.most = max(u.most, len(u.open))
	return u.accepted
}

func (u *upstream) closed(conn net.Conn) {
	_ = conn.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, conn)
}

func (u *upstream) closeAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.open {
		_ = conn.Close()
	}
}

// connections is how many were accepted so far.
func (u *upstream) connections() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accepted
}

// openNow is how many connections neither side has closed.
func (u *upstream) openNow() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)
}

// requests are those whose head was read so far.
func (u *upstream) requests() []*heard {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.heard)
}

// last is the latest request.
func (u *upstream) last() *heard {
	hs := u.requests()
	if len(hs) == 0 {
		u.c.fatalf("upstream heard nothing")
	}
	return hs[len(hs)-1]
}

// peer is upstream's end of one connection.
type peer struct {
	net.Conn
	br *bufio.Reader
	n  int // this is the nth connection, from 1
	u  *upstream
}

// request reads a request whole.
func (p *peer) request() (*heard, error) {
	h, err := p.head()
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(p.body(h))
	p.u.mu.Lock()
	h.Body = string(body)
	p.u.mu.Unlock()
	return h, err
}

// head reads a request's head. It is lenient: what is wrong with it is for the
// cases to say.
func (p *peer) head() (*heard, error) {
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	h := &heard{Conn: p.n}
	h.Method, line, _ = strings.Cut(line, " ")
	if i := strings.LastIndexByte(line, ' '); i >= 0 {
		h.Target, h.Proto = line[:i], line[i+1:]
	}
	for {
		line, err := p.line()
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		h.Fields.Add(name, strings.Trim(value, " \t"))
	}
	p.u.mu.Lock()
	p.u.heard = append(p.u.heard, h)
	p.u.mu.Unlock()
	return h, nil
}

func (p *peer) line() (string, error) {
	s, err := p.br.ReadString('\n')
	return strings.TrimRight(s, "\r\n"), err
}

// body reads what follows the head, decoded.
func (p *peer) body(h *heard) io.Reader {
	if te, ok := h.Fields.Lookup("Transfer-Encoding"); ok && strings.EqualFold(te, "chunked") {
		return &chunkedBody{Reader: httputil.NewChunkedReader(p.br), rest: p.br}
	}
	if cl, ok := h.Fields.Lookup("Content-Length"); ok {
		n, err := strconv.ParseInt(cl, 10, 64)
		if err != nil {
			return errReader{err}
		}
		return &exactBody{io.LimitedReader{R: p.br, N: n}}
	}
	return strings.NewReader("")
}

// chunkedBody reads the empty line (or trailers) behind the last chunk too,
// which httputil's reader leaves.
type chunkedBody struct {
	io.Reader
	rest *bufio.Reader
	done bool
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	n, err := b.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	for {
		line, err := b.rest.ReadString('\n')
		if err != nil {
			return n, io.ErrUnexpectedEOF
		}
		if strings.TrimRight(line, "\r\n") == "" {
			b.done = true
			return n, io.EOF
		}
	}
}

// exactBody makes a short body an error.
type exactBody struct{ io.LimitedReader }

func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.LimitedReader.Read(p)
	if err == io.EOF && b.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func (p *peer) send(s string) { _, _ = io.WriteString(p.Conn, s) }

// reset makes the close that follows a reset instead of an orderly end.
func (p *peer) reset() {
	if tc, ok := p.Conn.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
	_ = p.Conn.Close()
}

// awaitClose returns when the other side has closed, whatever it sent before.
func (p *peer) awaitClose() { _, _ = io.Copy(io.Discard, p.br) }

// closedButFor waits until at most n connections are open, and reports whether
// that came about.
func (u *upstream) closedButFor(n int) bool {
	return u.c.soon(fmt.Sprintf("at most %d connections open", n), func() bool { return u.openNow() <= n })
}
