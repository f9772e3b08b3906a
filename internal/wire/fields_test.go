package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Fields on their way upstream.
func fieldCases() []testCase {
	return []testCase{
		{name: "hop-by-hop", rule: "what is meant for this hop ends here, both ways, but for TE: trailers",
			source: "TestReverseProxy, S1, F21, RFC 9110 section 7.6.1", run: hopByHop},
		{name: "named-in-connection", rule: "so does every field that a Connection line names, whichever line, both ways",
			source: "TestReverseProxyStripHeadersPresentInConnection, S1", run: namedInConnection},
		{name: "empty-connection", rule: "an empty Connection line names nothing and stops nothing",
			source: "TestReverseProxyStripEmptyConnection, golang/go#46313", run: emptyConnection},
		{name: "own-fields-not-named-away", rule: "a caller cannot have the gateway's own fields dropped by naming them in Connection",
			source: "S2", run: ownFieldsNotNamedAway},
		{name: "forwarded-append", rule: "X-Forwarded-For grows by the caller's address and is one line; -Host and -Proto are the gateway's",
			source: "TestXForwardedFor, S3", run: forwardedAppend},
		{name: "forwarded-strip", rule: "forwarded: strip believes nothing of what the caller says about itself",
			source: "TestReverseProxyRewriteStripsForwarded, S3", run: forwardedStrip},
		{name: "via", rule: "Via grows by this hop both ways, and who comes back is 508",
			source: "S4, RFC 9110 section 7.6.3", run: viaAndLoop},
		{name: "host-upstream", rule: "host: upstream gives upstream its own name", source: "TestSetURL, S5, R20, F17", run: hostUpstream},
		{name: "host-preserve", rule: "host: preserve passes the caller's, in its case and with its port",
			source: "TestReverseProxy, S5, R20, F17", run: hostPreserve},
		{name: "user-agent", rule: "User-Agent passes; none stays none", source: "TestUserAgentHeader, N14, R3, F16, PX09", run: userAgent},
		{name: "no-inventions", rule: "upstream sees the caller's fields, the forwarding fields and the framing, nothing else",
			source: "PX09, N2, N11, N14, N16, R3, R4, R5, F14, F15, F16, traefik/traefik#12339", run: noInventions},
		{name: "bodyless-delete", rule: "the same for DELETE and OPTIONS without a body: no framing either",
			source: "PX09, F34", unless: []string{"bodyless-delete"}, run: bodylessDelete},
		{name: "fields-unchanged", rule: "end-to-end fields keep their values, and lines of one name their order",
			source: "S22, S23, N16", run: fieldsUnchanged},
		{name: "cookie-bytes", rule: "Cookie reaches upstream once, byte for byte", source: "PX06, F18", run: cookieBytes},
		{name: "no-request-splitting", rule: "a control character in a request never makes a line of its own upstream",
			source: "SE02, valyala/fasthttp#875", run: noRequestSplitting},
	}
}

func hopByHop(c *check) {
	up := c.always(ok("-", "X-End: 1", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
		"Proxy-Authenticate: Basic", "Upgrade: other", "Te: gzip", "Set-Cookie: a=1", "Set-Cookie: b=2"))
	gw := c.gateway(up)
	m := c.ask(gw, get("/", "X-End: 1", "Keep-Alive: 300", "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eA==",
		"Te: gzip;q=1, trailers", "Trailer: X-Sum"))
	c.whole(m, 200, "-")
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Upgrade", "Trailer", "Connection"} {
		if v := up.last().all(name); v != nil {
			c.errorf("upstream got %s %q", name, v)
		}
		if v := m.all(name); v != nil && name != "Connection" { // the gateway's own
			c.errorf("downstream got %s %q", name, v)
		}
	}
	equal(c, "upstream got TE", fmt.Sprint(up.last().all("TE")), "[trailers]")
	equal(c, "downstream got TE", fmt.Sprint(m.all("TE")), "[]")
	equal(c, "upstream got X-End", fmt.Sprint(up.last().all("X-End")), "[1]")
	equal(c, "downstream got Set-Cookie", fmt.Sprint(m.all("Set-Cookie")), "[a=1 b=2]")
}

