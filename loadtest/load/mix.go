package load

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatebench/internal/conf"
)

// Request is one kind of request in a profile's mix:
//
//	requests:
//	  - {weight: 70, get: "/product?type=T"}
//	  - {weight: 25, post: /postProduct2, json: {name: "${name}", id: "1", price: 2}, data: names.csv}
//	  - {weight: 5, upload: file.bin, to: /uploadFile}
//
// Where data names a CSV file, ${column} stands for that column of its next line,
// escaped as its place needs it. Everything is written out before the run: what
// varies costs memory, and no time.
type Request struct {
	// Name is what the results call it. Default: its method and path.
	Name string `yaml:"name"`
	// Weight is its share of the mix, beside the others'. Default 0, which
	// stands for 1.
	Weight int `yaml:"weight"`

	// Of these exactly one: the path, and query, below the URL; or the file to
	// upload as the part named file of a form.
	Get    string `yaml:"get"`
	Head   string `yaml:"head"`
	Post   string `yaml:"post"`
	Put    string `yaml:"put"`
	Patch  string `yaml:"patch"`
	Delete string `yaml:"delete"`
	Upload string `yaml:"upload"`
	// To is where an upload goes.
	To string `yaml:"to"`

	// Of these at most one: a value that is sent as JSON, fields of a form, the
	// body as text, or the file that holds it.
	JSON     json.RawMessage   `yaml:"json"`
	Form     map[string]string `yaml:"form"`
	Body     string            `yaml:"body"`
	BodyFile string            `yaml:"body_file"`

	// Headers are sent beside those of the target.
	Headers map[string]string `yaml:"headers"`

	// Data is a CSV file whose first line names its columns.
	Data string `yaml:"data"`

	// Expect is what the answer must be to count as ok.
	Expect Expect `yaml:"expect"`
}

// Expect is what an answer must be to count as ok: all that is given.
type Expect struct {
	// Status is the one status that is right. Default 0: any below 400.
	Status int `yaml:"status"`
	// Headers are fields that the answer must have, with these values.
	Headers map[string]string `yaml:"headers"`
	// Contains is text that the body must have within its first MiB.
	Contains string `yaml:"contains"`
	// SHA256 is the digest of the right body, in hexadecimal.
	SHA256 string `yaml:"sha256"`
}

func (e Expect) validate(c *conf.Check, at string) {
	c.That(e.Status == 0 || 200 <= e.Status && e.Status <= 599, at+"status", "%d is not the status of an answer", e.Status)
	_, err := hex.DecodeString(e.SHA256)
	c.That(err == nil && (e.SHA256 == "" || len(e.SHA256) == 2*sha256.Size), at+"sha256", "%q is not a digest: write 64 hexadecimal digits", e.SHA256)
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		c.That(isToken(name), at+"headers", "%q is not the name of a header field", name)
	}
}

// verb is the request's method and where it goes.
func (r Request) verb() (method, key, target string, n int) {
	for _, v := range []struct{ method, key, target string }{
		{http.MethodGet, "get", r.Get},
		{http.MethodHead, "head", r.Head},
		{http.MethodPost, "post", r.Post},
		{http.MethodPut, "put", r.Put},
		{http.MethodPatch, "patch", r.Patch},
		{http.MethodDelete, "delete", r.Delete},
	} {
		if v.target != "" {
			method, key, target = v.method, v.key, v.target
			n++
		}
	}
	if r.Upload != "" {
		method, key, target = http.MethodPost, "to", r.To
		n++
	}
	return method, key, target, n
}

// Validate names every bad value; it opens no file.
func (r Request) Validate() error {
	var c conf.Check
	_, key, target, n := r.verb()
	c.That(n == 1, "get", "give exactly one of get, head, post, put, patch, delete and upload")
	c.That(n != 1 || strings.HasPrefix(target, "/"), cmp.Or(key, "get"), "%q is not a path: it must begin with /", target)
	c.That(r.To == "" || r.Upload != "", "to", "is where an upload goes, and there is none")
	c.That(r.Weight >= 0, "weight", "must not be negative")
	bodies := 0
	for _, set := range []bool{r.JSON != nil, r.Form != nil, r.Body != "", r.BodyFile != "", r.Upload != ""} {
		if set {
			bodies++
		}
	}
	c.That(bodies <= 1, "body", "give at most one of json, form, body, body_file and upload")
	c.That(bodies == 0 || r.Get == "" && r.Head == "", "body", "a %s has none", strings.ToUpper(key))
	r.Expect.validate(&c, "expect.")
	return c.Err()
}

