package wire

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Another protocol over the same connection.
func upgradeCases() []testCase {
	cannot := []string{"upgrade"}
	return []testCase{
		{name: "upgrade", rule: "a WebSocket gets its tunnel, both ways, with what was sent ahead, and keeps it past every timeout of a request",
			source: "PX12, S18, N10, TestReverseProxyWebSocket, golang/go#31391", unless: cannot, run: webSocket},
		{name: "upgrade-or-501", rule: "who cannot have one is told so at once, upstream is not asked, and the breaker hears nothing of it",
			source: "PX12, F1", run: tunnelOrRefusal},
		{name: "upgrade-half-close", rule: "the end of one way is passed on, and the other way goes on",
			source: "S18, TestReverseProxyWebSocketHalfTCP", unless: cannot, run: tunnelHalfCloses},
		{name: "upgrade-ends", rule: "an end that goes away takes the other with it",
			source: "TestReverseProxyWebSocketCancellation, TestReverseProxyUpgradeNoCloseWrite", unless: cannot, run: tunnelEnds},
		{name: "upgrade-no-second-answer", rule: "after 101 the gateway says nothing of its own",
			source: "TestReverseProxyHijackCopyError", unless: cannot, run: noSecondAnswer},
		{name: "upgrade-same-token", rule: "101 for another protocol than was asked for is 502",
			source: "S18, RFC 9110 section 7.8", unless: cannot, run: otherProtocol},
		{name: "upgrade-unasked", rule: "101 that nobody asked for is 502, and its connection serves nobody else",
			source: "F1, valyala/fasthttp#266", run: unaskedUpgrade},
		{name: "upgrade-h2c", rule: "h2c goes past the gateway's rules: it is not asked for, and the request answered in HTTP/1.1",
			source: "PX12, RFC 9113 section 3.1", run: noH2C},
		{name: "upgrade-holds-its-place", rule: "a tunnel holds its place in the pool until it ends",
			source: "PX12", unless: cannot, run: tunnelHoldsItsPlace},
	}
}

const (
	switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	// brisk are timeouts that a tunnel outlives.
	brisk = "timeouts: {request: 1500ms, response_header: 1500ms, body_idle: 1500ms}"
)

