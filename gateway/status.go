package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"gatebench/clients"
	"gatebench/gateway/breaker"
)

// A reason says why an exchange did not go as it should: a [clients.Kind], or one
// of the gateway's own. It is the word in the answer and the label of the metric.
type reason uint8

const (
	noReason reason = 0
	// loop: the request has been here before.
	loop = reason(clients.Canceled) + 1
	// fault: the gateway itself is to blame, by a panic or an error without a
	// kind.
	fault = loop + 1

	reasons = int(fault) + 1
)

func (r reason) String() string {
	switch r {
	case noReason:
		return ""
	case loop:
		return "loop"
	case fault:
		return "fault"
	}
	return clients.Kind(r).String()
}

// reasonOf returns the reason for an exchange's error.
func reasonOf(err error) reason {
	if err == nil {
		return noReason
	}
	if k := clients.KindOf(err); k != 0 {
		return reason(k)
	}
	return fault
}

// answers is the one table from reason to status, equal for all clients. What it
// tells downstream is fixed text: a library's error can hold upstream's address.
// There is no answer to whoever went away.
var answers = [reasons]struct {
	status int
	detail string
}{
	clients.Dial:             {http.StatusBadGateway, "No connection to upstream came about."},
	clients.TLS:              {http.StatusBadGateway, "The TLS handshake with upstream failed."},
	clients.Reset:            {http.StatusBadGateway, "Upstream closed the connection before it had answered."},
	clients.Protocol:         {http.StatusBadGateway, "Upstream's answer is not what the gateway accepts."},
	clients.ResponseTooLarge: {http.StatusBadGateway, "Upstream's answer is larger than the gateway's limit."},
	clients.TimeoutConnect:   {http.StatusGatewayTimeout, "No connection to upstream came about in time."},
	clients.TimeoutHeader:    {http.StatusGatewayTimeout, "Upstream did not answer in time."},
	clients.TimeoutBody:      {http.StatusGatewayTimeout, "A body stopped flowing."},
	clients.PoolExhausted:    {http.StatusServiceUnavailable, "All connections to upstream are in use, and the wait for one is too long."},
	clients.BreakerOpen:      {http.StatusServiceUnavailable, "Upstream has been failing and gets a rest."},
	clients.RequestTooLarge:  {http.StatusRequestEntityTooLarge, "The request body is larger than the gateway's limit."},
	clients.BadRequest:       {http.StatusBadRequest, "The request is not HTTP as the gateway accepts it."},
	clients.Unsupported:      {http.StatusNotImplemented, "The gateway's HTTP client cannot switch to another protocol (Upgrade)."},
	loop:                     {http.StatusLoopDetected, "The request has passed this gateway before."},
	fault:                    {http.StatusInternalServerError, "The gateway failed."},
}

// problemBodies holds the answers written out, since an overloaded gateway gives
// many of them.
var problemBodies = func() (bodies [reasons][]byte) {
	for r, a := range answers {
		if a.status != 0 {
			bodies[r] = problemBody(a.status, reason(r).String(), a.detail)
		}
	}
	return bodies
}()

// problemBody writes RFC 9457's object.
func problemBody(status int, reason, detail string) []byte {
	b, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Reason string `json:"reason"`
	}{"about:blank", http.StatusText(status), status, detail, reason})
	if err != nil {
		panic(err) // strings and an int
	}
	return b
}

func problem(status int, body []byte, more ...clients.Field) *clients.Response {
	fs := make(clients.Fields, 0, 1+len(more))
	fs.Add("Content-Type", "application/problem+json")
	return clients.NewResponse(status, append(fs, more...), body)
}

// answer is what downstream gets instead of upstream's response. err, which may be
// nil, is where the reason comes from.
func answer(r reason, err error) *clients.Response {
	if rejection, ok := asRejection(err); ok {
		return problem(answers[r].status, problemBodies[r],
			clients.Field{Name: "Retry-After", Value: retryAfter(rejection.RetryAfter)})
	}
	return problem(answers[r].status, problemBodies[r])
}

// retryAfter gives whole seconds, rounded up so that nobody comes back too early.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

func asRejection(err error) (*breaker.Rejection, bool) {
	return errors.AsType[*breaker.Rejection](err)
}
