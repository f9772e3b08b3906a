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
	upgrade             // likewise, but where the protocol may change, see upgrade.go
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
	switch len(name) {
	case 2:
		return roleIf(name, "TE", te)
	case 3:
		return roleIf(name, "Via", via)
	case 6:
		return roleIf(name, "Expect", expect)
	case 7:
		return roleIf(name, "Upgrade", upgrade) | roleIf(name, "Trailer", hopByHop)
	case 9:
		return roleIf(name, "Forwarded", forwarded)
	case 10:
		return roleIf(name, "Connection", connection) | roleIf(name, "Keep-Alive", hopByHop)
	case 15:
		return roleIf(name, "X-Forwarded-For", forwardedFor)
	case 16:
		return roleIf(name, "X-Forwarded-Host", forwardedHost) | roleIf(name, "Proxy-Connection", hopByHop)
	case 17:
		return roleIf(name, "X-Forwarded-Proto", forwardedProto) | roleIf(name, "Transfer-Encoding", hopByHop)
	case 18:
		return roleIf(name, "Proxy-Authenticate", hopByHop)
	case 19:
		return roleIf(name, "Proxy-Authorization", hopByHop)
	}
	return endToEnd
}

// roleIf returns r if name is known, and endToEnd, which is zero, if not. The first
// letter comes before the call that compares the rest.
func roleIf(name, known string, r role) role {
	if name[0]|0x20 == known[0]|0x20 && clients.EqualName(name, known) {
		return r
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
		if name := fs[i].Name; len(name) != len("Connection") || roleOf(name) != connection {
			continue
		}
		for option := range strings.SplitSeq(fs[i].Value, ",") {
			option = trim(option)
			if !isToken(option) || clients.EqualName(option, "close") || endsHere(roleOf(option)) {
				continue // no name, or of no consequence
			}
			if names == nil {
				names = nameSet{}
			}
			names[strings.ToLower(option)] = struct{}{}
		}
	}
	return names
}

func endsHere(r role) bool {
	return r == hopByHop || r == connection || r == te || r == upgrade
}

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

// lists reports whether a comma-separated list has that member.
func lists(list, member string) bool {
	for m := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(trim(m), member) {
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

// isValue goes by eight bytes, since it sees every byte of every message head.
func isValue(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		if hasControl(word(s)) && !isPlain(s[:8]) {
			return false
		}
	}
	return isPlain(s)
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// word is the first eight bytes of s; the compiler makes one load of it.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// hasControl reports whether a byte of w is below 0x20 or 0x7f. A byte underflows
// into its top bit if it is smaller than what is subtracted, unless the bit was
// set before (Warren, Hacker's Delight, section 6-1).
func hasControl(w uint64) bool {
	const each = 0x0101010101010101
	del := w ^ each*0x7f
	return ((w-each*0x20)&^w|(del-each)&^del)&(each*0x80) != 0
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
