package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"gatebench/clients"
	"gatebench/server"
)

// ownPrefix is reserved: what lies under it is answered here and never counted.
const ownPrefix = "/-/"

// ownPaths answers for the gateway itself.
type ownPaths struct {
	about   []byte
	metrics prometheus.Gatherer
}

var _ server.Handler = (*ownPaths)(nil)

// Serve implements [server.Handler].
func (o *ownPaths) Serve(_ context.Context, in *server.Inbound) *clients.Response {
	path, _, _ := strings.Cut(in.Target, "?")
	var content func() *clients.Response
	switch path {
	case ownPrefix + "healthz":
		content = health
	case ownPrefix + "metrics":
		content = o.exposition
	case ownPrefix + "about":
		content = o.aboutJSON
	default:
		return ownProblem(http.StatusNotFound, "not_found", "There is healthz, metrics and about under "+ownPrefix+".")
	}
	if in.Method != http.MethodGet && in.Method != http.MethodHead {
		return ownProblem(http.StatusMethodNotAllowed, "method_not_allowed", "This can only be read.",
			clients.Field{Name: "Allow", Value: "GET, HEAD"})
	}
	return content()
}

// health says that the gateway serves. Whether upstream does is another question,
// and asking it here would take the gateway out of service along with upstream.
func health() *clients.Response { return own("text/plain; charset=utf-8", []byte("ok\n")) }

func (o *ownPaths) exposition() *clients.Response {
	text, err := exposition(o.metrics)
	if err != nil {
		return ownProblem(http.StatusInternalServerError, fault.String(), err.Error())
	}
	return own(expositionType, text)
}

func (o *ownPaths) aboutJSON() *clients.Response { return own("application/json", o.about) }

func own(contentType string, body []byte) *clients.Response {
	return clients.NewResponse(http.StatusOK, clients.Fields{
		{Name: "Content-Type", Value: contentType},
		{Name: "Cache-Control", Value: "no-store"},
	}, body)
}

func ownProblem(status int, reason, detail string, more ...clients.Field) *clients.Response {
	return problem(status, problemBody(status, reason, detail), more...)
}