func handshake(protocol string) string {
	return get("/chat", "Connection: keep-alive, Upgrade", "Upgrade: "+protocol,
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
}

// tunnel opens one, and returns both of its ends.
func (c *check) tunnel(gw *gateway, up *upstream) (*caller, *peer) {
	d := c.dial(gw)
	d.send(handshake("websocket"))
	far := make(chan *peer, 1)
	c.running.Go(func() {
		select {
		case p := <-up.waiting:
			_ = p.SetDeadline(time.Now().Add(c.patience))
			if _, err := p.request(); err == nil {
				p.send(switching)
			}
			far <- p
		case <-c.over:
		}
	})
	if m := d.head(); m.status() != 101 {
		c.fatalf("downstream got %q", m.Start)
	}
	return d, <-far
}

// flows sends s from one end and wants it at the other.
func (c *check) flows(from io.Writer, to io.Reader, s string) {
	if _, err := io.WriteString(from, s); err != nil {
		c.errorf("write %q: %v", s, err)
	}
	got := make([]byte, len(s))
	if n, err := io.ReadFull(to, got); string(got) != s {
		c.errorf("got %q, %v, want %q", got[:n], err, s)
	}
}

func webSocket(c *check) {
	up := c.listen()
	gw := c.gateway(up, brisk)
	d := c.dial(gw)
	d.send(handshake("websocket") + "ahead")
	c.running.Go(func() {
		select {
		case p := <-up.waiting:
			m, err := p.request()
			if err != nil {
				c.errorf("upstream reads the handshake: %v", err)
				return
			}
			if fmt.Sprint(m.all("Connection"), m.all("Upgrade"), m.all("Sec-WebSocket-Key")) != "[Upgrade] [websocket] [dGhlIHNhbXBsZSBub25jZQ==]" {
				c.errorf("upstream is asked %v", m.Fields)
			}
			p.send(switching + "hello")
			_, _ = io.Copy(p, p.br) // echo
			p.end()
		case <-c.over:
		}
	})
	m := d.head()
	if m.status() != 101 || fmt.Sprint(m.all("Connection"), m.all("Upgrade"), m.all("Sec-WebSocket-Accept")) !=
		"[Upgrade] [websocket] [s3pPLMBiTxaQ9kYGzzhZRbK+xOo=]" || m.Fields.Has("Content-Length") || m.Fields.Has("Transfer-Encoding") {
		c.fatalf("downstream got %q %v", m.Start, m.Fields)
	}
	both := make([]byte, len("helloahead"))
	if _, err := io.ReadFull(d.br, both); err != nil || string(both) != "helloahead" {
		c.errorf("what was sent ahead came as %q, %v", both, err)
	}
	for end := time.Now().Add(roomy * 5 / 4); time.Now().Before(end); time.Sleep(roomy / 10) {
		c.flows(d, d.br, "tick") // for longer than any timeout
	}
	time.Sleep(roomy * 5 / 4) // and silence, in which nothing may happen
	c.flows(d, d.br, "still there")
	_ = d.Close()
	gw.counted(`gatebench_gateway_requests_total{code="101",reason=""}`, 1)
	gw.counted(inFlight, 0)
}

func tunnelOrRefusal(c *check) {
	up := c.answer(func(*message) string { return switching })
	gw := c.gateway(up, "circuit_breaker: {minimum_calls: 2, failure_rate: 10%}")
	for range 4 {
		d := c.dial(gw)
		d.send(handshake("websocket"))
		m := d.head()
		if m.status() == 101 {
			_ = d.Close()
			continue
		}
		d.body(m, "GET")
		c.problem(m, 501, "unsupported")
		if n := up.connections(); n != 0 {
			c.errorf("%d connections went upstream", n)
		}
	}
	gw.breaker("closed")
}

func tunnelHalfCloses(c *check) {
	for _, downstreamFirst := range []bool{true, false} {
		up := c.listen()
		d, p := c.tunnel(c.gateway(up), up)
		var first, second net.Conn = d.Conn, p.Conn
		var atFirst, atSecond io.Reader = d.br, p.br
		if !downstreamFirst {
			first, second, atFirst, atSecond = second, first, atSecond, atFirst
		}
		c.flows(first, atSecond, "last words")
		_ = first.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(atSecond); len(rest) > 0 || err != nil {
			c.errorf("the end of the first way came as %q, %v", rest, err)
		}
		// Past the server's look for callers who hung up.
		time.Sleep(2 * short)
		c.flows(second, atFirst, strings.Repeat("an answer all the same ", 5000))
		_ = second.Close()
		if rest, err := io.ReadAll(atFirst); len(rest) > 0 || err != nil {
			c.errorf("the end of the second way came as %q, %v", rest, err)
		}
	}
}

func tunnelEnds(c *check) {
	up := c.listen()
	gw := c.gateway(up)
	d, p := c.tunnel(gw, up)
	_ = d.Close()
	if !p.gone() {
		c.errorf("upstream does not learn that the caller has gone")
	}
	p.end()
	d, p = c.tunnel(gw, up)
	p.end()
	if rest, err := io.ReadAll(d.br); len(rest) > 0 || isTimeout(err) {
		c.errorf("the caller gets %q, %v and does not learn that upstream has gone", rest, err)
	}
	_ = d.Close()
	gw.counted(inFlight, 0)
}

func noSecondAnswer(c *check) {
	up := c.listen()
	gw := c.gateway(up)
	d, p := c.tunnel(gw, up)
	c.flows(p, d.br, "some of it")
	p.reset()
	if rest, err := io.ReadAll(d.br); len(rest) > 0 || isTimeout(err) {
		c.errorf("downstream got %q, %v after upstream's reset", rest, err)
	}
	gw.counted(`gatebench_gateway_requests_total{code="101",reason=""}`, 1)
}

func otherProtocol(c *check) {
	up := c.always(strings.Replace(switching, "websocket", "chat", 1))
	gw := c.gateway(up)
	c.problem(c.ask(gw, handshake("websocket")), 502, "protocol")
	gw.counted(inFlight, 0)
}

func unaskedUpgrade(c *check) {
	up := c.answer(func(m *message) string {
		if m.target() == "/odd" {
			return switching
		}
		return ok(m.target())
	})
	gw := c.gateway(up)
	c.problem(c.ask(gw, get("/odd")), 502, "protocol")
	c.whole(c.ask(gw, get("/even")), 200, "/even")
	equal(c, "connections upstream", up.connections(), 2)
}

func noH2C(c *check) {
	up := c.answer(func(m *message) string {
		if m.Fields.Has("Upgrade") {
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
		}
		return ok("in the clear")
	})
	gw := c.gateway(up)
	d := c.dial(gw)
	d.send(get("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"))
	c.whole(d.response("GET"), 200, "in the clear")
	if m := up.last(); m.Fields.Has("Upgrade") || m.Fields.Has("HTTP2-Settings") || m.Fields.Has("Connection") {
		c.errorf("upstream got %v", m.Fields)
	}
	c.whole(d.ask(get("/")), 200, "in the clear") // the connection goes on
}

func tunnelHoldsItsPlace(c *check) {
	up := c.listen()
	gw := c.gateway(up, "pool: {max_conns: 1, max_pending: 1, pending_timeout: 50ms}")
	d, p := c.tunnel(gw, up)
	c.problem(c.ask(gw, get("/")), 503, "pool_exhausted")
	_ = d.Close()
	p.drain()
	p.end()
	gw.counted(inFlight, 0)
	next, _ := c.tunnel(gw, up)
	_ = next.Close()
}
