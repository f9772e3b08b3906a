package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// A caller is downstream's end of one connection.
type caller struct {
	net.Conn
	c  *check
	br *bufio.Reader
}

// dial connects to a gateway.
func (c *check) dial(gw *gateway) *caller {
	c.mayBegin()
	nc, err := net.Dial("tcp", gw.addr)
	if err != nil {
		c.fatalf("dial the gateway: %v", err)
	}
	c.onEnd(&c.sockets, func() { _ = nc.Close() })
	d := &caller{Conn: nc, c: c, br: bufio.NewReader(nc)}
	d.bound()
	return d
}

// bound gives the next step of a case its time.
func (d *caller) bound() { _ = d.SetDeadline(time.Now().Add(d.c.patience)) }

func (d *caller) send(s string) {
	d.bound()
	if _, err := io.WriteString(d.Conn, s); err != nil {
		d.c.errorf("downstream writes: %v", err)
	}
}

// head reads the head of a response, and keeps the 1xx before it.
func (d *caller) head() *message {
	m, err := d.tryHead()
	if err != nil {
		d.c.fatalf("downstream reads a response: %v", err)
	}
	return m
}

func (d *caller) tryHead() (*message, error) {
	d.bound()
	var interim []*message
	for {
		m, err := readHead(d.br)
		if err != nil {
			return nil, err
		}
		if s := m.status(); s < 100 || s > 199 || s == 101 {
			m.Interim = interim
			return m, nil
		}
		interim = append(interim, m)
	}
}

// response reads the response to a request of that method, whole.
func (d *caller) response(method string) *message {
	m := d.head()
	d.body(m, method)
	return m
}

// body reads the body behind a head.
func (d *caller) body(m *message, method string) {
	d.bound()
	if s := m.status(); method == "HEAD" || s == 204 || s == 304 {
		return
	}
	m.readBody(d.br, true)
}

// ask sends a request and reads the response.
func (d *caller) ask(req string) *message {
	d.send(req)
	method, _, _ := strings.Cut(req, " ")
	return d.response(method)
}

// ask is ask on a connection of its own.
func (c *check) ask(gw *gateway, req string) *message {
	d := c.dial(gw)
	defer d.Close()
	return d.ask(req)
}

// cutOff wants the gateway to end the connection, without a word but perhaps one.
func (d *caller) cutOff(but string) {
	said, err := io.ReadAll(d.br)
	if len(said) > 0 && (but == "" || !strings.HasPrefix(string(said), but)) || isTimeout(err) {
		d.c.errorf("the gateway was to end the connection; it says %q, %v", said, err)
	}
}

// whole wants a response of that status and body, complete.
func (c *check) whole(m *message, status int, body string) {
	if m.status() != status || m.Body != body || m.Err != nil {
		c.errorf("downstream got %q, body %.200q (%d bytes), %v; want %d with %.200q (%d bytes)",
			m.Start, m.Body, len(m.Body), m.Err, status, body, len(body))
	}
}

// problem wants an answer of the gateway's own.
func (c *check) problem(m *message, status int, reason string) {
	if m.status() != status || m.Err != nil || m.Fields.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(m.Body, `"reason":"`+reason+`"`) {
		c.errorf("downstream got %q %q, %v; want the gateway's own %d for %s", m.Start, m.Body, m.Err, status, reason)
	}
}

// broken wants a response that visibly did not come whole, with nothing behind
// what upstream had sent.
func (c *check) broken(m *message, begun string) {
	if m.Err == nil {
		c.errorf("a response that upstream broke off looks whole: %q %q", m.Start, m.Body)
	}
	if !strings.HasPrefix(begun, m.Body) {
		c.errorf("body %q has more than the %q that upstream sent", m.Body, begun)
	}
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}
