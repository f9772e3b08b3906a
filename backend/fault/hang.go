package fault

import (
	"gatebench/clients"
	"gatebench/internal/conf"
)

// A service that has taken the request and is never heard of again. It ends with
// its caller, also when the fault's window has closed before.
type hang struct{}

var hangKind = kind{
	key:     "hang",
	asked:   func(f Fault) bool { return f.Hang },
	check:   func(Fault, *conf.Check) {},
	words:   func(Fault) string { return "hang" },
	perform: func(Fault) effect { return hang{} },
}

func (hang) answer(x Exchange) *clients.Response {
	<-x.Ctx.Done()
	return nil
}
