package load

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gatebench/internal/conf"
)

// Target is where a run goes, and the one request that it repeats unless its
// profile has a mix of its own. Nothing is sent that is not written here or there,
// but for Host, Content-Length where there is a body or the method usually has one,
// and `Connection: close` without keep-alive.
type Target struct {
	// URL is http or https; its path and query go on the wire as written. A
	// host with several addresses is asked once and tried in order. In front of
	// a mix it has no more than a path, which the mix's paths go behind.
	URL string
	// Method is GET if empty.
	Method string
	Fields []Field
	Body   []byte
	// Expect is what an answer must be to count as ok.
	Expect Expect
}

// Field is one header line. A field named Host replaces the URL's.
type Field struct{ Name, Value string }

// endpoint is where connections go.
type endpoint struct {
	host, port string // host without brackets
	tls        bool
}

// endpoint checks the URL, and takes it apart.
func (t Target) endpoint(c *conf.Check) (endpoint, *url.URL) {
	u, err := url.Parse(t.URL)
	if err != nil {
		c.That(false, "url", "%q is not a URL", t.URL)
		return endpoint{}, &url.URL{}
	}
	c.That(u.Scheme == "http" || u.Scheme == "https", "url", "%q must begin with http:// or https://", t.URL)
	c.That(u.Hostname() != "", "url", "%q names no host", t.URL)
	c.That(u.User == nil, "url", "must not hold a user or password: give a field Authorization")
	c.That(u.Fragment == "", "url", "must not hold a fragment: it is never sent")
	e := endpoint{host: u.Hostname(), port: u.Port(), tls: u.Scheme == "https"}
	if e.port == "" {
		e.port = map[bool]string{false: "80", true: "443"}[e.tls]
	}
	n, err := strconv.ParseUint(e.port, 10, 16)
	c.That(err == nil && n > 0, "url", "%q is not a port", e.port)
	return e, u
}

// message is one request, to be written out. The problems with it are told by the
// paths that its parts have.
type message struct {
	method, target, host string
	fields               []Field
	body                 []byte
	close                bool // asks for the connection to be closed
	at                   struct{ method, target, fields string }
}

// bytes checks everything that could smuggle a line into the head, and writes the
// request.
func (m message) bytes(c *conf.Check) []byte {
	c.That(plainTarget(m.target), m.at.target, "%q holds a space, a control or a non-ASCII character: write it as %%XX", m.target)
	c.That(isToken(m.method), m.at.method, "%q is not a method", m.method)
	c.That(m.method != http.MethodConnect, m.at.method, "CONNECT asks for a tunnel, not for an answer")

	var head, rest strings.Builder
	host := m.host
	for _, f := range m.fields {
		ok := isToken(f.Name) && isFieldValue(f.Value)
		c.That(ok, m.at.fields, "%q: %q is not a header field", f.Name, f.Value)
		switch strings.ToLower(f.Name) {
		case "host":
			host = f.Value
		case "content-length", "transfer-encoding", "connection", "expect", "upgrade":
			c.That(false, m.at.fields, "%s is set by the engine: remove it", f.Name)
		default:
			rest.WriteString(f.Name + ": " + f.Value + "\r\n")
		}
	}
	head.WriteString(m.method + " " + m.target + " HTTP/1.1\r\nHost: " + host + "\r\n")
	head.WriteString(rest.String())
	if len(m.body) > 0 || m.method == http.MethodPost || m.method == http.MethodPut || m.method == http.MethodPatch {
		head.WriteString("Content-Length: " + strconv.Itoa(len(m.body)) + "\r\n")
	}
	if m.close {
		head.WriteString("Connection: close\r\n")
	}
	head.WriteString("\r\n")
	return append([]byte(head.String()), m.body...)
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
