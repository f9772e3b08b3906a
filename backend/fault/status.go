package fault

import (
	"fmt"
	"net/http"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// A service that is up and refuses to work: the request never reaches it.
type status int

var statusKind = kind{
	key:   "status",
	asked: func(f Fault) bool { return f.Status != 0 },
	check: func(f Fault, c *conf.Check) {
		c.That(f.Status >= 400 && f.Status <= 599, "status", "%d tells of no failure: write 400 to 599, like 503", f.Status)
	},
	words:   func(f Fault) string { return fmt.Sprintf("status %d", f.Status) },
	perform: func(f Fault) effect { return status(f.Status) },
}

func (s status) answer(Exchange) *clients.Response {
	body := fmt.Sprintf(`{"title":%q,"status":%d,"detail":"a fault on purpose"}`, http.StatusText(int(s)), int(s))
	return clients.NewResponse(int(s), clients.Fields{{Name: "Content-Type", Value: "application/problem+json"}}, []byte(body))
}