func namedInConnection(c *check) {
	up := c.always(ok("-", "Connection: x-one, X-Two", "Connection: X-Three", "X-One: 1", "X-Two: 2", "x-three: 3", "X-Four: 4"))
	gw := c.gateway(up)
	m := c.ask(gw, get("/", "Connection: x-one, X-Two", "Connection: X-Three", "X-One: 1", "X-Two: 2", "x-three: 3", "X-Four: 4"))
	for _, name := range []string{"X-One", "X-Two", "X-Three"} {
		if up.last().Fields.Has(name) || m.Fields.Has(name) {
			c.errorf("%s went through", name)
		}
	}
	if !up.last().Fields.Has("X-Four") || !m.Fields.Has("X-Four") {
		c.errorf("X-Four did not go through")
	}
}

func emptyConnection(c *check) {
	up := c.always(ok("-", "Connection: ", "Connection: ,", "X-A: 1"))
	gw := c.gateway(up)
	m := c.ask(gw, get("/", "Connection: ", "Connection: , ,", "X-A: 1"))
	c.whole(m, 200, "-")
	if up.last().Fields.Has("Connection") || !up.last().Fields.Has("X-A") || !m.Fields.Has("X-A") {
		c.errorf("upstream got %v, downstream %v", up.last().Fields, m.Fields)
	}
}

func ownFieldsNotNamedAway(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	c.ask(gw, get("/", "Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Via, Host"))
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via", "Host"} {
		if n := len(up.last().all(name)); n != 1 {
			c.errorf("upstream got %d %s", n, name)
		}
	}
}

func forwardedAppend(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	c.ask(gw, get("/", "X-Forwarded-For: 203.0.113.1, 203.0.113.2", "X-Forwarded-Host: evil.example",
		"x-forwarded-for: 203.0.113.3", "X-Forwarded-Proto: https", "Forwarded: for=203.0.113.9"))
	for name, want := range map[string]string{
		"X-Forwarded-For":   "[203.0.113.1, 203.0.113.2, 203.0.113.3, 127.0.0.1]",
		"X-Forwarded-Host":  "[front.example]",
		"X-Forwarded-Proto": "[http]",
		"Forwarded":         "[for=203.0.113.9]",
	} {
		equal(c, name, fmt.Sprint(up.last().all(name)), want)
	}
}

func forwardedStrip(c *check) {
	up := c.echo()
	gw := c.gateway(up, "forwarded: strip")
	c.ask(gw, get("/", "X-Forwarded-For: 203.0.113.1", "X-Forwarded-Host: evil.example",
		"X-Forwarded-Proto: https", "Forwarded: for=203.0.113.9"))
	for name, want := range map[string]string{
		"X-Forwarded-For":   "[127.0.0.1]",
		"X-Forwarded-Host":  "[front.example]",
		"X-Forwarded-Proto": "[http]",
		"Forwarded":         "[]",
	} {
		equal(c, name, fmt.Sprint(up.last().all(name)), want)
	}
}

func viaAndLoop(c *check) {
	up := c.listen()
	gw := c.gateway(up)
	d := c.dial(gw)
	d.send(get("/", "Via: 1.0 before"))
	p := up.next()
	via := p.mustRequest().all("Via")
	if len(via) != 2 || via[0] != "1.0 before" || !strings.HasPrefix(via[1], "1.1 gatebench-") {
		c.errorf("upstream got Via %q", via)
		return
	}
	// Upstream sends it round once more.
	c.problem(c.ask(gw, get("/", "Via: "+via[0]+", "+via[1])), 508, "loop")
	p.send(ok("-", "Via: 1.1 behind"))
	if got := strings.Join(d.response("GET").all("Via"), ", "); got != "1.1 behind, "+via[1] {
		c.errorf("downstream got Via %q, want 1.1 behind, then %q", got, via[1])
	}
}

func hostUpstream(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	c.ask(gw, get("/"))
	equal(c, "Host", fmt.Sprint(up.last().all("Host")), "["+up.addr+"]")
}

