package gateway

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatebench/clients"
	"gatebench/gateway/breaker"
	"gatebench/internal/conf"
	"gatebench/server"
)

// Config is the gateway section of the YAML.
type Config struct {
	// Listen is the address to serve on, host:port; port 0 picks a free one.
	// Default 127.0.0.1:8080.
	Listen string `yaml:"listen"`
	// Upstream is where requests go: http(s)://host[:port][/base]. The base is
	// put before every target. Default http://127.0.0.1:8081.
	Upstream string `yaml:"upstream"`
	// Server is the inbound HTTP library: net/http or fasthttp. Default
	// net/http.
	Server string `yaml:"server"`
	// Client is the outbound HTTP library, the switch that this project is
	// about: net/http, resty, retryablehttp or fasthttp; or floor, which calls
	// nobody and answers from memory, to compare with. Default net/http.
	Client string `yaml:"client"`
	// Mode is what the gateway does with a message: proxy passes it on; typed
	// decodes the answers of the product endpoints into a Go value, the way of
	// the client's library, and encodes it again, which drops fields that a
	// product does not have. Other paths are passed on in both. Default proxy.
	Mode string `yaml:"mode"`

	Pool           clients.Pool        `yaml:"pool"`
	Timeouts       clients.Timeouts    `yaml:"timeouts"`
	Retry          clients.Retry       `yaml:"retry"`
	CircuitBreaker CircuitBreaker      `yaml:"circuit_breaker"`
	Limits         clients.Limits      `yaml:"limits"`
	TLS            clients.TLSSettings `yaml:"tls"`

	// Host is which Host field upstream sees: upstream's own name (upstream)
	// or the one that the caller sent (preserve). Default upstream.
	Host HostPolicy `yaml:"host"`
	// Forwarded is what becomes of the forwarding fields that the caller sent:
	// X-Forwarded-For grows by one (append), or all are dropped first (strip).
	// Default append.
	Forwarded ForwardedPolicy `yaml:"forwarded"`

	// Watch has the file that the gateway was started with read anew whenever its
	// content changes, as SIGHUP does: what can change while the gateway serves does,
	// the client first of all. Default false.
	Watch bool `yaml:"watch"`

	// Burn is CPU time to waste on every request, at most 10ms: for tests of
	// whether an experiment finds a difference that was put in, and for nothing
	// else. It is turned into a number of rounds once, at the start. Default 0s.
	Burn time.Duration `yaml:"burn"`

	Admin Admin `yaml:"admin"`
}

// HostPolicy says which Host field upstream sees.
type HostPolicy string

// The values of host.
const (
	HostUpstream HostPolicy = "upstream"
	HostPreserve HostPolicy = "preserve"
)

// ForwardedPolicy says whether the caller's forwarding fields are believed.
type ForwardedPolicy string

// The values of forwarded.
const (
	ForwardedAppend ForwardedPolicy = "append"
	ForwardedStrip  ForwardedPolicy = "strip"
)

// The values of mode.
const (
	modeProxy = "proxy"
	ModeTyped = "typed"
)

// Admin is where the gateway's own paths are.
type Admin struct {
	// Listen is an address for /-/healthz, /-/metrics and /-/about alone; the
	// main port then passes such paths on like any other. "" keeps them on
	// the main port. Default "".
	Listen string `yaml:"listen"`
}

