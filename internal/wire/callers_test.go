package wire

import (
	"io"
	"net"
	"strings"

	"gatebench/clients"
	"gatebench/clients/registry"
	gw "gatebench/gateway"
	"gatebench/internal/conf"
	"gatebench/server"
)

// Callers who go away, stall or trickle.
func callerCases() []testCase {
	return []testCase{
		{name: "abort-before-head", rule: "a caller who hangs up ends the request upstream, before the head and after an upload",
			source: "TestReverseProxyCancellation, S12, F11, N8", unless: []string{"cancel-before-head"}, run: abortBeforeHead},
		{name: "abort-in-body", rule: "so does one who hangs up within the response, though upstream is silent", source: "TestReverseProxyCancellation, F11, S12", run: abortInBody},
		{name: "abort-in-upload", rule: "so does one who hangs up within an upload, and upstream never sees it whole", source: "S12, F11", run: abortInUpload},
		{name: "stalled-upload", rule: "who stalls in an upload gets 504 after timeouts.body_idle, and upstream's connection is let go", source: "F13, SE04", run: stalledUpload},
		{name: "stalled-reader", rule: "who does not read a response is given up after timeouts.body_idle, and upstream's connection with it", source: "SE04, S14", run: stalledReader},
		{name: "slow-callers", rule: "slow heads are cut off; meanwhile others are served, and honest slow uploads and streams survive", source: "SE04, S14", run: slowCallers},
		{name: "header-limit", rule: "a request head beyond limits.header is 431, and not upstream's matter", source: "S15", run: headerLimit},
	}
}

// deviates reports whether one of the pair's libraries declares the deviation.
func (c *check) deviates(name string) bool {
	return c.deviation(testCase{unless: []string{name}}) != ""
}

func abortBeforeHead(c *check) {
	for _, req := range []string{get("/"), post("/", "hello"), request("PUT", "/", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n"} {
		up := c.listen()
		gw := c.gateway(up)
		d := c.dial(gw)
		d.send(req)
		p := up.next()
		p.mustRequest()
		_ = d.Close()
		if !p.gone() {
			c.errorf("%q: upstream is not told that nobody waits any more", req)
		}
		gw.counted(`gatebench_gateway_requests_total{code="0",reason="canceled"}`, 1)
		p.end()
	}
}

func abortInBody(c *check) {
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + piece, chunkedHead + "\r\n5\r\nhello\r\n"} {
		up := c.listen()
		gw := c.gateway(up)
		d := c.dial(gw)
		d.send(get("/"))
		p := up.next()
		p.mustRequest()
		p.send(answer)
		d.head()
		_ = d.Close()
		if !p.gone() {
			c.errorf("%.60q: upstream is not told that nobody waits any more", answer)
		}
		gw.counted(`gatebench_gateway_requests_total{code="200",reason="canceled"}`, 1)
	}
}

func abortInUpload(c *check) {
	for _, begun := range []string{
		request("POST", "/", "Content-Length: 1000000") + piece,
		request("POST", "/", "Transfer-Encoding: chunked") + chunk(piece),
	} {
		up := c.listen()
		gw := c.gateway(up, "circuit_breaker: {minimum_calls: 1}")
		d := c.dial(gw)
		d.send(begun)
		p := up.next()
		m := p.mustHead()
		if _, err := p.br.ReadByte(); err != nil {
			c.errorf("the upload does not begin: %v", err)
		}
		_ = p.br.UnreadByte()
		_ = d.Close()
		m.readBody(p.br, false)
		if m.Err == nil || isTimeout(m.Err) {
			c.errorf("%.40q: upstream got %d bytes, %v", begun, len(m.Body), m.Err)
		}
		gw.counted(`gatebench_gateway_requests_total{code="0",reason="canceled"}`, 1)
		gw.breaker("closed")
	}
}

func stalledUpload(c *check) {
	for _, begun := range []string{
		request("POST", "/", "Content-Length: 1000000") + piece,
		request("POST", "/", "Content-Length: 10") + "half",
		request("POST", "/", "Transfer-Encoding: chunked") + chunk(piece),
	} {
		up := c.serve(func(p *peer) { _, _ = p.request() })
		gw := c.gateway(up, "timeouts: {body_idle: "+roomy.String()+"}", "circuit_breaker: {minimum_calls: 1}")
		m := c.ask(gw, begun)
		c.problem(m, 504, "timeout_body")
		gw.counted("gatebench_gateway_upstream_connections_open", 0)
		gw.breaker("closed")
		up.idle()
		for _, m := range up.requests() {
			if m.Whole {
				c.errorf("%.40q: upstream got a whole request", begun)
			}
		}
	}
}