func hostPreserve(c *check) {
	up := c.echo()
	gw := c.gateway(up, "host: preserve")
	c.ask(gw, "GET / HTTP/1.1\r\nhOST: Front.Example:99\r\n\r\n")
	equal(c, "Host", fmt.Sprint(up.last().all("Host")), "[Front.Example:99]")
	equal(c, "X-Forwarded-Host", fmt.Sprint(up.last().all("X-Forwarded-Host")), "[Front.Example:99]")
}

func userAgent(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for _, v := range []string{"", "a/1 (b; c)"} {
		req, want := get("/"), "[]"
		if v != "" {
			req, want = get("/", "User-Agent: "+v), "["+v+"]"
		}
		c.ask(gw, req)
		equal(c, "User-Agent", fmt.Sprint(up.last().all("User-Agent")), want)
	}
}

const hopNames = "host via x-forwarded-for x-forwarded-host x-forwarded-proto"

func noInventions(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for _, x := range []struct{ req, want string }{
		{get("/"), hopNames},
		{request("HEAD", "/"), hopNames},
		{request("POST", "/", "Content-Length: 0"), "content-length " + hopNames},
		{post("/", "hello"), "content-length " + hopNames},
		{post("/", `{"a":1}`, "Content-Type: application/json"), "content-length content-type " + hopNames},
		{request("PUT", "/", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", "host transfer-encoding via x-forwarded-for x-forwarded-host x-forwarded-proto"},
		{request("DELETE", "/", "Content-Length: 2") + "hi", "content-length " + hopNames},
	} {
		c.ask(gw, x.req)
		equal(c, fmt.Sprintf("names with %.20q", x.req), up.last().names(), x.want)
	}
}

func bodylessDelete(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for _, method := range []string{"DELETE", "OPTIONS"} {
		c.ask(gw, request(method, "/"))
		equal(c, "names with "+method, up.last().names(), hopNames)
	}
}

func fieldsUnchanged(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	sent := []string{
		"Accept: text/html;q=0.5", "Accept: */*", "X-Empty: ", "X-Odd: \"a\\\"b\", \xe2\x82\xac\t;",
		"Range: bytes=0-4", "If-None-Match: W/\"x\"", "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT",
		"Accept-Encoding: br", "Authorization: Bearer t", "Content-Type: a/b", "Content-Encoding: gzip", "X-N: 2", "X-N: 1",
	}
	c.ask(gw, get("/", sent...))
	var got []string
	for _, f := range up.last().Fields {
		if !strings.Contains(hopNames, strings.ToLower(f.Name)) {
			got = append(got, f.Name+": "+f.Value)
		}
	}
	for i := range sent {
		sent[i] = strings.TrimRight(sent[i], " ") + strings.Repeat(" ", strings.Count(sent[i][len(sent[i])-1:], " "))
	}
	if a, b := byName(got), byName(sent); !slices.Equal(a, b) {
		c.errorf("upstream got\n%q\nwant\n%q", a, b)
	}
}

// byName sorts field lines by name, those of one name as they stood.
func byName(fs []string) []string {
	name := func(s string) string { n, _, _ := strings.Cut(s, ":"); return strings.ToLower(n) }
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	return fs
}

func cookieBytes(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	const cookie = `a=1;b=2; a=3; c="x\y"; d; =e; f=",`
	c.ask(gw, get("/", "Cookie: "+cookie))
	equal(c, "Cookie", fmt.Sprintf("%q", up.last().all("Cookie")), fmt.Sprintf("%q", []string{cookie}))
}

func noRequestSplitting(c *check) {
	up := c.echo()
	gw := c.gateway(up)
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\nX-A: a\rX-Evil: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX-A: a\x00X-Evil: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX-A\rX-Evil: 1\r\n\r\n",
		"GET /a\rX-Evil:1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /a\x00b HTTP/1.1\r\nHost: h\r\n\r\n",
		"GE\rT / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\rX-Evil: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX-Evil : 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n X-Evil: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n: X-Evil\r\n\r\n",
	} {
		d := c.dial(gw)
		d.send(raw)
		if m, err := d.tryHead(); err == nil && m.status() != 400 {
			c.errorf("%q is answered with %q", raw, m.Start)
		}
	}
	// A folded field is one field or none.
	d := c.dial(gw)
	d.send("GET / HTTP/1.1\r\nHost: h\r\nX-A: a\r\n X-Evil: 1\r\n\r\n")
	_, _ = d.tryHead()
	for _, m := range up.requests() {
		if m.Fields.Has("X-Evil") || strings.ContainsAny(m.Start, "\r\n\x00") {
			c.errorf("upstream got %q %q", m.Start, m.Fields)
		}
	}
}

// Fields on their way downstream.
func responseFieldCases() []testCase {
	return []testCase{
		{name: "response-fields", rule: "fields arrive with their values; several of one name stay several, in their order",
			source: "TestReverseProxy, S22, PX06", run: responseFields},
		{name: "set-cookie-bytes", rule: "Set-Cookie lines are neither merged nor parsed", source: "PX06, RFC 6265 section 3", run: setCookieBytes},
		{name: "cookies-not-stored", rule: "what upstream sets for one caller is not sent for the next", source: "R1, go-resty/resty#450", run: cookiesNotStored},
		{name: "no-response-inventions", rule: "downstream sees upstream's fields, Via, Date and the framing; no Content-Type is guessed",
			source: "S10, F14, X10", run: noResponseInventions},
		{name: "malformed-response-fields", rule: "a field name that is none, or a control character in a value, is never passed on as something else",
			source: "SE02, S20, F23, traefik/traefik#13624", run: malformedResponseFields},
		{name: "long-response-field", rule: "a field of 8 KiB is no trouble within limits.header", source: "F7, N13", run: longResponseField},
		{name: "redirects-kept", rule: "3xx with Location and body reach the caller; nobody follows, nobody counts a failure",
			source: "PX10, N1, R2, H15", run: redirectsKept},
		{name: "gzip-kept", rule: "a compressed body, its length and its tag pass untouched, asked for or not; nobody asks by itself",
			source: "PX05, N2, R9, S23", run: gzipKept},
		{name: "partial-content", rule: "206, 416 and their fields pass", source: "S23", run: partialContent},
		{name: "interim-in-step", rule: "a 103 before each answer puts no answer out of step, and its hop-by-hop fields end here",
			source: "PX02, F22, valyala/fasthttp#2333", run: interimInStep},
		{name: "1xx", rule: "every 1xx is relayed before the answer, with its fields",
			source: "Test1xxResponses, N20, F22", unless: []string{"1xx"}, run: interimRelayed},
		{name: "1xx-abort", rule: "a caller who hangs up on the first 1xx harms nobody",
			source: "Test1xxHeadersNotModifiedAfterRoundTrip, N20, golang/go#65123", run: interimAbort},
		{name: "odd-statuses", rule: "a status of upstream's that is none is 502, and no panic", source: "N19, caddyserver/caddy#2117", run: oddStatuses},
		{name: "status-000", rule: "status 000 is none", source: "N19", unless: []string{"status-000"}, run: func(c *check) { c.badStatusLine("HTTP/1.1 000 x") }},
	}
}

func responseFields(c *check) {
	sent := []string{
		"Vary: a", "Vary: b", "Link: </1>", "Link: </2>", "WWW-Authenticate: Basic", "WWW-Authenticate: Digest", "X-Empty: ",
		"X-Odd: \"a\\\"b\", \xe2\x82\xac\t;", "Server: s", "X-appId: android01", "ETag: W/\"x\"", "Content-Type: a/b; c=\"d\"",
	}
	gw := c.gateway(c.always(ok("-", sent...)))
	m := c.ask(gw, get("/"))
	var got []string
	for _, f := range m.Fields {
		if !slices.Contains([]string{"date", "via", "content-length"}, strings.ToLower(f.Name)) {
			got = append(got, strings.ToLower(f.Name)+": "+f.Value)
		}
	}
	for i := range sent {
		name, value, _ := strings.Cut(sent[i], ":")
		sent[i] = strings.ToLower(name) + ":" + value
	}
	if a, b := byName(got), byName(sent); !slices.Equal(a, b) {
		c.errorf("downstream got\n%q\nwant\n%q", a, b)
	}
}

func setCookieBytes(c *check) {
	want := []string{`a=1; Path=/x`, `a=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT`, `b="q\x"; HttpOnly;; X=y`, `=`}
	var sent []string
	for _, v := range want {
		sent = append(sent, "Set-Cookie: "+v)
	}
	gw := c.gateway(c.always(ok("-", sent...)))
	if got := c.ask(gw, get("/")).all("Set-Cookie"); !slices.Equal(got, want) {
		c.errorf("downstream got %q, want %q", got, want)
	}
}

func cookiesNotStored(c *check) {
	up := c.always(ok("-", "Set-Cookie: sid=A; Path=/"))
	gw := c.gateway(up)
	c.ask(gw, get("/"))
	c.ask(gw, get("/"))
	if v := up.last().all("Cookie"); v != nil {
		c.errorf("the second caller has the first one's cookie: %q", v)
	}
}

func noResponseInventions(c *check) {
	for _, answer := range []string{ok("<html><p>sniff me"), ok(""), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n<html>\r\n0\r\n\r\n"} {
		gw := c.gateway(c.always(answer))
		d := c.dial(gw)
		names := d.ask(get("/")).names()
		if want := "content-length date via"; names != want && names != "date transfer-encoding via" {
			c.errorf("downstream got %s, want %s or in chunks", names, want)
		}
	}
}

func malformedResponseFields(c *check) {
	for _, line := range []string{
		"X-A: a\rX-Evil: 1", "X-A: a\x00b", "X A: b", ": b", "X(A): b", "X-A\rX-Evil: 1", "no colon", "Location: /?n=\rX-Evil: 1",
	} {
		gw := c.gateway(c.answer(func(*message) string { return ok("-", line, "Connection: close") }))
		m := c.ask(gw, get("/"))
		if m.Fields.Has("X-Evil") {
			c.errorf("%q became a field: %v", line, m.Fields)
		}
		if m.status() != 502 {
			c.errorf("%q is passed on as %q %v, want 502", line, m.Start, m.Fields)
		}
	}
	// Space before the colon may be taken out as well (RFC 9112, section 5.1).
	gw := c.gateway(c.always(ok("-", "X-Space : 1", "Connection: close")))
	if m := c.ask(gw, get("/")); m.status() != 502 && m.Fields.Get("X-Space") != "1" {
		c.errorf("space before the colon is passed on as %q %v", m.Start, m.Fields)
	}
}

func longResponseField(c *check) {
	long := strings.Repeat("l", 8<<10)
	gw := c.gateway(c.always(ok("-", "Set-Cookie: a="+long)))
	m := c.ask(gw, get("/"))
	c.whole(m, 200, "-")
	if m.Fields.Get("Set-Cookie") != "a="+long {
		c.errorf("the long field is gone")
	}
}

func redirectsKept(c *check) {
	target := c.echo()
	up := c.answer(func(m *message) string {
		location := "http://" + target.addr + "/there"
		if m.target() == "/self" {
			location = "/self"
		}
		return reply("30"+m.target()[len(m.target())-1:]+" Moved", "moved", "Location: "+location)
	})
	gw := c.gateway(up, "circuit_breaker: {minimum_calls: 2}")
	for _, status := range []string{"/301", "/302", "/303", "/307", "/308"} {
		for _, req := range []string{get(status), post(status, "hello")} {
			m := c.ask(gw, req)
			c.whole(m, 300+int(status[3]-'0'), "moved")
			equal(c, "Location", m.Fields.Get("Location"), "http://"+target.addr+"/there")
		}
	}
	equal(c, "requests that arrived", len(up.requests()), 10)
	equal(c, "requests to the redirect's target", len(target.requests()), 0)
	gw.breaker("closed")

	self := c.always(reply("302 Found", "", "Location: /"))
	m := c.ask(c.gateway(self), get("/"))
	equal(c, "a redirect to itself", m.status(), 302)
	equal(c, "requests that arrived", len(self.requests()), 1)
}

func gzipKept(c *check) {
	const gz = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00"
	up := c.always(ok(gz, "Content-Encoding: gzip", `ETag: "z"`))
	gw := c.gateway(up)
	for _, fields := range [][]string{nil, {"Accept-Encoding: gzip"}} {
		for _, method := range []string{"GET", "HEAD"} {
			m := c.ask(gw, request(method, "/", fields...))
			want := gz
			if method == "HEAD" {
				want = ""
			}
			c.whole(m, 200, want)
			equal(c, "fields", fmt.Sprint(m.all("Content-Encoding"), m.all("Content-Length"), m.all("ETag")), `[gzip] [25] ["z"]`)
			equal(c, "Accept-Encoding upstream", len(up.last().all("Accept-Encoding")), len(fields))
		}
	}
}

func partialContent(c *check) {
	up := c.answer(func(m *message) string {
		if m.target() == "/far" {
			return reply("416 Range Not Satisfiable", "", "Content-Range: bytes */10")
		}
		return reply("206 Partial Content", "01234", "Content-Range: bytes 0-4/10", `ETag: "r"`)
	})
	gw := c.gateway(up)
	m := c.ask(gw, get("/", "Range: bytes=0-4", `If-Range: "r"`))
	c.whole(m, 206, "01234")
	equal(c, "Content-Range", m.Fields.Get("Content-Range"), "bytes 0-4/10")
	equal(c, "Range upstream", up.last().Fields.Get("Range")+up.last().Fields.Get("If-Range"), `bytes=0-4"r"`)
	m = c.ask(gw, get("/far", "Range: bytes=99-"))
	c.whole(m, 416, "")
	equal(c, "Content-Range", m.Fields.Get("Content-Range"), "bytes */10")
}

const early = "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\nConnection: X-N\r\nX-N: 1\r\n\r\n"

func interimInStep(c *check) {
	gw := c.gateway(c.answer(func(m *message) string { return early + ok(m.target()) }))
	d := c.dial(gw)
	for i := range 5 {
		m := d.ask(get(fmt.Sprint("/product/", i)))
		c.whole(m, 200, fmt.Sprint("/product/", i))
		for _, x := range append(m.Interim, m) {
			if x.Fields.Has("X-N") || x.Fields.Has("Connection") {
				c.errorf("downstream got %q %v", x.Start, x.Fields)
			}
		}
	}
}

func interimRelayed(c *check) {
	gw := c.gateway(c.always("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n" + ok("-", "X-Last: 1")))
	m := c.ask(gw, get("/"))
	c.whole(m, 200, "-")
	if len(m.Interim) != 2 {
		c.fatalf("downstream got %d interim responses, want 2", len(m.Interim))
	}
	for i, want := range []string{"[</a>]", "[</a> </b>]"} {
		equal(c, "Link", fmt.Sprint(m.Interim[i].all("Link")), want)
	}
	equal(c, "Link of the answer", fmt.Sprint(m.all("Link")), "[]")
	equal(c, "X-Last", m.Fields.Get("X-Last"), "1")
}

func interimAbort(c *check) {
	up := c.serve(func(p *peer) {
		m, err := p.request()
		if err != nil {
			return
		}
		if m.target() == "/" {
			for range 5 {
				p.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			}
		}
		p.send(ok(m.target(), "Connection: close"))
	})
	gw := c.gateway(up, "circuit_breaker: {enabled: false}")
	for range 5 {
		d := c.dial(gw)
		d.send(get("/"))
		_, _ = readHead(d.br) // the first 103, or the answer where there are none
		_ = d.Close()
	}
	c.whole(c.ask(gw, get("/after")), 200, "/after")
	gw.counted(inFlight, 0)
}

func oddStatuses(c *check) {
	for _, line := range []string{"HTTP/1.1 099 x", "HTTP/1.1 99 x", "HTTP/1.1 1000 x", "HTTP/1.1 -20 x", "HTTP/1.1 abc x", "HTTP/1.1", "HTTP/1.1 101 Switching Protocols"} {
		c.badStatusLine(line)
	}
}

func (c *check) badStatusLine(line string) {
	gw := c.gateway(c.always(line + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
	m := c.ask(gw, get("/"))
	if m.status() != 502 {
		c.errorf("%q is answered with %q", line, m.Start)
		return
	}
	c.problem(m, 502, "protocol")
}
