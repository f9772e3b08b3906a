package clients

import "errors"

// A Kind says what went wrong in words that are the same for every client: the
// reason in an error response, the label of a metric and the class in a report.
// The gateway maps each to a status in one table.
type Kind uint8

const (
	// Dial: no connection to upstream came about (refused, unreachable, no
	// such host).
	Dial Kind = iota + 1
	// TLS: the handshake with upstream failed.
	TLS
	// Reset: the connection ended before the response head was complete.
	Reset
	// Protocol: what upstream sent is not HTTP as we accept it, or its body
	// ended too early.
	Protocol
	// ResponseTooLarge: the response's head or body exceeds the limit.
	ResponseTooLarge
	// TimeoutConnect: no connection within timeouts.connect.
	TimeoutConnect
	// TimeoutHeader: no response head within timeouts.response_header or
	// timeouts.request.
	TimeoutHeader
	// TimeoutBody: silence in a body for longer than timeouts.body_idle.
	TimeoutBody
	// PoolExhausted: no place in the pool within pool.pending_timeout, or too
	// many are waiting for one.
	PoolExhausted
	// BreakerOpen: the circuit breaker rejected the request.
	BreakerOpen
	// RequestTooLarge: the request body exceeds limits.request_body.
	RequestTooLarge
	// BadRequest: the request body cannot be read as HTTP.
	BadRequest
	// Unsupported: the request asks for another protocol (Upgrade), which the
	// client cannot carry. Nothing went upstream.
	Unsupported
	// Canceled: downstream went away.
	Canceled
)

// Kinds lists every kind, in the order of the constants.
func Kinds() []Kind {
	ks := make([]Kind, 0, len(kindNames)-1)
	for k := range kindNames[1:] {
		ks = append(ks, Kind(k+1))
	}
	return ks
}

var kindNames = [...]string{
	"none", "dial", "tls", "reset", "protocol", "response_too_large",
	"timeout_connect", "timeout_header", "timeout_body", "pool_exhausted",
	"breaker_open", "request_too_large", "bad_request", "unsupported", "canceled",
}

// String gives the reason as it stands in responses, metrics and reports.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// An Error is how a client fails. Err is the library's own error: for people and
// logs; code branches on Kind.
type Error struct {
	Kind Kind
	Err  error

	// Attempts is how many tries on the wire were made, those included that got
	// no connection, but not one that found no place in the pool.
	Attempts int
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Kind.String()
	}
	return e.Kind.String() + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's tree, 0 if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}
