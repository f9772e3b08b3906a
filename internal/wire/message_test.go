package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gatebench/clients"
)

// A message is a request or a response as it stood on the wire.
type message struct {
	Start    string         // request line or status line
	Fields   clients.Fields // in their order and bytes
	Body     string         // as far as it came, decoded
	Trailers clients.Fields

	// Err says what is wrong with the body: it ended before its framing said.
	Err error

	// Whole says that an upstream has read it to its end.
	Whole bool

	// Conn numbers the connection it came on, from 1, at an upstream.
	Conn int

	// Interim are the 1xx responses before this one.
	Interim []*message
}

// word returns the nth word of the start line.
func (m *message) word(n int) string {
	words := strings.SplitN(m.Start, " ", 3)
	if n >= len(words) {
		return ""
	}
	return words[n]
}

func (m *message) method() string { return m.word(0) }
func (m *message) target() string { return m.word(1) }

func (m *message) status() int {
	n, _ := strconv.Atoi(m.word(1))
	return n
}

// all returns the values of every line of that name, in their order.
func (m *message) all(name string) []string { return values(m.Fields, name) }

func values(fs clients.Fields, name string) (vs []string) {
	for _, f := range fs {
		if clients.EqualName(f.Name, name) {
			vs = append(vs, f.Value)
		}
	}
	return vs
}

// names lists the names of the fields in lower case, sorted.
func (m *message) names() string {
	var ns []string
	for _, f := range m.Fields {
		ns = append(ns, strings.ToLower(f.Name))
	}
	slices.Sort(ns)
	return strings.Join(ns, " ")
}

// readHead reads up to the empty line.
func readHead(r *bufio.Reader) (*message, error) {
	start, err := readLine(r)
	if err != nil {
		return nil, err
	}
	m := &message{Start: start}
	m.Fields, err = readFields(r)
	return m, err
}

func readFields(r *bufio.Reader) (fs clients.Fields, err error) {
	for {
		line, err := readLine(r)
		if err != nil || line == "" {
			return fs, err
		}
		name, value, _ := strings.Cut(line, ":")
		fs.Add(name, strings.Trim(value, " \t"))
	}
}

// readLine wants CRLF: a bare line feed is a line end that upstream may see and we
// do not.
func readLine(r *bufio.Reader) (string, error) {
	s, err := r.ReadString('\n')
	if err != nil {
		return "", unexpected(err)
	}
	line, ok := strings.CutSuffix(s, "\r\n")
	if !ok {
		return "", fmt.Errorf("line %q ends without CR", s)
	}
	return line, nil
}

var errTwoFramings = errors.New("both Content-Length and Transfer-Encoding")

// readBody reads what follows the head, by its framing, into m.
func (m *message) readBody(r *bufio.Reader, untilClose bool) {
	length, coding := m.all("Content-Length"), m.all("Transfer-Encoding")
	switch {
	case len(length) > 0 && len(coding) > 0, len(length) > 1, len(coding) > 1:
		m.Err = errTwoFramings
	case len(coding) == 1:
		if coding[0] != "chunked" {
			m.Err = fmt.Errorf("transfer coding %q", coding[0])
			return
		}
		m.Err = m.readChunks(r)
	case len(length) == 1:
		n, err := strconv.ParseInt(length[0], 10, 64)
		if err != nil {
			m.Err = err
			return
		}
		m.Err = m.readN(r, n)
	case untilClose:
		b, err := io.ReadAll(r)
		m.Body, m.Err = string(b), err
	}
}

func (m *message) readN(r *bufio.Reader, n int64) error {
	var b strings.Builder
	_, err := io.CopyN(&b, r, n)
	m.Body = b.String()
	return unexpected(err)
}

func (m *message) readChunks(r *bufio.Reader) error {
	var b strings.Builder
	defer func() { m.Body = b.String() }()
	for {
		piece, err := readChunk(r)
		b.WriteString(piece)
		if err != nil {
			return err
		}
		if piece == "" {
			m.Trailers, err = readFields(r)
			return err
		}
	}
}

// readChunk returns "" after the last chunk, before the trailers.
func readChunk(r *bufio.Reader) (string, error) {
	line, err := readLine(r)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseInt(line, 16, 32)
	if err != nil || n == 0 {
		return "", err
	}
	b := make([]byte, n)
	got, err := io.ReadFull(r, b)
	if err != nil {
		return string(b[:got]), unexpected(err)
	}
	if line, err = readLine(r); err == nil && line != "" {
		err = fmt.Errorf("chunk is followed by %q", line)
	}
	return string(b), err
}

// unexpected makes an end where none may be an error of its own.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// request writes a request; its fields are lines without their ends.
func request(method, target string, fields ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: front.example\r\n" + lines(fields) + "\r\n"
}

func get(target string, fields ...string) string { return request("GET", target, fields...) }

// post has a body of known length.
func post(target, body string, fields ...string) string {
	return request("POST", target, append(fields, "Content-Length: "+strconv.Itoa(len(body)))...) + body
}

// ok is a 200 with a body of known length.
func ok(body string, fields ...string) string { return reply("200 OK", body, fields...) }

func reply(status, body string, fields ...string) string {
	return "HTTP/1.1 " + status + "\r\n" + lines(fields) + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func lines(fields []string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String()
}