// CircuitBreaker is the policy under which upstream gets a rest. Package breaker
// has its rules.
type CircuitBreaker struct {
	// Enabled false leaves the breaker out. Default true.
	Enabled bool `yaml:"enabled"`
	// FailureRate is the share of failures among successes and failures in
	// the window from which on the breaker opens. Default 50%.
	FailureRate conf.Ratio `yaml:"failure_rate"`
	// ConsecutiveFailures is after how many failures in a row, all in the
	// window, the breaker opens whatever the rate; 0 leaves it to the rate.
	// Default 0.
	ConsecutiveFailures int `yaml:"consecutive_failures"`
	// FailureOn lists what counts as a failure: connect, reset, timeout,
	// protocol, "5xx", "429". Other statuses are successes, other errors count
	// neither way, and nor does a caller who hangs up. Default connect, reset,
	// timeout, protocol, "5xx".
	FailureOn []string `yaml:"failure_on"`
	// MinimumCalls is how many outcomes the window must hold before the rate
	// means anything. Default 20.
	MinimumCalls int `yaml:"minimum_calls"`
	// Window is how far back outcomes count. Default 10s.
	Window time.Duration `yaml:"window"`
	// OpenFor is how long everything is rejected before upstream is probed.
	// Default 2s.
	OpenFor time.Duration `yaml:"open_for"`
	// HalfOpenCalls is how many probes are let through, and must all succeed,
	// to close the breaker again. Default 5.
	HalfOpenCalls int `yaml:"half_open_calls"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	s := clients.DefaultSettings()
	return Config{
		Listen:   "127.0.0.1:8080",
		Upstream: "http://127.0.0.1:8081",
		Server:   server.NetHTTP,
		Client:   "net/http",
		Mode:     modeProxy,
		Pool:     s.Pool,
		Timeouts: s.Timeouts,
		Retry:    s.Retry,
		CircuitBreaker: CircuitBreaker{
			Enabled: true, FailureRate: 0.5, FailureOn: breaker.DefaultFailures(), MinimumCalls: 20, Window: 10 * time.Second,
			OpenFor: 2 * time.Second, HalfOpenCalls: 5,
		},
		Limits:    s.Limits,
		TLS:       s.TLS,
		Host:      HostUpstream,
		Forwarded: ForwardedAppend,
	}
}

// Validate names every bad value at once. Whether Client exists is for whoever
// knows the registry to say.
func (c Config) Validate() error {
	var check conf.Check
	checkListen(&check, "listen", c.Listen)
	upstream, err := parseUpstream(c.Upstream)
	check.That(err == nil, "upstream", "%v", err)
	checkWord(&check, "server", c.Server, server.Kinds()...)
	check.That(c.Client != "", "client", "is empty: name the HTTP library to call upstream with, like net/http")
	checkWord(&check, "mode", c.Mode, modeProxy, ModeTyped)
	checkPool(&check, c.Pool)
	checkTimeouts(&check, c.Timeouts)
	checkRetry(&check, c.Retry)
	check.Within("circuit_breaker", c.CircuitBreaker.Validate())
	checkLimits(&check, c.Limits)
	check.That(c.TLS == (clients.TLSSettings{}) || err != nil || upstream.Scheme == "https", "tls",
		"is for an https upstream, and %s is not one: write https:// there or take tls out", c.Upstream)
	checkWord(&check, "host", c.Host, HostUpstream, HostPreserve)
	checkWord(&check, "forwarded", c.Forwarded, ForwardedAppend, ForwardedStrip)
	check.That(c.Burn >= 0 && c.Burn <= maxBurn, "burn",
		"%v is out of range: write 0s to burn nothing, or up to %v a request", c.Burn, maxBurn)
	if c.Admin.Listen != "" {
		checkListen(&check, "admin.listen", c.Admin.Listen)
		check.That(c.Admin.Listen != c.Listen || anyPort(c.Listen), "admin.listen",
			"%s is the main address: name another port, or leave it out to serve /-/ there", c.Admin.Listen)
	}
	return check.Err()
}

// Validate names every bad value at once.
func (c CircuitBreaker) Validate() error {
	if !c.Enabled {
		return nil
	}
	var check conf.Check
	check.That(c.FailureRate > 0 && c.FailureRate <= 1, "failure_rate",
		"%v cannot be a limit: write a share above 0%% and up to 100%%", c.FailureRate)
	check.That(c.ConsecutiveFailures >= 0, "consecutive_failures",
		"%d is negative: write 0 to leave it to failure_rate, or more", c.ConsecutiveFailures)
	check.That(len(c.FailureOn) > 0, "failure_on", "nothing is a failure: list what is, like connect, or write enabled: false")
	for i, on := range c.FailureOn {
		checkWord(&check, fmt.Sprintf("failure_on[%d]", i), on, breaker.FailureWords()...)
	}
	check.That(c.MinimumCalls >= 1, "minimum_calls", "%d is too few: write 1 or more", c.MinimumCalls)
	check.That(c.Window >= breaker.MinimumWindow, "window",
		"%v is too short to count in: write %v or more", c.Window, breaker.MinimumWindow)
	check.That(c.OpenFor > 0, "open_for", "%v is no rest: write a time above 0s, or enabled: false", c.OpenFor)
	check.That(c.HalfOpenCalls >= 1, "half_open_calls", "%d probes cannot close it again: write 1 or more", c.HalfOpenCalls)
	return check.Err()
}

func checkPool(check *conf.Check, p clients.Pool) {
	checkWord(check, "pool.policy", p.Policy, clients.PoolEqual, clients.PoolLibrary)
	if p.Policy == clients.PoolLibrary {
		return // the other keys are not in force
	}
	check.That(p.MaxConns >= 1, "pool.max_conns", "%d connections cannot carry a request: write 1 or more", p.MaxConns)
	check.That(p.MaxPending >= 0, "pool.max_pending", "%d is negative: write 0 to let nobody wait, or more", p.MaxPending)
	check.That(p.PendingTimeout > 0 || p.MaxPending == 0, "pool.pending_timeout",
		"%v is no wait: write a time above 0s, or max_pending: 0 to let nobody wait", p.PendingTimeout)
	check.That(p.IdleTimeout > 0, "pool.idle_timeout",
		"%v keeps no connection: write a time above 0s, or keep_alive: false for a connection per request", p.IdleTimeout)
}

func checkTimeouts(check *conf.Check, t clients.Timeouts) {
	for _, d := range []struct {
		path  string
		value time.Duration
	}{
		{"connect", t.Connect}, {"response_header", t.ResponseHeader},
		{"request", t.Request}, {"body_idle", t.BodyIdle},
	} {
		check.That(d.value >= 0, "timeouts."+d.path, "%v is negative: write 0s for no bound, or a time", d.value)
	}
}

func checkRetry(check *conf.Check, r clients.Retry) {
	check.That(r.MaxAttempts >= 1, "retry.max_attempts",
		"%d attempts send nothing: write 1 to try once, or more", r.MaxAttempts)
	for i, on := range r.RetryOn {
		checkWord(check, fmt.Sprintf("retry.retry_on[%d]", i), on, "connect", "reset", "timeout", "5xx", "429")
	}
	check.That(r.Backoff.Base >= 0, "retry.backoff.base", "%v is negative: write 0s or more", r.Backoff.Base)
	check.That(r.Backoff.Max >= r.Backoff.Base, "retry.backoff.max",
		"%v is below backoff.base, which is %v: write that or more", r.Backoff.Max, r.Backoff.Base)
	check.That(r.PerTryTimeout >= 0, "retry.per_try_timeout",
		"%v is negative: write 0s for no bound, or a time", r.PerTryTimeout)
	check.That(r.Budget >= 0 && r.Budget <= 1, "retry.budget", "%v is not a share: write 0%% to 100%%", r.Budget)
}

// The bounds of limits.header. fasthttp reads a head into one buffer of that size
// per connection, so "unbounded" would not be the same for all.
const (
	minHeader = 1 * conf.KiB
	maxHeader = 1 * conf.MiB
)

func checkLimits(check *conf.Check, l clients.Limits) {
	check.That(l.Header >= minHeader && l.Header <= maxHeader, "limits.header",
		"%v is out of range: write %v to %v", l.Header, minHeader, maxHeader)
	check.That(l.RequestBody >= 0, "limits.request_body", "%v is negative: write 0B for no bound, or a size", l.RequestBody)
	check.That(l.ResponseBody >= 0, "limits.response_body", "%v is negative: write 0B for no bound, or a size", l.ResponseBody)
}

// maxBurn leaves a mistyped unit no room: 20ms for 20us would be a gateway that stands.
const maxBurn = 10 * time.Millisecond

func checkListen(check *conf.Check, path, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	check.That(err == nil, path, "%q is not an address to listen on: write host:port, like 127.0.0.1:8080", addr)
}

func anyPort(addr string) bool { return strings.HasSuffix(addr, ":0") }

// checkWord refuses a word that is not in the list and names the nearest one.
func checkWord[S ~string](check *conf.Check, path string, got S, words ...S) {
	if slices.Contains(words, got) {
		return
	}
	listed := make([]string, len(words))
	for i, w := range words {
		listed[i] = string(w)
	}
	if len(words) == 1 {
		check.That(false, path, "%q is not known: write %s", got, words[0])
		return
	}
	near := slices.MinFunc(words, func(a, b S) int {
		return editDistance(string(got), string(a)) - editDistance(string(got), string(b))
	})
	check.That(false, path, "%q is not one of %s: did you mean %s?", got, strings.Join(listed, ", "), near)
}

// editDistance is Levenshtein's, one row at a time.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// parseUpstream reads http(s)://host[:port][/base]. Userinfo would become an
// Authorization field that nobody sent, a query would be joined to every
// target's, and a fragment means nothing on the wire.
func parseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is not a URL of a server: write http://host:port or https://host:port, with a /base path if need be", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the scheme %q is not spoken: write http or https", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("a user name in %q would become an Authorization field: take it out", u.Redacted())
	case strings.ContainsRune(s, '?'):
		return nil, fmt.Errorf("a query in %q has no place: only a base path may follow the host", s)
	case strings.ContainsRune(s, '#'):
		return nil, fmt.Errorf("a fragment in %q has no place: only a base path may follow the host", s)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%q is not a port: write 1 to 65535", p)
		}
	}
	return u, nil
}

// Settings returns what the client is built from. c must be valid.
func (c Config) Settings(d *clients.Dialer) clients.Settings {
	u, _ := parseUpstream(c.Upstream)
	return clients.Settings{
		Upstream: u, Pool: c.Pool, Timeouts: c.Timeouts, Retry: c.Retry,
		Limits: c.Limits, TLS: c.TLS, Dialer: d,
	}
}

// What slow callers get to send a head in, and to stay for without a word. They
// have no key: the comparison does not depend on them, as long as they are there.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// ServerConfig returns what the inbound server of either port is built from,
// without a log. For the main port see [Gateway.ServerConfig].
func (c Config) ServerConfig() server.Config {
	return server.Config{
		Kind:              c.Server,
		MaxHeaderBytes:    int64(c.Limits.Header),
		MaxBodyBytes:      int64(c.Limits.RequestBody),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		BodyIdle:          c.Timeouts.BodyIdle,
	}
}