// maxPrepared bounds what the mix holds in memory.
const maxPrepared = 256 << 20

// mix is what a run sends, written out.
type mix struct {
	endpoint
	once  bool // every request has a connection of its own
	seed  uint64
	total uint64 // of weights
	kinds []kind
}

// kind is one kind of request.
type kind struct {
	name   string
	upTo   uint64   // its weight and that of those before it
	bytes  [][]byte // one for each line of data
	noBody bool     // its answer has a length and no body
	checks *checks  // nil if only the status counts
	status int      // the right one, 0 for any below 400
}

// pick is the i-th request of a run: a kind at random by its weight, and of that
// the line of data that is next. It depends on the seed and i alone, so that two
// runs with one seed ask for the same.
func (m *mix) pick(i int64) (kind int, request []byte) {
	if len(m.kinds) > 1 {
		place := scatter(m.seed+uint64(i)) % m.total
		for place >= m.kinds[kind].upTo {
			kind++
		}
	}
	lines := m.kinds[kind].bytes
	return kind, lines[i%int64(len(lines))]
}

// scatter turns a counter into bits that look drawn (splitmix64).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// prepare writes out all that a profile sends to a target.
func (t Target) prepare(p Profile) (*mix, error) {
	var c conf.Check
	m := &mix{once: !p.KeepAlive, seed: p.Seed}
	e, u := t.endpoint(&c)
	m.endpoint = e
	if len(p.Requests) == 0 {
		t.Expect.validate(&c, "expect_")
		method := cmp.Or(t.Method, http.MethodGet)
		msg := message{method: method, target: u.RequestURI(), host: u.Host, fields: t.Fields, body: t.Body, close: m.once}
		msg.at.method, msg.at.target, msg.at.fields = "method", "url", "fields"
		m.add(kind{name: method + " " + u.Path, bytes: [][]byte{msg.bytes(&c)}, noBody: method == http.MethodHead}, 1, t.Expect)
		return m, c.Err()
	}
	c.That(u.RawQuery == "" && !u.ForceQuery, "url", "must not hold a query: each request of the mix has its own")
	c.That(t.Method == "" && len(t.Body) == 0, "method", "and body are those of each request of the mix: leave them out")
	for i, r := range p.Requests {
		at := "requests[" + itoa(i) + "]"
		if err := r.Validate(); err != nil {
			c.Within(at, err)
			continue
		}
		k, err := r.prepare(&c, at, t, u, m.once)
		c.That(err == nil, at, "%v", err)
		m.add(k, uint64(max(1, r.Weight)), r.Expect)
	}
	size := 0
	for _, k := range m.kinds {
		for _, b := range k.bytes {
			size += len(b)
		}
	}
	c.That(size <= maxPrepared, "requests", "take %v when they are written out, and at most %v may be: take less data or smaller bodies", conf.Size(size), conf.Size(maxPrepared))
	return m, c.Err()
}

func (m *mix) add(k kind, weight uint64, e Expect) {
	m.total += weight
	k.upTo, k.status, k.checks = m.total, e.Status, newChecks(e)
	m.kinds = append(m.kinds, k)
}

// prepare writes out one kind of request, once for every line of its data.
func (r Request) prepare(c *conf.Check, at string, t Target, base *url.URL, once bool) (kind, error) {
	method, key, target, _ := r.verb()
	path, _, _ := strings.Cut(target, "?")
	k := kind{name: cmp.Or(r.Name, method+" "+path), noBody: method == http.MethodHead}
	body, contentType, err := r.body()
	if err != nil {
		return k, err
	}
	rows := []row{nil}
	if r.Data != "" {
		if rows, err = readData(r.Data); err != nil {
			return k, err
		}
	}
	if err := rows[0].knows(append(slices.Collect(maps.Values(r.Headers)), target, body)...); err != nil {
		return k, err
	}
	for _, row := range rows {
		msg := message{
			method: method, host: base.Host, close: once,
			target: strings.TrimSuffix(base.EscapedPath(), "/") + row.fill(target, inTarget),
			body:   []byte(row.fill(body, r.escape())),
		}
		msg.at.method, msg.at.target, msg.at.fields = at, at+"."+key, at+".headers"
		msg.fields = slices.Clone(t.Fields)
		if contentType != "" && !hasField(r.Headers, "Content-Type") {
			msg.fields = append(msg.fields, Field{"Content-Type", contentType})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
			msg.fields = append(msg.fields, Field{name, row.fill(r.Headers[name], asIs)})
		}
		bad := c.Err() != nil
		k.bytes = append(k.bytes, msg.bytes(c))
		if !bad && c.Err() != nil {
			break // one line's problems are enough
		}
	}
	return k, nil //nolint:nilerr // c has it: the caller asks c once, for all kinds
}

