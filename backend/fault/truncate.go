package fault

import (
	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/server"
)

// A service that is stopped within an answer: half of it comes, and then the end of
// the connection, in order. What looks at the end alone takes it for whole.
type truncate struct{}

var truncateKind = kind{
	key:     "truncate",
	asked:   func(f Fault) bool { return f.Truncate },
	check:   func(Fault, *conf.Check) {},
	words:   func(Fault) string { return "truncated body" },
	perform: func(Fault) effect { return truncate{} },
}

func (truncate) answer(x Exchange) *clients.Response {
	resp := x.Next()
	if bodiless(x.In, resp) {
		return resp
	}
	body, ok := whole(resp)
	if !ok {
		return nil
	}
	x.In.TakeOver(func(w server.Wire) {
		_ = w.WriteHead(resp.Status, resp.Fields, len(body))
		_ = w.Write(body[:len(body)/2])
	})
	return nil
}
