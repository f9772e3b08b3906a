package clients

import (
	"net/url"
	"time"

	"gatebench/internal/conf"
)

// Settings are what every client is built from. The fairness rule: the same
// settings give the same pool, timeouts, retries and limits on the wire for every
// client; how the library does it is what is being compared.
type Settings struct {
	// Upstream is scheme://host[:port][/base]; the base is already part of
	// every [Request.Target].
	Upstream *url.URL

	Pool     Pool
	Timeouts Timeouts
	Retry    Retry
	Limits   Limits
	TLS      TLSSettings

	// Dialer opens, bounds and counts the connections of every client.
	Dialer *Dialer
}

// PoolPolicy says whose numbers the connection pool uses.
type PoolPolicy string

const (
	// PoolEqual gives every client the same numbers, admission on.
	PoolEqual PoolPolicy = "equal"
	// PoolLibrary leaves every client its library's defaults, admission off.
	PoolLibrary PoolPolicy = "library"
)

// Pool bounds the connections to upstream.
type Pool struct {
	// Policy is equal or library. Default equal. With library the other keys
	// of pool are refused.
	Policy PoolPolicy `yaml:"policy"`
	// MaxConns is how many connections to upstream may be open, and so how
	// many exchanges run at once. Default 256.
	MaxConns int `yaml:"max_conns"`
	// MaxPending is how many requests may wait for a place; one more is
	// rejected at once. Default 1024.
	MaxPending int `yaml:"max_pending"`
	// PendingTimeout is how long a request waits for a place. Default 1s.
	PendingTimeout time.Duration `yaml:"pending_timeout"`
	// IdleTimeout is how long an idle connection is kept. Default 90s.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// KeepAlive false opens a connection per request and asks upstream to
	// close it. Default true.
	KeepAlive bool `yaml:"keep_alive"`
}

// Timeouts bound one exchange; 0 switches a bound off.
type Timeouts struct {
	// Connect bounds the TCP connection and the TLS handshake, together.
	// Default 1s.
	Connect time.Duration `yaml:"connect"`
	// ResponseHeader bounds the time from the request written whole to the
	// response head, per attempt. Default 10s.
	ResponseHeader time.Duration `yaml:"response_header"`
	// Request bounds the whole logical request, attempts and backoff
	// included. It runs from the start, or from the end of the request body
	// where there is one (a slow honest upload is bounded by BodyIdle), and
	// ends with the response head. Default 15s.
	Request time.Duration `yaml:"request"`
	// BodyIdle bounds silence in a request or response body. Default 30s.
	BodyIdle time.Duration `yaml:"body_idle"`
}

// Retry is the policy under which one logical request becomes several attempts.
// Only a request whose method is idempotent (RFC 9110, section 9.2.2), unless told
// otherwise, and that has no body is sent again.
type Retry struct {
	// MaxAttempts counts the first try; 1 switches retry off. Default 1.
	MaxAttempts int `yaml:"max_attempts"`
	// RetryOn lists connect, reset, timeout, "5xx", "429". Default connect,
	// reset.
	RetryOn []string `yaml:"retry_on"`
	Backoff Backoff  `yaml:"backoff"`
	// PerTryTimeout bounds one attempt up to its response head, running from
	// the same moments as timeouts.request; 0s leaves it to the other
	// timeouts. Default 0s.
	PerTryTimeout time.Duration `yaml:"per_try_timeout"`
	// Budget bounds retries as a share of requests over the last ten
	// seconds, so that retries cannot multiply an outage. Default 20%.
	Budget conf.Ratio `yaml:"budget"`
	// NonIdempotent lets POST, PATCH and what else is not idempotent be sent
	// again too, for an upstream that takes the same request twice for one. A
	// request with a body is sent once all the same. Default false.
	NonIdempotent bool `yaml:"non_idempotent"`
}

// Backoff is the wait before attempt n: full jitter over base·2ⁿ⁻², at most Max.
// Retry-After is honoured up to Max too.
type Backoff struct {
	Base time.Duration `yaml:"base"` // Default 20ms.
	Max  time.Duration `yaml:"max"`  // Default 200ms.
}

// Limits bound the size of messages in bytes; 0 is unbounded.
type Limits struct {
	// Header bounds a message head. Default 16KiB.
	Header conf.Size `yaml:"header"`
	// RequestBody bounds a request body: more is 413 before any buffering.
	// Default 0B.
	RequestBody conf.Size `yaml:"request_body"`
	// ResponseBody bounds a response body. Default 0B.
	ResponseBody conf.Size `yaml:"response_body"`
}

// TLSSettings are for an https upstream.
type TLSSettings struct {
	// CA is a PEM file of certificates to trust instead of the system's.
	CA string `yaml:"ca"`
	// ServerName replaces the upstream's host in the handshake.
	ServerName string `yaml:"server_name"`
}

// DefaultSettings returns the documented defaults, without Upstream and Dialer.
func DefaultSettings() Settings {
	return Settings{
		Pool: Pool{
			Policy: PoolEqual, MaxConns: 256, MaxPending: 1024,
			PendingTimeout: time.Second, IdleTimeout: 90 * time.Second, KeepAlive: true,
		},
		Timeouts: Timeouts{
			Connect: time.Second, ResponseHeader: 10 * time.Second,
			Request: 15 * time.Second, BodyIdle: 30 * time.Second,
		},
		Retry: Retry{
			MaxAttempts: 1, RetryOn: []string{"connect", "reset"},
			Backoff: Backoff{Base: 20 * time.Millisecond, Max: 200 * time.Millisecond},
			Budget:  0.20,
		},
		Limits: Limits{Header: 16 * conf.KiB},
	}
}
