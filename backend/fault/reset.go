package fault

import (
	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/server"
)

// When a reset comes. Before the head a client may send the request again; after
// it, it may not: downstream has seen an answer.
const (
	BeforeHead = "before-head"
	AfterHead  = "after-head"
)

// A process that dies: its system answers for it, by TCP resets.
type reset struct{ afterHead bool }

var resetKind = kind{
	key:   "reset",
	asked: func(f Fault) bool { return f.Reset != "" },
	check: func(f Fault, c *conf.Check) {
		c.That(f.Reset == BeforeHead || f.Reset == AfterHead, "reset", "%q is no moment: write %s or %s", f.Reset, BeforeHead, AfterHead)
	},
	words:   func(f Fault) string { return "reset " + f.Reset },
	perform: func(f Fault) effect { return reset{f.Reset == AfterHead} },
}

func (r reset) answer(x Exchange) *clients.Response {
	if !r.afterHead {
		x.In.TakeOver(func(w server.Wire) { w.Reset() })
		return nil
	}
	resp := x.Next()
	body, ok := whole(resp)
	if !ok {
		return nil
	}
	x.In.TakeOver(func(w server.Wire) {
		_ = w.WriteHead(resp.Status, resp.Fields, max(1, len(body))) // who is gone needs no reset
		w.Reset()
	})
	return nil
}
