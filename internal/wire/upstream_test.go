package wire

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// An upstream is a listener that hands out bytes and remembers what it heard.
type upstream struct {
	c    *check
	addr string
	ln   net.Listener

	waiting chan *peer    // connections for next
	done    chan struct{} // closes with the case

	mu       sync.Mutex
	accepted int
	open     map[net.Conn]bool
	heard    []*message
}

// listen starts an upstream whose connections the case takes by itself, with next.
func (c *check) listen() *upstream { return c.serve(nil) }

// serve starts an upstream that plays script on every connection, then closes it.
func (c *check) serve(script func(*peer)) *upstream { return c.serveOn("127.0.0.1:0", script) }

func (c *check) serveOn(addr string, script func(*peer)) *upstream {
	c.mayBegin()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		c.fatalf("listen: %v", err)
	}
	u := &upstream{c: c, addr: ln.Addr().String(), ln: ln, waiting: make(chan *peer, 64), done: make(chan struct{}), open: map[net.Conn]bool{}}
	c.running.Go(func() { u.accept(script) })
	c.onEnd(&c.sockets, u.close)
	return u
}

// answer starts an upstream that answers every request, read whole, with what f
// makes of it; an answer that says Connection: close ends the connection.
func (c *check) answer(f func(*message) string) *upstream {
	return c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			a := f(m)
			if m.method() == "HEAD" {
				head, _, _ := strings.Cut(a, "\r\n\r\n")
				a = head + "\r\n\r\n"
			}
			p.send(a)
			if strings.Contains(a, "Connection: close\r\n") {
				return
			}
		}
	})
}

// echo answers with the target.
func (c *check) echo() *upstream {
	return c.answer(func(m *message) string { return ok(m.target()) })
}

// always is an upstream with one answer.
func (c *check) always(answer string) *upstream {
	return c.answer(func(*message) string { return answer })
}

// nobody is an address at which connections are refused. It is the near end of a
// connection, so that it stays taken: the address of a closed listener may be the
// next listener's, of another case.
func (c *check) nobody() *upstream {
	far := c.listen()
	near, err := net.Dial("tcp", far.addr)
	if err != nil {
		c.fatalf("dial: %v", err)
	}
	c.onEnd(&c.sockets, func() { _ = near.Close() })
	return &upstream{c: c, addr: near.LocalAddr().String()}
}

func (u *upstream) accept(script func(*peer)) {
	for {
		conn, err := u.ln.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.accepted++
		u.open[conn] = true
		p := &peer{Conn: conn, br: bufio.NewReader(conn), u: u, n: u.accepted}
		u.mu.Unlock()
		if script == nil {
			u.waiting <- p
			continue
		}
		u.c.running.Go(func() {
			defer p.end()
			script(p)
		})
	}
}

// next waits for the next connection.
func (u *upstream) next() *peer {
	select {
	case p := <-u.waiting:
		_ = p.SetDeadline(time.Now().Add(u.c.patience))
		return p
	case <-time.After(u.c.patience):
		u.c.fatalf("no connection reached upstream")
		return nil
	}
}

func (u *upstream) close() {
	_ = u.ln.Close()
	close(u.done)
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.open {
		_ = conn.Close()
	}
}

func (u *upstream) connections() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accepted
}

// requests are those whose head was read so far, as far as they were read.
func (u *upstream) requests() []*message {
	u.mu.Lock()
	defer u.mu.Unlock()
	ms := slices.Clone(u.heard)
	for i, m := range ms {
		so := *m
		ms[i] = &so
	}
	return ms
}

// idle waits until no connection is being read any more.
func (u *upstream) idle() {
	u.c.eventually("upstream's connections have ended", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return len(u.open) == 0
	})
}

// to counts the requests to one target.
func (u *upstream) to(target string) (n int) {
	for _, m := range u.requests() {
		if m.target() == target {
			n++
		}
	}
	return n
}

func (u *upstream) last() *message {
	ms := u.requests()
	if len(ms) == 0 {
		u.c.fatalf("upstream heard nothing")
	}
	return ms[len(ms)-1]
}

// A peer is upstream's end of one connection.
type peer struct {
	net.Conn
	br *bufio.Reader
	u  *upstream
	n  int
}

// head reads a request's head.
func (p *peer) head() (*message, error) {
	m, err := readHead(p.br)
	if err != nil {
		return nil, err
	}
	m.Conn = p.n
	p.u.mu.Lock()
	p.u.heard = append(p.u.heard, m)
	p.u.mu.Unlock()
	return m, nil
}

// request reads a request whole.
func (p *peer) request() (*message, error) {
	m, err := p.head()
	if err != nil {
		return nil, err
	}
	body := &message{Fields: m.Fields}
	body.readBody(p.br, false)
	p.u.mu.Lock()
	defer p.u.mu.Unlock()
	m.Body, m.Trailers, m.Err, m.Whole = body.Body, body.Trailers, body.Err, body.Err == nil
	return m, m.Err
}

// mustRequest is request where a request has to come.
func (p *peer) mustRequest() *message {
	m, err := p.request()
	if err != nil {
		p.u.c.fatalf("upstream reads a request: %v", err)
	}
	return m
}

func (p *peer) mustHead() *message {
	m, err := p.head()
	if err != nil {
		p.u.c.fatalf("upstream reads a head: %v", err)
	}
	return m
}

func (p *peer) send(s string) { _, _ = io.WriteString(p.Conn, s) }

// reset ends the connection with a reset rather than in order.
func (p *peer) reset() {
	_ = p.Conn.(*net.TCPConn).SetLinger(0)
	p.end()
}

func (p *peer) end() {
	_ = p.Close()
	p.u.mu.Lock()
	defer p.u.mu.Unlock()
	delete(p.u.open, p.Conn)
}

// drain reads until the other side ends the connection.
func (p *peer) drain() { _, _ = io.Copy(io.Discard, p.br) }

// gone reports whether the other side ends the connection before the case's
// patience does.
func (p *peer) gone() bool {
	_ = p.SetReadDeadline(time.Now().Add(p.u.c.patience))
	_, err := io.Copy(io.Discard, p.br)
	return !isTimeout(err)
}
