package clienttest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"

	"gatebench/clients"
)

// What stands in the heads of messages: target, Host, fields.
func headCases() []testCase {
	return []testCase{
		rule("raw-target", "the target goes upstream byte for byte: nothing decoded, cleaned or escaped (golang/go#35908, valyala/fasthttp#1358)", rawTarget),
		rule("asterisk-target", "OPTIONS * is sent as such (RFC 9112, section 3.2.4)", asteriskTarget),
		rule("no-injection", "a space, CR or LF in a method, target or field never makes a word or a line of its own (valyala/fasthttp#875, #2182)", noInjection),
		rule("host", "Host is sent as given, in its case, once, whatever address the connection has", hostAsGiven),
		rule("no-invented-fields", "nothing is sent but what was given, Host and the framing (golang/go#15524, traefik/traefik#12339)", noInventedFields),
		rule("request-fields", "fields keep their values and, under one name, their lines and order; names compare without case (RFC 9110, section 5.3)", requestFields),
		rule("cookie-bytes", "Cookie is not parsed: odd bytes and repeated names pass", cookieBytes),
		rule("cookies-not-stored", "a Set-Cookie is never sent back by itself: users would share sessions (go-resty/resty#450)", cookiesNotStored),
		rule("te-trailers", "TE: trailers passes (RFC 9110, section 10.1.4; the hop has stripped all other TE)", teTrailers),
		rule("response-fields", "fields arrive with their values and, under one name, their lines and order; Set-Cookie lines are never merged (RFC 6265, section 3)", responseFields),
		rule("repeated-content-encoding", "two Content-Encoding lines both arrive (RFC 9110, section 5.3)", repeatedContentEncoding),
		rule("no-invented-response-fields", "no field arrives that upstream did not send, Content-Type least of all (valyala/fasthttp#214)", noInventedResponseFields),
		rule("long-fields", "a response head below limits.header arrives, however long one of its lines (valyala/fasthttp#1007)", longFields),
		rule("gzip-kept", "a compressed body is passed on as it is, asked for or not; compression is never asked for by itself (golang/go net/http.Transport.DisableCompression)", gzipKept),
		rule("redirects-kept", "3xx are answers, never followed (go-resty/resty#381)", redirectsKept),
	}
}

func rawTarget(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, target := range []string{
		"/", "/a%2Fb", "/a%2fb", "/a//b", "//h/p", "//h:80/p?x=://", "///", "/a/../b", "/a/%2e%2e/b", "/a/./b",
		"/a?", "/?", "/a?x=1;y=2", "/a?x=%zz", "/a?x=1&x=2&&", "/a?b?c", "/%E2%82%AC", "/a%3Fb", "/a;p=1",
		"/p!q", "/%252e", "/a+b?c+d", "/~a(b)*c'd", "/a:b", "/a|b", "/a\"b", "/a[b]", "/a?u=http://h/p#",
	} {
		c.ok(cl, get(target), "-")
		if got := u.last().Target; got != target {
			c.errorf("target %s arrived as %s", target, got)
		}
	}
}

func asteriskTarget(c *check) {
	u := c.always(ok("-"))
	c.ok(c.client(u), bodyless("OPTIONS", "*"), "-")
	if h := u.last(); h.Target != "*" || h.Method != "OPTIONS" {
		c.errorf("OPTIONS * arrived as %s %s", h.Method, h.Target)
	}
}

func noInjection(c *check) {
	const evil = "\r\nX-Evil: 1\r\nX-Rest:"
	u := c.always(ok("-"))
	cl := c.client(u)
	for what, req := range map[string]*clients.Request{
		"target": get("/a HTTP/1.1" + evil),
		"space":  get("/a b"),
		"host":   {Method: "GET", Target: "/", Host: "h" + evil},
		"method": {Method: "GET / HTTP/1.1" + evil, Target: "/", Host: host},
		"value":  {Method: "GET", Target: "/", Host: host, Fields: clients.Fields{{Name: "X-A", Value: "1" + evil}}},
		"name":   {Method: "GET", Target: "/", Host: host, Fields: clients.Fields{{Name: "X-A: 1" + evil, Value: "2"}}},
	} {
		// Refused or defused: either will do.
		if resp, err := cl.Do(c.ctx, req); err == nil {
			c.whole(resp)
		} else {
			c.checkError(err)
		}
		for _, h := range u.requests() {
			if h.Fields.Has("X-Evil") {
				c.errorf("a line break in the %s made a field of its own", what)
				return
			}
			if strings.Contains(h.Target, " ") || h.Proto != "HTTP/1.1" {
				c.errorf("the %s made a request line of more than three words: %s %s %s", what, h.Method, h.Target, h.Proto)
				return
			}
		}
	}
}

