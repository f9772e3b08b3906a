package wire

import (
	"strings"
	"time"
)

// What mode typed makes of the product endpoints' answers.
func typedCases() []testCase {
	return []testCase{
		{name: "typed-product", rule: "the product endpoints' answers are decoded and encoded again: what a product does not have is gone, and so are the fields about the old content; one connection serves them all", source: "a typed client's contract", run: typedProduct},
		{name: "typed-elsewhere", rule: "other paths, methods and statuses are passed on byte for byte", source: "a typed client's contract", run: typedElsewhere},
		{name: "typed-protocol", rule: "what is not whole JSON of a product is 502 protocol, and a failure for the breaker", source: "a typed client's contract", run: typedProtocol},
		{name: "typed-limits", rule: "the limits on size and silence of bodies hold while an answer is decoded, and the place in the pool comes back", source: "a typed client's contract", run: typedLimits},
	}
}

const (
	wordy   = ` {"price": 56.670, "id":"1", "padding":"xx", "name":"TA"} ` + "\n"
	product = `{"name":"TA","id":"1","price":56.67}`
)

func typedProduct(c *check) {
	up := c.answer(func(m *message) string {
		switch m.target() {
		case "/base/products":
			return ok("["+wordy+","+wordy+"]", "Content-Type: text/plain")
		case "/base/product/chunked":
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(wordy[:9]) + chunk(wordy[9:]) + "0\r\n\r\n"
		}
		return ok(wordy, "Content-Type: application/json", `ETag: "old"`, "X-appId: android01")
	})
	gw := c.gatewayTo("http://"+up.addr+"/base", "mode: typed")
	for target, want := range map[string]string{
		"/product": product, "/product?type=T": product, "/product/7": product, "/product/chunked": product,
		"/products": "[" + product + "," + product + "]",
	} {
		m := c.ask(gw, get(target, "Accept-Encoding: gzip"))
		equal(c, target+": status", m.status(), 200)
		equal(c, target+": body", m.Body, want)
		equal(c, target+": Content-Type", strings.Join(m.all("Content-Type"), "|"), "application/json")
		equal(c, target+": ETag", len(m.all("ETag")), 0)
		equal(c, target+": Accept-Encoding upstream", len(up.last().all("Accept-Encoding")), 0)
	}
	for _, target := range []string{"/postProduct", "/postProduct2"} {
		m := c.ask(gw, post(target, "name=TA"))
		equal(c, target+": body", m.Body, product)
		equal(c, target+": what came upstream", up.last().Body, "name=TA")
		equal(c, target+": end-to-end field", strings.Join(m.all("X-appId"), "|"), "android01")
	}
	equal(c, "connections", up.connections(), 1)
}

func typedElsewhere(c *check) {
	up := c.answer(func(m *message) string {
		switch m.target() {
		case "/product/404":
			return reply("404 Not Found", wordy)
		case "/product/201":
			return reply("201 Created", wordy)
		}
		return ok(wordy, `ETag: "old"`)
	})
	gw := c.gateway(up, "mode: typed")
	for _, target := range []string{"/product/404", "/product/201", "/", "/bookTickets", "/product/", "/product/1/2", "/products/1"} {
		equal(c, target, c.ask(gw, get(target)).Body, wordy)
	}
	equal(c, "PUT", c.ask(gw, request("PUT", "/product", "Content-Length: 0")).Body, wordy)
}

func typedProtocol(c *check) {
	answers := map[string]string{
		"empty": ok(""), "text": ok("hello"), "partial": ok(wordy[:20]), "null": ok("null"), "list": ok("[" + wordy + "]"),
		"type": ok(`{"price":"dear"}`), "two": ok(wordy + wordy), "after": ok(wordy + "x"),
		"short": strings.Replace(ok(wordy), "Content-Length: ", "Content-Length: 9", 1),
	}
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			name := strings.TrimPrefix(m.target(), "/product/")
			p.send(answers[name])
			if name == "short" {
				return
			}
		}
	})
	gw := c.gateway(up, "mode: typed", "circuit_breaker: {enabled: false}")
	for name := range answers {
		m := c.ask(gw, get("/product/"+name))
		equal(c, name+": status", m.status(), 502)
		if !strings.Contains(m.Body, `"reason":"protocol"`) {
			c.errorf("%s: %q, want the reason protocol", name, m.Body)
		}
	}
	guarded := c.gateway(up, "mode: typed", "circuit_breaker: {minimum_calls: 2, open_for: 1m}")
	c.ask(guarded, get("/product/text"))
	c.ask(guarded, get("/product/text"))
	guarded.breaker("open")
}

func typedLimits(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			switch m.target() {
			case "/product/silent":
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
				p.drain()
				return
			case "/product/large":
				p.send(ok(`{"padding":"` + strings.Repeat("x", 4096) + `"}`))
			default:
				p.send(ok(wordy))
			}
		}
	})
	gw := c.gateway(up, "mode: typed", "pool: {max_conns: 1, max_pending: 0}",
		"timeouts: {body_idle: "+short.String()+"}", "limits: {response_body: 1KiB}")
	for target, want := range map[string]string{"/product/large": "response_too_large", "/product/silent": "timeout_body"} {
		if m := c.ask(gw, get(target)); !strings.Contains(m.Body, `"reason":"`+want+`"`) {
			c.errorf("%s: %q, want the reason %s", target, m.Body, want)
		}
		c.eventually("the place is free again after "+target, func() bool {
			time.Sleep(time.Millisecond)
			return c.ask(gw, get("/product")).Body == product
		})
	}
}