func hasField(headers map[string]string, name string) bool {
	for n := range headers {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// body is the request's, before data is filled in.
func (r Request) body() (body, contentType string, err error) {
	switch {
	case r.JSON != nil:
		return string(r.JSON), "application/json", nil
	case r.Form != nil:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(r.Form)) {
			pairs = append(pairs, url.QueryEscape(name)+"="+escapeAround(r.Form[name]))
		}
		return strings.Join(pairs, "&"), "application/x-www-form-urlencoded", nil
	case r.BodyFile != "":
		b, err := os.ReadFile(r.BodyFile)
		return string(b), "", err
	case r.Upload != "":
		return uploadBody(r.Upload)
	}
	return r.Body, "", nil
}

// boundary stands between the parts of an upload. It is fixed: the same run sends
// the same bytes.
const boundary = "gatebench-3c2f5f0f7d6a4f0d9a3e"

// uploadBody is a form with a file as its part named file.
func uploadBody(path string) (body, contentType string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundary); err != nil {
		return "", "", err
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", filepath.Base(path))},
		"Content-Type":        {"application/octet-stream"},
	})
	if err != nil {
		return "", "", err
	}
	if _, err := part.Write(content); err != nil {
		return "", "", err
	}
	if err := w.Close(); err != nil {
		return "", "", err
	}
	return b.String(), w.FormDataContentType(), nil
}

// escape is how data is written in the request's body.
func (r Request) escape() func(string) string {
	switch {
	case r.JSON != nil:
		return inJSON
	case r.Form != nil:
		return inTarget
	}
	return asIs
}

func asIs(s string) string { return s }

// inTarget escapes for a path and for a query alike, where + would mean a space in
// one of them.
func inTarget(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// inJSON escapes for the inside of a string.
func inJSON(s string) string {
	b, _ := json.Marshal(s) // a string is never refused
	return string(b[1 : len(b)-1])
}

// escapeAround escapes a form's value, but for the places that data goes to.
func escapeAround(s string) string {
	var b strings.Builder
	for {
		before, column, after, ok := cutPlace(s)
		b.WriteString(inTarget(before))
		if !ok {
			return b.String()
		}
		b.WriteString("${" + column + "}")
		s = after
	}
}

// row is one line of data by column; nil where there is none.
type row map[string]string

func readData(path string) ([]row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) < 2 {
		return nil, fmt.Errorf("%s holds no data: its first line names the columns, and there is no second", path)
	}
	columns := lines[0]
	columns[0] = strings.TrimPrefix(columns[0], "\ufeff")
	rows := make([]row, len(lines)-1)
	for i, line := range lines[1:] {
		rows[i] = row{}
		for k, value := range line {
			rows[i][columns[k]] = value
		}
	}
	return rows, nil
}

// knows refuses a place for a column that there is not.
func (r row) knows(templates ...string) error {
	if r == nil {
		return nil
	}
	for _, s := range templates {
		for _, column, after, ok := cutPlace(s); ok; _, column, after, ok = cutPlace(after) {
			if _, known := r[column]; !known {
				return fmt.Errorf("the data has no column %q; its columns are %s", column, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
			}
		}
	}
	return nil
}

// fill puts the row's values into their places. Without data a place is text like
// any other.
func (r row) fill(s string, escape func(string) string) string {
	if r == nil || !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	for {
		before, column, after, ok := cutPlace(s)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(escape(r[column]))
		s = after
	}
}

// cutPlace cuts s around its first ${column}.
func cutPlace(s string) (before, column, after string, ok bool) {
	i := strings.Index(s, "${")
	if i < 0 {
		return s, "", "", false
	}
	n := strings.IndexByte(s[i:], '}')
	if n < 0 {
		return s, "", "", false
	}
	return s[:i], s[i+2 : i+n], s[i+n+1:], true
}