func hostAsGiven(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, want := range []string{"Shop.Example:8443", host, "[::1]:80"} {
		req := get("/")
		req.Host = want
		c.ok(cl, req, "-")
		if got := values(u.last().Fields, "Host"); !slices.Equal(got, []string{want}) {
			c.errorf("Host %q arrived as %q", want, got)
		}
	}
}

func noInventedFields(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, req := range []*clients.Request{
		get("/"), bodyless("HEAD", "/"), bodyless("DELETE", "/"), bodyless("OPTIONS", "/"), bodyless("POST", "/"),
		post("/", `{"a":1}`), withBody("PUT", "/", "<a/>"), withBody("PATCH", "/", "a=1"), streaming("/", strings.NewReader("a")),
	} {
		resp := c.do(cl, req)
		resp.End(nil)
		for _, f := range u.last().Fields {
			switch strings.ToLower(f.Name) {
			case "host", "content-length", "transfer-encoding":
			default:
				c.errorf("%s: invented %s: %s", req.Method, f.Name, f.Value)
			}
		}
	}
}

func requestFields(c *check) {
	u := c.always(ok("-"))
	req := get("/")
	req.Fields = clients.Fields{
		{Name: "X-Many", Value: "one"}, {Name: "Accept", Value: "text/plain;q=0.5, */*"}, {Name: "x-many", Value: "two, three"},
		{Name: "User-Agent", Value: "test/1 (a; b)"}, {Name: "X-Many", Value: "one"}, {Name: "X-Empty", Value: ""},
		{Name: "Content-Type", Value: "text/plain"}, {Name: "X-Bytes", Value: "caf\xe9 \"q\" \\ ;,="}, {Name: "Accept-Encoding", Value: "br"},
		{Name: "Via", Value: "1.1 a"}, {Name: "Via", Value: "1.0 b"}, {Name: "Authorization", Value: "Basic eDp5"},
	}
	want := make(map[string][]string)
	for _, f := range req.Fields {
		want[strings.ToLower(f.Name)] = append(want[strings.ToLower(f.Name)], f.Value)
	}
	c.ok(c.client(u), req, "-")
	for name, vs := range want {
		if got := values(u.last().Fields, name); !slices.Equal(got, vs) {
			c.errorf("%s: sent %q, arrived %q", name, vs, got)
		}
	}
}

func cookieBytes(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	for _, cookie := range []string{`a="x"; b=1\2;c`, "a=1;b=2; a=3", "=; ;;x", `a="b\"c"`} {
		req := get("/")
		req.Fields.Add("Cookie", cookie)
		c.ok(cl, req, "-")
		if got := values(u.last().Fields, "Cookie"); !slices.Equal(got, []string{cookie}) {
			c.errorf("Cookie %q arrived as %q", cookie, got)
		}
	}
}

func cookiesNotStored(c *check) {
	u := c.always(reply("200 OK", "-", "Set-Cookie: sid=A; Path=/"))
	cl := c.client(u)
	c.ok(cl, get("/"), "-")
	c.ok(cl, get("/"), "-")
	if got := values(u.last().Fields, "Cookie"); got != nil {
		c.errorf("the second request carries Cookie %q", got)
	}
}

func teTrailers(c *check) {
	u := c.always(ok("-"))
	req := get("/")
	req.Fields.Add("TE", "trailers")
	c.ok(c.client(u), req, "-")
	if got := values(u.last().Fields, "TE"); !slices.Equal(got, []string{"trailers"}) {
		c.errorf("TE: trailers arrived as %q", got)
	}
}

func responseFields(c *check) {
	want := []string{
		"Set-Cookie: a=1; Path=/", "Link: </a>; rel=preload", "Set-Cookie: a=2; Path=/b", "Server: x/1",
		"Set-Cookie: c=3; Expires=Wed, 09 Jun 2032 10:18:14 GMT", "Link: </b>", "X-Empty:", "Date: Mon, 02 Jan 2006 15:04:05 GMT",
		"X-Bytes: caf\xe9 \"q\"", "Vary: a", "Vary: b, c", "Content-Type: text/html; charset=x", "ETag: \"abc\"", "Content-Encoding: x",
		"Www-Authenticate: Basic realm=\"a\"", "Www-Authenticate: Bearer",
	}
	u := c.always(reply("203 Odd Reason", "-", want...))
	resp := c.do(c.client(u), get("/"))
	if resp.Status != 203 {
		c.errorf("status 203 arrived as %d", resp.Status)
	}
	sent := make(map[string][]string)
	for _, line := range want {
		name, value, _ := strings.Cut(line, ":")
		sent[name] = append(sent[name], strings.TrimSpace(value))
	}
	for name, vs := range sent {
		if got := values(resp.Fields, name); !slices.Equal(got, vs) {
			c.errorf("%s: sent %q, arrived %q", name, vs, got)
		}
	}
	c.whole(resp)
}

