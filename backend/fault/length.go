package fault

import (
	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/server"
)

// Which way a Content-Length is wrong.
const (
	TooLong  = "long"
	TooShort = "short"
)

// A service that counts wrongly. Too long leaves the client waiting for bytes that
// never come; too short leaves bytes on the connection which the next answer must
// not be made of.
type length struct{ long bool }

var lengthKind = kind{
	key:   "length",
	asked: func(f Fault) bool { return f.Length != "" },
	check: func(f Fault, c *conf.Check) {
		c.That(f.Length == TooLong || f.Length == TooShort, "length", "%q is no way to be wrong: write %s or %s", f.Length, TooLong, TooShort)
	},
	words:   func(f Fault) string { return "length too " + f.Length },
	perform: func(f Fault) effect { return length{f.Length == TooLong} },
}

func (l length) answer(x Exchange) *clients.Response {
	resp := x.Next()
	if bodiless(x.In, resp) {
		return resp
	}
	body, ok := whole(resp)
	if !ok {
		return nil
	}
	said := len(body) / 2
	if l.long {
		said = 2 * len(body)
	}
	x.In.TakeOver(func(w server.Wire) {
		_ = w.WriteHead(resp.Status, resp.Fields, said)
		_ = w.Write(body)
		// Until the peer closes, or sends its next request: that meets the end
		// of the connection at the latest.
		w.Await()
	})
	return nil
}
