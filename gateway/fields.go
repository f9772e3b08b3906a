package gateway

import (
	"strings"

	"gatebench/clients"
)

// A role is what a field means to the hop.
type role uint8

const (
	endToEnd       role = iota
	hopByHop            // ends here, both ways
	connection          // likewise, and so does every field that it names
	te                  // likewise, but for "trailers"
	expect              // answered by the server, not by upstream
	via                 // tells who has passed the message on
	forwardedFor        // grows by one or starts anew
	forwardedHost       // the caller's is replaced by ours
	forwardedProto      // likewise
	forwarded           // RFC 7239; we add none
)

// roleOf looks at the length first: it alone settles nearly all fields.
// RFC 9110, section 7.6.1, and for Proxy-Connection appendix C.2.2 of RFC 9112.
func roleOf(name string) role {
	is := func(s string) bool { return clients.EqualName(name, s) }
	switch len(name) {
	case 2:
		if is("TE") {
			return te
		}
	case 3:
		if is("Via") {
			return via
		}
	case 6:
		if is("Expect") {
			return expect
		}
	case 7:
		if is("Upgrade") || is("Trailer") {
			return hopByHop
		}
	case 9:
		if is("Forwarded") {
			return forwarded
		}
	case 10:
		if is("Connection") {
			return connection
		}
		if is("Keep-Alive") {
			return hopByHop
		}
	case 15:
		if is("X-Forwarded-For") {
			return forwardedFor
		}
	case 16:
		if is("X-Forwarded-Host") {
			return forwardedHost
		}
		if is("Proxy-Connection") {
			return hopByHop
		}
	case 17:
		if is("X-Forwarded-Proto") {
			return forwardedProto
		}
		if is("Transfer-Encoding") {
			return hopByHop
		}
	case 18:
		if is("Proxy-Authenticate") {
			return hopByHop
		}
	case 19:
		if is("Proxy-Authorization") {
			return hopByHop
		}
	}
	return endToEnd
}

// A nameSet holds field names in lower case.
type nameSet map[string]struct{}

func (s nameSet) has(name string) bool {
	_, ok := s[strings.ToLower(name)]
	return ok
}

// nominated returns the names on all Connection lines that do not end here anyway;
// nil in the usual case, which costs no allocation. A set, since a hostile head can
// name thousands.
func nominated(fs clients.Fields) nameSet {
	var names nameSet
	for i := range fs {
		if roleOf(fs[i].Name) != connection {
			continue
		}
		for option := range strings.SplitSeq(fs[i].Value, ",") {
			option = trim(option)
			if option == "" || clients.EqualName(option, "close") || endsHere(roleOf(option)) {
				continue
			}
			if names == nil {
				names = nameSet{}
			}
			names[strings.ToLower(option)] = struct{}{}
		}
	}
	return names
}

func endsHere(r role) bool { return r == hopByHop || r == connection || r == te }

// asksForTrailers reports whether the value of a TE field has the one member that
// is meant for everybody on the way.
func asksForTrailers(value string) bool {
	for coding := range strings.SplitSeq(value, ",") {
		coding, _, _ = strings.Cut(coding, ";")
		if strings.EqualFold(trim(coding), "trailers") {
			return true
		}
	}
	return false
}

// trim takes off optional whitespace (RFC 9110, section 5.6.3), which is less than
// what Unicode calls space.
func trim(s string) string { return strings.Trim(s, " \t") }

// wellFormed reports whether f can stand in a message head as one line: a name
// that is a token, and no control character in the value but tab (RFC 9110,
// sections 5.1 and 5.5). net/http refuses anything else in a request; doing it here
// makes that true for every server and every client, in both directions.
func wellFormed(f *clients.Field) bool { return isToken(f.Name) && isValue(f.Value) }

func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenBytes = func() (ok [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		ok[c] = true
	}
	return ok
}()

func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isVisible is isValue without space and tab: for targets and hosts.
func isVisible(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// endToEndOnly drops, in place, what ends at this hop. ok is false if a field is
// not well-formed.
func endToEndOnly(fs clients.Fields) (kept clients.Fields, ok bool) {
	named := nominated(fs)
	kept = fs[:0]
	for i := range fs {
		f := fs[i]
		if !wellFormed(&f) {
			return nil, false
		}
		if endsHere(roleOf(f.Name)) || named != nil && named.has(f.Name) {
			continue
		}
		kept = append(kept, f)
	}
	return kept, true
}
