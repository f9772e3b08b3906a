package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients"
	"gatebench/gateway"
	"gatebench/internal/conf"
	"gatebench/server"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := gateway.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryBadValueIsNamedWithItsCure(t *testing.T) {
	for _, tc := range []struct {
		path, cure string
		spoil      func(*gateway.Config)
	}{
		{"listen", "host:port", func(c *gateway.Config) { c.Listen = "8080" }},
		{"listen", "host:port", func(c *gateway.Config) { c.Listen = "127.0.0.1:99999" }},
		{"upstream", "http://host:port", func(c *gateway.Config) { c.Upstream = "127.0.0.1:8081" }},
		{"upstream", "http://host:port", func(c *gateway.Config) { c.Upstream = "" }},
		{"upstream", "http://host:port", func(c *gateway.Config) { c.Upstream = "http:///x" }},
		{"upstream", "http or https", func(c *gateway.Config) { c.Upstream = "ftp://h" }},
		{"upstream", "take it out", func(c *gateway.Config) { c.Upstream = "http://u:p@h" }},
		{"upstream", "only a base path", func(c *gateway.Config) { c.Upstream = "http://h/?" }},
		{"upstream", "only a base path", func(c *gateway.Config) { c.Upstream = "http://h/#f" }},
		{"upstream", "1 to 65535", func(c *gateway.Config) { c.Upstream = "http://h:0" }},
		{"upstream", "1 to 65535", func(c *gateway.Config) { c.Upstream = "http://h:65536" }},
		{"server", "did you mean fasthttp?", func(c *gateway.Config) { c.Server = "fasthtp" }},
		{"server", "did you mean net/http?", func(c *gateway.Config) { c.Server = "nethttp" }},
		{"client", "name the HTTP library", func(c *gateway.Config) { c.Client = "" }},
		{"mode", "did you mean typed?", func(c *gateway.Config) { c.Mode = "type" }},
		{"pool.policy", "did you mean equal?", func(c *gateway.Config) { c.Pool.Policy = "eqal" }},
		{"pool.max_conns", "1 or more", func(c *gateway.Config) { c.Pool.MaxConns = 0 }},
		{"pool.max_pending", "or more", func(c *gateway.Config) { c.Pool.MaxPending = -1 }},
		{"pool.pending_timeout", "max_pending: 0", func(c *gateway.Config) { c.Pool.PendingTimeout = 0 }},
		{"pool.idle_timeout", "keep_alive: false", func(c *gateway.Config) { c.Pool.IdleTimeout = 0 }},
		{"timeouts.connect", "0s for no bound", func(c *gateway.Config) { c.Timeouts.Connect = -1 }},
		{"timeouts.response_header", "0s for no bound", func(c *gateway.Config) { c.Timeouts.ResponseHeader = -1 }},
		{"timeouts.request", "0s for no bound", func(c *gateway.Config) { c.Timeouts.Request = -1 }},
		{"timeouts.body_idle", "0s for no bound", func(c *gateway.Config) { c.Timeouts.BodyIdle = -1 }},
		{"retry.max_attempts", "1 to try once", func(c *gateway.Config) { c.Retry.MaxAttempts = 0 }},
		{"retry.retry_on[1]", "did you mean reset?", func(c *gateway.Config) { c.Retry.RetryOn = []string{"5xx", "rset"} }},
		{"retry.backoff.base", "0s or more", func(c *gateway.Config) { c.Retry.Backoff.Base = -1 }},
		{"retry.backoff.max", "that or more", func(c *gateway.Config) { c.Retry.Backoff.Max = time.Millisecond }},
		{"retry.per_try_timeout", "0s for no bound", func(c *gateway.Config) { c.Retry.PerTryTimeout = -1 }},
		{"retry.budget", "0% to 100%", func(c *gateway.Config) { c.Retry.Budget = 1.5 }},
		{"circuit_breaker.failure_rate", "above 0%", func(c *gateway.Config) { c.CircuitBreaker.FailureRate = 0 }},
		{"circuit_breaker.minimum_calls", "1 or more", func(c *gateway.Config) { c.CircuitBreaker.MinimumCalls = 0 }},
		{"circuit_breaker.window", "100ms or more", func(c *gateway.Config) { c.CircuitBreaker.Window = 99 * time.Millisecond }},
		{"circuit_breaker.open_for", "enabled: false", func(c *gateway.Config) { c.CircuitBreaker.OpenFor = 0 }},
		{"circuit_breaker.half_open_calls", "1 or more", func(c *gateway.Config) { c.CircuitBreaker.HalfOpenCalls = 0 }},
		{"limits.header", "1KiB to 1MiB", func(c *gateway.Config) { c.Limits.Header = 0 }},
		{"limits.header", "1KiB to 1MiB", func(c *gateway.Config) { c.Limits.Header = 2 * conf.MiB }},
		{"limits.request_body", "0B for no bound", func(c *gateway.Config) { c.Limits.RequestBody = -1 }},
		{"limits.response_body", "0B for no bound", func(c *gateway.Config) { c.Limits.ResponseBody = -1 }},
		{"tls", "write https://", func(c *gateway.Config) { c.TLS.ServerName = "h" }},
		{"host", "did you mean preserve?", func(c *gateway.Config) { c.Host = "preserved" }},
		{"forwarded", "did you mean strip?", func(c *gateway.Config) { c.Forwarded = "stripped" }},
		{"burn", "up to 10ms", func(c *gateway.Config) { c.Burn = -time.Microsecond }},
		{"burn", "up to 10ms", func(c *gateway.Config) { c.Burn = 20 * time.Millisecond }},
		{"admin.listen", "host:port", func(c *gateway.Config) { c.Admin.Listen = "here" }},
		{"admin.listen", "another port", func(c *gateway.Config) { c.Admin.Listen = c.Listen }},
	} {
		t.Run(tc.path+" "+tc.cure, func(t *testing.T) {
			c := gateway.DefaultConfig()
			tc.spoil(&c)
			ps := conf.Problems(c.Validate())
			if len(ps) != 1 || ps[0].Path != tc.path || !strings.Contains(ps[0].Message, tc.cure) {
				t.Errorf("got %v, want one at %s with %q", ps, tc.path, tc.cure)
			}
			if _, err := gateway.New(c, gateway.Parts{}); err == nil {
				t.Error("a gateway came of it")
			}
		})
	}
}

