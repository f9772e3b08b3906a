package load

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gatebench/internal/conf"
)

// Target is the one request that a run repeats. Nothing is sent that is not
// written here, but for Host, Content-Length where there is a body or the method
// usually has one, and `Connection: close` without keep-alive.
type Target struct {
	// URL is http or https; its path and query go on the wire as written. A
	// host with several addresses is asked once and tried in order.
	URL string
	// Method is GET if empty.
	Method string
	Fields []Field
	Body   []byte
}

// Field is one header line. A field named Host replaces the URL's.
type Field struct{ Name, Value string }

// message is a target made ready: the bytes to write, and where.
type message struct {
	bytes []byte
	// noBody marks HEAD, whose answer has a length and no body.
	noBody bool
	// once marks that every request has a connection of its own.
	once bool

	host, port string // host without brackets
	tls        bool
}

// prepare checks everything that could smuggle a line into the head, and writes
// the request once.
func (t Target) prepare(keepAlive bool) (*message, error) {
	var c conf.Check
	m := &message{once: !keepAlive}

	u, err := url.Parse(t.URL)
	if err != nil {
		c.That(false, "url", "%q is not a URL", t.URL)
		return nil, c.Err()
	}
	c.That(u.Scheme == "http" || u.Scheme == "https", "url", "%q must begin with http:// or https://", t.URL)
	c.That(u.Hostname() != "", "url", "%q names no host", t.URL)
	c.That(u.User == nil, "url", "must not hold a user or password: give a field Authorization")
	c.That(u.Fragment == "", "url", "must not hold a fragment: it is never sent")
	target := u.RequestURI()
	c.That(plainTarget(target), "url", "%q holds a space, a control or a non-ASCII character: write it as %%XX", t.URL)

	method := t.Method
	if method == "" {
		method = http.MethodGet
	}
	c.That(isToken(method), "method", "%q is not a method", method)
	c.That(method != http.MethodConnect, "method", "CONNECT asks for a tunnel, not for an answer")
	m.noBody = method == http.MethodHead

	var head strings.Builder
	host := u.Host
	var rest strings.Builder
	for _, f := range t.Fields {
		ok := isToken(f.Name) && isFieldValue(f.Value)
		c.That(ok, "fields", "%q: %q is not a header field", f.Name, f.Value)
		switch strings.ToLower(f.Name) {
		case "host":
			host = f.Value
		case "content-length", "transfer-encoding", "connection", "expect", "upgrade":
			c.That(false, "fields", "%s is set by the engine: remove it", f.Name)
		default:
			rest.WriteString(f.Name + ": " + f.Value + "\r\n")
		}
	}
	head.WriteString(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n")
	head.WriteString(rest.String())
	if len(t.Body) > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		head.WriteString("Content-Length: " + strconv.Itoa(len(t.Body)) + "\r\n")
	}
	if m.once {
		head.WriteString("Connection: close\r\n")
	}
	head.WriteString("\r\n")
	m.bytes = append([]byte(head.String()), t.Body...)

	m.tls = u.Scheme == "https"
	m.host, m.port = u.Hostname(), u.Port()
	if m.port == "" {
		m.port = map[bool]string{false: "80", true: "443"}[m.tls]
	}
	_, err = net.LookupPort("tcp", m.port)
	c.That(err == nil, "url", "%q is not a port", m.port)
	return m, c.Err()
}

// isToken reports whether s is a token of RFC 9110 5.6.2: a method or field name.
func isToken(s string) bool {
	for _, b := range []byte(s) {
		alnum := '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", b) < 0 {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether s can stand in a field line without starting
// another.
func isFieldValue(s string) bool {
	for _, b := range []byte(s) {
		if b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// plainTarget reports whether a request target can stand in a request line.
func plainTarget(target string) bool {
	for _, b := range []byte(target) {
		if b <= ' ' || b >= 0x7f {
			return false
		}
	}
	return true
}
