package wire

import (
	"fmt"
	"strings"
)

// Where a request goes.
func targetCases() []testCase {
	return []testCase{
		{name: "raw-target", rule: "the target goes upstream byte for byte, and nobody redirects by itself",
			source: "PX03, S6, S7, N1, R14, F4, F5, TestReverseProxyQueryParameterSmuggling", run: rawTarget},
		{name: "bad-escape-target", rule: "a malformed percent escape in a path is for upstream to judge",
			source: "S6, R13", unless: []string{"bad-escape-target"}, run: badEscapeTarget},
		{name: "base-path", rule: "a base path is put before the target, with one slash between, and nothing is decoded",
			source: "TestSingleJoinSlash, TestJoinURLPath, TestReverseProxyQuery", run: basePath},
		{name: "no-ssrf", rule: "who is reached is decided by the configuration, whatever host the target or Host names",
			source: "S6, F6", run: noSSRF},
		{name: "options-asterisk", rule: "OPTIONS * goes upstream as such", source: "S6", run: optionsAsterisk},
		{name: "environment-proxy", rule: "a proxy that the environment names is not used", source: "N5", run: environmentProxy},
		{name: "own-paths", rule: "/-/ is the gateway's, answers without upstream and is not counted; what only resembles it is not",
			source: "hop policy: own paths", run: ownPathsReserved},
		{name: "ipv6", rule: "an upstream on ::1 is reached", source: "F26", run: ipv6},
	}
}

func rawTarget(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	d := c.dial(gw)
	for _, target := range []string{
		"/product/a%2Fb", "/product//7", "/product/x/../8", "/product/./9", "/product/p!q", "/product/%252e", "/a/%2e%2e/b",
		"/..", "/a?", "/a?x=1;y=2", "/a?x=%zz", "/a?x=%", "/a?q=a+b%20c&q=%26", "/a?a=1&a=1&;", "/a?b=c?d/../e", "/%E2%82%AC", "/a%3Fb%23",
		"/a;p=1/b;q", "//h/p", "//127.0.0.1:1/?x=://", "/?a=http://b/c", "/a%0d%0aX-Evil:%201", "/'()*,:@&=+$~_-.", "/?{}|^`\"<>",
		"/" + strings.Repeat("a/", 500),
	} {
		m := d.ask(get(target))
		if m.status() != 200 || m.Body != target {
			c.errorf("%.60q arrived as %.60q and was answered with %q", target, m.Body, m.Start)
			d = c.dial(gw)
		}
	}
}

func badEscapeTarget(c *check) {
	gw := c.gateway(c.echo(), `retry: {max_attempts: 3, retry_on: [connect, reset, "5xx"]}`)
	for _, target := range []string{"/a%zz", "/%", "/a%2"} {
		c.whole(c.ask(gw, get(target)), 200, target)
	}
}

func basePath(c *check) {
	up := c.echo()
	for base, want := range map[string]string{"": "", "/": "", "/base": "/base", "/base/": "/base", "/b%2Fc": "/b%2Fc"} {
		gw := c.gatewayTo("http://" + up.addr + base)
		for _, target := range []string{"/", "/x", "//x", "/x%2Fy?a=1;b&c=%zz", "/../x"} {
			c.whole(c.ask(gw, get(target)), 200, want+target)
		}
	}
}

func noSSRF(c *check) {
	up, elsewhere := c.echo(), c.echo()
	gw := c.gateway(up, "host: preserve")
	at := elsewhere.addr
	for target, want := range map[string]string{
		"http://" + at + "/x?y":         "/x?y",
		"HTTP://" + at + "?y":           "/?y",
		"https://" + at + "/":           "/",
		"//" + at + "/x":                "//" + at + "/x",
		"//" + at + "/?a=://":           "//" + at + "/?a=://",
		"/?://" + at + "/":              "/?://" + at + "/",
		"/@" + at + "/":                 "/@" + at + "/",
		"http://u:p@" + at + "/":        "",
		"ftp://" + at + "/":             "",
		at:                              "",
		"http:" + at + "/":              "",
		"@" + at + "/":                  "",
		`http://a\@` + at + "/":         "",
		"http://" + up.addr + "@" + at:  "",
		"http://" + at + "#@" + up.addr: "",
	} {
		m := c.ask(gw, get(target))
		if want == "" {
			equal(c, "status for "+target, m.status(), 400)
			continue
		}
		c.whole(m, 200, want)
	}
	c.ask(gw, "GET / HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
	d := c.dial(gw)
	d.send("CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n")
	if m, err := d.tryHead(); err == nil && m.status() < 400 {
		c.errorf("CONNECT is answered with %q", m.Start)
	}
	equal(c, "connections elsewhere", elsewhere.connections(), 0)
}

func optionsAsterisk(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	c.whole(c.ask(gw, request("OPTIONS", "*")), 200, "*")
	c.whole(c.ask(gw, request("OPTIONS", "http://front.example")), 200, "*")
	equal(c, "status for GET *", c.ask(gw, get("*")).status(), 400)
	equal(c, "requests that arrived", len(up.requests()), 2)
}

// An address that is none of loopback's, so that the environment's proxy would be
// asked, and yet leads here: the unspecified one.
func environmentProxy(c *check) {
	up := c.echo()
	gw := c.gatewayTo("http://0.0.0.0:" + port(up.addr))
	c.whole(c.ask(gw, get("/x")), 200, "/x")
	equal(c, "connections to the proxy that the environment names", canary.hits.Load(), 0)
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func ownPathsReserved(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for target, status := range map[string]int{
		"/-/healthz": 200, "/-/metrics": 200, "/-/about": 200, "/-/": 404, "/-/x": 404, "/-/../x": 404, "/-/healthz/": 404,
		"http://front.example/-/healthz": 200,
	} {
		equal(c, target, c.ask(gw, get(target)).status(), status)
	}
	equal(c, "requests that arrived", len(up.requests()), 0)
	for _, target := range []string{"/-", "/%2D/healthz", "//-/healthz", "/a/../-/healthz", "/?/-/healthz"} {
		c.whole(c.ask(gw, get(target)), 200, target)
	}
	gw.counted(`gatebench_gateway_requests_total{code="200",reason=""}`, 5)
	equal(c, "counted 404", gw.metric(`gatebench_gateway_requests_total{code="404",reason=""}`), 0)
}

func ipv6(c *check) {
	up := c.serveOn("[::1]:0", func(p *peer) {
		if m, err := p.request(); err == nil {
			p.send(ok(m.target(), "Connection: close"))
		}
	})
	c.whole(c.ask(c.gateway(up), get("/x")), 200, "/x")
	equal(c, "Host", up.last().Fields.Get("Host"), fmt.Sprint(up.addr))
}