func TestAllBadValuesAreNamedAtOnce(t *testing.T) {
	c := gateway.DefaultConfig()
	c.Listen, c.Upstream, c.Pool.MaxConns, c.CircuitBreaker.OpenFor = "", "", 0, 0
	if ps := conf.Problems(c.Validate()); len(ps) != 4 {
		t.Errorf("got %v", ps)
	}
}

func TestWhatIsNotInForceIsNotChecked(t *testing.T) {
	c := gateway.DefaultConfig()
	c.CircuitBreaker = gateway.CircuitBreaker{}
	c.Pool = clients.Pool{Policy: clients.PoolLibrary}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAGoodUpstream(t *testing.T) {
	for _, upstream := range []string{
		"http://h", "https://h:443", "http://[::1]:8081", "http://h/base", "http://h/a%2Fb/", "HTTP://h",
	} {
		c := gateway.DefaultConfig()
		c.Upstream = upstream
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", upstream, err)
		}
	}
}

func TestTLSIsForHTTPS(t *testing.T) {
	c := gateway.DefaultConfig()
	c.Upstream, c.TLS.ServerName = "HTTPS://h", "other.example"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	c := gateway.DefaultConfig()
	c.Upstream = "http://h:81/base"
	d := &clients.Dialer{}
	got := c.Settings(d)
	if got.Dialer != d || got.Upstream.String() != c.Upstream {
		t.Errorf("dialer %p, upstream %v", got.Dialer, got.Upstream)
	}
	got.Dialer, got.Upstream = nil, nil
	if diff := cmp.Diff(clients.DefaultSettings(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServerConfig(t *testing.T) {
	c := gateway.DefaultConfig()
	c.Server, c.Limits.RequestBody, c.Timeouts.BodyIdle = server.FastHTTP, 5, time.Second
	h := open(t, func(cfg *gateway.Config) { *cfg = c })
	got := h.ServerConfig()
	if got.Reject == nil {
		t.Error("what the server refuses is not worded here")
	}
	got.Reject = nil
	if got.ReadHeaderTimeout <= 0 || got.IdleTimeout <= 0 {
		t.Errorf("slow callers are not bounded: %+v", got)
	}
	got.ReadHeaderTimeout, got.IdleTimeout = 0, 0
	want := server.Config{Kind: "fasthttp", MaxHeaderBytes: 16 << 10, MaxBodyBytes: 5, BodyIdle: time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
