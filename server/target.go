package server

import "strings"

// originForm gives the target as it goes upstream, and the host if the target
// names one (RFC 9112, section 3.2). The origin-form stays byte for byte; the
// absolute-form loses scheme and authority, for whom a request reaches is decided
// by the gateway's configuration and never by the request; the asterisk-form is
// for OPTIONS. ok is false for anything else, the authority-form of CONNECT
// included.
func originForm(method, target string) (origin, host string, ok bool) {
	if strings.HasPrefix(target, "/") {
		return target, "", true
	}
	if target == "*" {
		return target, "", method == "OPTIONS"
	}
	rest, ok := cutScheme(target)
	if !ok {
		return "", "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, origin = rest[:end], rest[end:]
	// Userinfo in a target is an error (RFC 9110, section 4.2.4), and a
	// fragment never is part of one.
	if host == "" || strings.ContainsAny(host, "@\\") || strings.HasPrefix(origin, "#") {
		return "", "", false
	}
	switch {
	case origin == "" && method == "OPTIONS":
		origin = "*"
	case !strings.HasPrefix(origin, "/"):
		origin = "/" + origin
	}
	return origin, host, true
}

func cutScheme(target string) (rest string, ok bool) {
	scheme, rest, ok := strings.Cut(target, "://")
	return rest, ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}
