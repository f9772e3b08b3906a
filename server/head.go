package server

import (
	"net/http"
	"strconv"

	"gatebench/clients"
)

// appendHead writes a response head in the cases in which the library's own way
// is closed: 1xx and whatever goes out on a connection taken over. Names that are
// none are left out, line ends in values become spaces.
func appendHead(b []byte, status int, fields clients.Fields) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	for i := range fields {
		if f := &fields[i]; isToken(f.Name) && !frames(f.Name) {
			b = append(b, f.Name...)
			b = append(b, ": "...)
			b = appendValue(b, f.Value)
			b = append(b, "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

func appendValue(b []byte, v string) []byte {
	for i := range len(v) {
		switch c := v[i]; c {
		case '\r', '\n', 0:
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return b
}

// isToken is the grammar of field names (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 128 || tokenBytes[c/64]&(1<<(c%64)) == 0 {
			return false
		}
	}
	return s != ""
}

// tokenBytes has a bit for every byte that a token may hold.
var tokenBytes = func() (set [2]uint64) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		set[c/64] |= 1 << (c % 64)
	}
	return set
}()