func stalledReader(c *check) {
	const size = 16 << 20 // more than the sockets hold
	up := c.serve(func(p *peer) {
		if _, err := p.request(); err != nil {
			return
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n")
		for sent := 0; sent < size; sent += len(piece) {
			if _, err := io.WriteString(p.Conn, piece); err != nil {
				return
			}
		}
		p.drain()
	})
	gw := c.gateway(up, "timeouts: {body_idle: "+short.String()+"}")
	d := c.dial(gw)
	d.send(get("/"))
	d.head()
	gw.counted(`gatebench_gateway_requests_total{code="200",reason="canceled"}`, 1)
	gw.counted("gatebench_gateway_upstream_connections_open", 0)
}

// slowCallers puts the gateway together itself, since the bound on slow heads has
// no key.
func slowCallers(c *check) {
	up := c.answer(func(m *message) string { return ok(m.target() + m.Body) })
	cfg := gw.DefaultConfig()
	cfg.Upstream, cfg.Server, cfg.Client = "http://"+up.addr, c.server, c.client
	const headTime, pieces = 8 * short, 10
	g := c.assemble(cfg, func(sc *server.Config) { sc.ReadHeaderTimeout = headTime })

	var slow []*caller
	for i := range 20 {
		d := c.dial(g)
		head := "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: "
		if i%4 == 0 {
			head = "" // says nothing at all
		}
		d.send(head)
		c.running.Go(func() {
			for { // a byte now and then does not help
				pause(c.over, short/5)
				if _, err := io.WriteString(d.Conn, "x"); err != nil {
					return
				}
			}
		})
		slow = append(slow, d)
	}
	honest := c.dial(g)
	honest.send(request("POST", "/upload/", "Content-Length: 10"))
	for i := range pieces {
		c.whole(c.ask(g, get("/quick")), 200, "/quick")
		pause(c.over, headTime/(pieces-2)) // longer in all than a head may take
		honest.send(string(rune('0' + i)))
	}
	c.whole(honest.response("POST"), 200, "/upload/0123456789")
	for _, d := range slow {
		d.cutOff("HTTP/1.1 400") // net/http takes half a request line for a whole one, and a bad one
	}
	equal(c, "requests that arrived", up.to("/"), 0)
}

// assemble puts a gateway together as the command does, but lets the test set what
// has no key.
func (c *check) assemble(cfg gw.Config, set func(*server.Config)) *gateway {
	entry, _ := registry.Lookup(cfg.Client)
	dialer := &clients.Dialer{Timeout: cfg.Timeouts.Connect}
	client, err := entry.New(cfg.Settings(dialer))
	if err != nil {
		c.fatalf("client: %v", err)
	}
	g, err := gw.New(cfg, gw.Parts{Client: client, Dialer: dialer})
	if err != nil {
		c.fatalf("gateway: %v", err)
	}
	sc := g.ServerConfig()
	set(&sc)
	srv, err := server.New(sc, g)
	if err != nil {
		c.fatalf("server: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.fatalf("listen: %v", err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	c.onEnd(&c.gateways, func() {
		for _, err := range []error{srv.Close(), g.Close(), <-served} {
			if err != nil {
				c.errorf("the gateway ends: %v", err)
			}
		}
	})
	return &gateway{c: c, addr: ln.Addr().String(), log: new(lockedBuffer)}
}

func headerLimit(c *check) {
	up := c.echo()
	g := c.gateway(up, "limits: {header: 8KiB}")
	c.whole(c.ask(g, get("/", "X-A: "+strings.Repeat("a", int(7*conf.KiB)))), 200, "/")
	for _, size := range []conf.Size{9 * conf.KiB, 64 * conf.KiB} {
		m := c.ask(g, get("/", "X-A: "+strings.Repeat("a", int(size))))
		equal(c, "status", m.status(), 431)
	}
	many := strings.Repeat("X-A: a\r\n", 2000)
	equal(c, "status", c.ask(g, get("/", strings.TrimSuffix(many, "\r\n"))).status(), 431)
	equal(c, "requests that arrived", len(up.requests()), 1)
}
