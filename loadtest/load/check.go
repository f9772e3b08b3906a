package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
)

// checks are what an answer's head and body must be, made ready.
type checks struct {
	fields   []Field // names in lower case
	contains []byte
	digest   []byte // SHA-256, nil if any will do
}

// newChecks returns nil where nothing but the status is asked for.
func newChecks(e Expect) *checks {
	if len(e.Headers) == 0 && e.Contains == "" && e.SHA256 == "" {
		return nil
	}
	k := &checks{contains: []byte(e.Contains)}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		k.fields = append(k.fields, Field{strings.ToLower(name), e.Headers[name]})
	}
	if e.SHA256 != "" {
		k.digest, _ = hex.DecodeString(e.SHA256) // validated
	}
	return k
}

// checkError says what an answer lacked.
type checkError string

func (e checkError) Error() string { return string(e) }

// searched is how much of a body is looked through for text.
const searched = 1 << 20

// inspection looks at one answer as it is read. It is kept and used again, so that
// looking allocates nothing once its buffer has grown.
type inspection struct {
	*checks
	found []bool // by field
	body  []byte // up to searched
	sum   hash.Hash
	space [sha256.Size]byte
}

// begin looks for k in the next answer.
func (i *inspection) begin(k *checks) {
	i.checks = k
	i.found = append(i.found[:0], make([]bool, len(k.fields))...)
	i.body = i.body[:0]
	if k.digest == nil {
		return
	}
	if i.sum == nil {
		i.sum = sha256.New()
	}
	i.sum.Reset()
}

// head looks through a whole response head.
func (i *inspection) head(b []byte) {
	for len(b) > 0 && len(i.fields) > 0 {
		line, n := cutLine(b)
		b = b[n:]
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			continue
		}
		for k, want := range i.fields {
			if equalFold(line[:colon], want.Name) && string(bytes.Trim(line[colon+1:], " \t")) == want.Value {
				i.found[k] = true
			}
		}
	}
}

// take looks at a part of the body.
func (i *inspection) take(b []byte) {
	if i.digest != nil {
		_, _ = i.sum.Write(b) // a hash takes everything
	}
	if len(i.contains) > 0 && len(i.body) < searched {
		i.body = append(i.body, b[:min(len(b), searched-len(i.body))]...)
	}
}

// verdict is nil if all was there.
func (i *inspection) verdict() error {
	for k, ok := range i.found {
		if !ok {
			return checkError(fmt.Sprintf("the answer has no field %s: %s", i.fields[k].Name, i.fields[k].Value))
		}
	}
	if len(i.contains) > 0 && !bytes.Contains(i.body, i.contains) {
		return checkError(fmt.Sprintf("the body does not contain %q", i.contains))
	}
	if i.digest != nil && !bytes.Equal(i.sum.Sum(i.space[:0]), i.digest) {
		return checkError("the body has another digest")
	}
	return nil
}