func repeatedContentEncoding(c *check) {
	u := c.always(reply("200 OK", "-", "Content-Encoding: a", "Content-Encoding: b"))
	resp := c.do(c.client(u), get("/"))
	if got := values(resp.Fields, "Content-Encoding"); !slices.Equal(got, []string{"a", "b"}) {
		c.errorf("Content-Encoding lines a and b arrived as %q", got)
	}
	c.whole(resp)
}

func noInventedResponseFields(c *check) {
	u := c.answer(func(h *heard) string {
		switch h.Target {
		case "/empty":
			return "HTTP/1.1 204 No Content\r\n\r\n"
		case "/chunked":
			return chunked([]string{"<html>"})
		}
		return ok("<html>")
	})
	cl := c.client(u)
	for _, target := range []string{"/", "/empty", "/chunked"} {
		resp := c.do(cl, get(target))
		for _, f := range resp.Fields {
			c.errorf("%s: a field that upstream did not send: %s: %s", target, f.Name, f.Value)
		}
		c.whole(resp)
	}
}

func longFields(c *check) {
	long := strings.Repeat("v", 12<<10) // beyond fasthttp's and bufio's 4 KiB, below the default limit
	u := c.always(reply("200 OK", "-", "X-Long: "+long))
	resp := c.do(c.client(u), get("/"))
	if resp.Fields.Get("X-Long") != long {
		c.errorf("a line of 12 KiB arrived with %d bytes", len(resp.Fields.Get("X-Long")))
	}
	c.whole(resp)
}

func gzipKept(c *check) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte("plain"))
	_ = w.Close()
	u := c.always(reply("200 OK", zipped.String(), "Content-Encoding: gzip", `ETag: "z"`))
	cl := c.client(u)
	for _, asked := range []string{"", "gzip"} {
		req := get("/")
		if asked != "" {
			req.Fields.Add("Accept-Encoding", asked)
		}
		resp := c.do(cl, req)
		if got := u.last().Fields.Get("Accept-Encoding"); got != asked {
			c.errorf("Accept-Encoding %q arrived as %q", asked, got)
		}
		if resp.Fields.Get("Content-Encoding") != "gzip" || resp.ContentLength != int64(zipped.Len()) {
			c.errorf("Content-Encoding %q and length %d, want gzip and %d",
				resp.Fields.Get("Content-Encoding"), resp.ContentLength, zipped.Len())
		}
		if c.whole(resp) != zipped.String() {
			c.errorf("the body is not the bytes that upstream sent")
		}
	}
	head := c.do(cl, bodyless("HEAD", "/")) // resty would unzip the body that is not there
	if head.ContentLength != int64(zipped.Len()) {
		c.errorf("HEAD: length %d, want %d", head.ContentLength, zipped.Len())
	}
	c.whole(head)
}

func redirectsKept(c *check) {
	other := c.always(ok("other"))
	u := c.answer(func(h *heard) string {
		return reply(strings.TrimPrefix(h.Target, "/")+" Moved", "moved", "Location: http://"+other.addr+"/")
	})
	cl := c.client(u)
	for _, method := range []string{"GET", "POST"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			resp := c.do(cl, withBody(method, fmt.Sprintf("/%d", status), "x"))
			if resp.Status != status || resp.Fields.Get("Location") != "http://"+other.addr+"/" {
				c.errorf("%s: %d arrived as %d with Location %q", method, status, resp.Status, resp.Fields.Get("Location"))
			}
			if body := c.whole(resp); body != "moved" {
				c.errorf("%s %d: body %q", method, status, body)
			}
		}
	}
	if n := other.connections(); n > 0 {
		c.errorf("the target of the redirect was called %d times", n)
	}
}

// values are those of all fields of that name, in order.
func values(fs clients.Fields, name string) []string {
	var vs []string
	for _, f := range fs {
		if clients.EqualName(f.Name, name) {
			vs = append(vs, f.Value)
		}
	}
	return vs
}
