package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// right is a client that keeps every rule, over net/http.
func right(s clients.Settings) (clients.Client, error) {
	t, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
	if err != nil {
		return nil, err
	}
	return clients.RoundTripper(t, s), nil
}

// The ways to make it wrong.

// keys has the client see other settings than it was given.
func keys(change func(*clients.Settings)) Factory {
	return func(s clients.Settings) (clients.Client, error) {
		change(&s)
		return right(s)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// trips puts something around the transport.
func trips(wrap func(*http.Transport) http.RoundTripper) Factory {
	return func(s clients.Settings) (clients.Client, error) {
		t, err := clients.NewTransport(s, http.DefaultTransport.(*http.Transport))
		if err != nil {
			return nil, err
		}
		return clients.RoundTripper(wrap(t), s), nil
	}
}

// asks changes what is sent.
func asks(change func(*http.Request)) Factory {
	return trips(func(t *http.Transport) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			change(r)
			return t.RoundTrip(r)
		})
	})
}

// answers changes what came.
func answers(change func(*http.Response)) Factory {
	return trips(func(t *http.Transport) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := t.RoundTrip(r)
			if err == nil {
				change(resp)
			}
			return resp, err
		})
	})
}

// again sends a request once more if bad.
func again(bad func(*http.Response, error) bool) Factory {
	return trips(func(t *http.Transport) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := t.RoundTrip(r)
			if !bad(resp, err) {
				return resp, err
			}
			r = r.Clone(r.Context())
			if r.Body != nil {
				r.Body, r.ContentLength = http.NoBody, 0
			}
			return t.RoundTrip(r)
		})
	})
}

// wire replaces bytes on their way from upstream.
func wire(from, to string) Factory {
	return trips(func(t *http.Transport) http.RoundTripper {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return &forgingConn{c, []byte(from), []byte(to)}, err
		}
		return t
	})
}

type forgingConn struct {
	net.Conn
	from, to []byte
}

func (c *forgingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return copy(p, bytes.ReplaceAll(p[:n], c.from, c.to)), err
}

// does stands in for the client's Do.
func does(do func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error)) Factory {
	return func(s clients.Settings) (clients.Client, error) {
		cl, err := right(s)
		return &standIn{cl, do}, err
	}
}

type standIn struct {
	clients.Client
	do func(clients.Client, context.Context, *clients.Request) (*clients.Response, error)
}

func (c *standIn) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	return c.do(c.Client, ctx, req)
}

// requests changes what Do is asked, responses what it answers, and calls an
// error by another name.
func requests(change func(*clients.Request)) Factory {
	return does(func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
		changed := *req
		changed.Fields = slices.Clone(req.Fields)
		change(&changed)
		return cl.Do(ctx, &changed)
	})
}

func responses(change func(*clients.Response)) Factory {
	return does(func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
		resp, err := cl.Do(ctx, req)
		if err == nil {
			change(resp)
		}
		return resp, err
	})
}

func misnames(from, to clients.Kind) Factory {
	return does(func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
		resp, err := cl.Do(ctx, req)
		if clients.KindOf(err) == from {
			err = &clients.Error{Kind: to}
		}
		return resp, err
	})
}

// bodies changes response bodies.
func bodies(wrap func(io.ReadCloser) io.ReadCloser) Factory {
	return answers(func(resp *http.Response) {
		if resp.StatusCode != http.StatusSwitchingProtocols {
			resp.Body = wrap(resp.Body)
		}
	})
}

type body struct {
	io.Reader
	close func() error
}

func (b body) Close() error { return b.close() }

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// cut ends whole exchanges after limit, as http.Client.Timeout does.
func cut(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	resp, err := cl.Do(ctx, req)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.OnEnd(func(error) { cancel() })
	return resp, nil
}

func deaf(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
	return cl.Do(context.WithoutCancel(ctx), req)
}

// naive speaks HTTP over one connection, which it never looks at or lets go of.
func naive(s clients.Settings) (clients.Client, error) {
	var (
		mu   sync.Mutex
		conn net.Conn
		br   *bufio.Reader
	)
	return clients.RoundTripper(tripper(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if conn == nil {
			var err error
			if conn, err = s.Dialer.DialContext(r.Context(), "tcp", s.Upstream.Host); err != nil {
				return nil, err
			}
			br = bufio.NewReader(conn)
		}
		_ = conn.SetReadDeadline(time.Now().Add(limit))
		if err := r.Write(conn); err != nil {
			return nil, err
		}
		resp, err := http.ReadResponse(br, r)
		if err == nil {
			resp.Body = body{resp.Body, func() error { return nil }}
		}
		return resp, err
	}), s), nil
}

// TestEveryCaseHasTeeth runs every case against a client that breaks its rule.
func TestEveryCaseHasTeeth(t *testing.T) {
	wrong := wrongClients(t)
	for name := range wrong {
		if !slices.ContainsFunc(cases(), func(tc testCase) bool { return tc.Name == name }) {
			t.Errorf("a wrong client for %q, which is no case", name)
		}
	}
	// Most of the time goes into waiting for what does not come, so many run at
	// once; but who counts goroutines must be alone.
	bite := func(tc testCase) func(*testing.T) {
		return func(t *testing.T) {
			broken, ok := wrong[tc.Name]
			if !ok {
				t.Fatal("no wrong client for it")
			}
			problems, skipped := tc.check(broken, grace)
			// What breaks a limit by being quick can be slow enough to keep it where
			// the machine is busy.
			for range 2 {
				if len(problems) > 0 || skipped != "" {
					break
				}
				problems, skipped = tc.check(broken, grace)
			}
			switch {
			case skipped != "":
				t.Skip(skipped)
			case len(problems) == 0:
				t.Errorf("a client that breaks the rule gets away with it: %s", tc.Text)
			default:
				t.Log(problems[0])
			}
		}
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, 16)
	for _, tc := range cases() {
		if tc.Name == "no-goroutines" {
			defer t.Run(tc.Name, bite(tc))
			continue
		}
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(tc.Name, bite(tc))
		})
	}
	wg.Wait()
}

func TestDeclaredDeviationMustFail(t *testing.T) {
	tc := rule("name", "text", nil)
	for _, tt := range []struct {
		problems []string
		declared bool
		fails    bool
	}{
		{nil, false, false},
		{[]string{"wrong"}, false, true},
		{[]string{"wrong"}, true, false},
		{nil, true, true},
	} {
		if got := tc.judge(tt.problems, tt.declared); (got != "") != tt.fails {
			t.Errorf("problems %q, declared %t: %q, want a failure: %t", tt.problems, tt.declared, got, tt.fails)
		}
	}
}

func TestCaseNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Rules() {
		if seen[r.Name] || r.Text == "" {
			t.Errorf("%q stands twice or says nothing", r.Name)
		}
		seen[r.Name] = true
	}
}

func wrongClients(t *testing.T) map[string]Factory {
	no := func(resp *http.Response, err error) bool { return err != nil }
	busy := func(resp *http.Response, err error) bool { return err == nil && resp.StatusCode == 503 }
	truncating := bodies(func(b io.ReadCloser) io.ReadCloser {
		return body{readFunc(func(p []byte) (int, error) {
			n, err := b.Read(p)
			if err != nil {
				err = io.EOF
			}
			return n, err
		}), b.Close}
	})
	hoarding := asks(func(r *http.Request) {
		if r.Body != nil {
			whole, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(whole))
		}
	})
	plain := does(func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
		resp, err := cl.Do(ctx, req)
		if err != nil {
			err = errors.New("something went wrong")
		}
		return resp, err
	})
	never := func(d func(*clients.Settings) *time.Duration) Factory {
		return keys(func(s *clients.Settings) { *d(s) = 0 })
	}
	return map[string]Factory{
		"raw-target": requests(func(r *clients.Request) { r.Target = strings.ReplaceAll(r.Target, "//", "/") }),
		"asterisk-target": requests(func(r *clients.Request) {
			if r.Target == "*" {
				r.Target = "/"
			}
		}),
		"no-injection": requests(func(r *clients.Request) {
			for _, f := range r.Fields {
				if _, rest, ok := strings.Cut(f.Value, "\r\n"); ok {
					name, value, _ := strings.Cut(rest[:strings.Index(rest, "\r\n")], ": ")
					r.Fields = clients.Fields{{Name: name, Value: value}}
				}
			}
		}),
		"host":               asks(func(r *http.Request) { r.Host = strings.ToLower(r.Host) }),
		"no-invented-fields": asks(func(r *http.Request) { r.Header.Set("Accept", "*/*") }),
		"request-fields": asks(func(r *http.Request) {
			for name, vs := range r.Header {
				r.Header.Set(name, vs[0])
			}
		}),
		"cookie-bytes": asks(func(r *http.Request) {
			cookies := r.Cookies()
			r.Header.Del("Cookie")
			for _, c := range cookies {
				r.AddCookie(c)
			}
		}),
		"cookies-not-stored": trips(func(t *http.Transport) http.RoundTripper {
			jar, _ := cookiejar.New(nil)
			hc := &http.Client{Transport: t, Jar: jar}
			return tripper(func(r *http.Request) (*http.Response, error) {
				r.RequestURI = ""
				return hc.Do(r)
			})
		}),
		"te-trailers": requests(func(r *clients.Request) { r.Fields.Del("TE") }),
		"response-fields": answers(func(r *http.Response) {
			if vs := r.Header["Set-Cookie"]; vs != nil {
				r.Header.Set("Set-Cookie", strings.Join(vs, ", "))
			}
		}),
		"repeated-content-encoding":   answers(func(r *http.Response) { r.Header.Set("Content-Encoding", "b") }),
		"no-invented-response-fields": answers(func(r *http.Response) { r.Header.Set("Content-Type", "text/plain") }),
		"long-fields":                 keys(func(s *clients.Settings) { s.Limits.Header = 4 * conf.KiB }),
		"gzip-kept": trips(func(t *http.Transport) http.RoundTripper {
			t.DisableCompression = false
			return t
		}),
		"redirects-kept": trips(func(t *http.Transport) http.RoundTripper {
			hc := &http.Client{Transport: t}
			return tripper(func(r *http.Request) (*http.Response, error) {
				r.RequestURI = ""
				return hc.Do(r)
			})
		}),

		"request-framing": requests(func(r *clients.Request) {
			if r.Body != nil {
				r.ContentLength = -1
			}
		}),
		"bodyless-delete": requests(func(r *clients.Request) {
			if r.Method == "DELETE" {
				r.Body, r.ContentLength = strings.NewReader(""), -1
			}
		}),
		"body-of-any-method": requests(func(r *clients.Request) {
			if r.Method == "GET" {
				r.Body, r.ContentLength = nil, 0
			}
		}),
		"head-response":    responses(func(r *clients.Response) { r.ContentLength = 0 }),
		"no-body-statuses": responses(func(r *clients.Response) { r.ContentLength = 0 }),
		"response-framing": responses(func(r *clients.Response) { r.ContentLength = -1 }),
		"repeated-length":  wire("Content-Length: 5\r\nContent-Length: 5", "Content-Length: 4\r\nContent-Length: 5"),
		"http10-response":  wire("HTTP/1.0", "HTTP/1.1"),

		"interim-skipped":    wire("103 Early Hints", "203 Early Hints"),
		"1xx":                requests(func(r *clients.Request) { r.Informational = nil }),
		"no-waiting-for-100": asks(func(r *http.Request) { r.Header.Set("Expect", "100-continue") }),
		"trailers":           responses(func(r *clients.Response) { r.Trailers = nil }),
		"odd-trailers": trips(func(t *http.Transport) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				resp, err := t.RoundTrip(r)
				if err == nil && resp.Trailer != nil {
					_ = resp.Body.Close()
					return nil, errors.New("forbidden trailer")
				}
				return resp, err
			})
		}),
		"upgrade": responses(func(r *clients.Response) { r.Upgraded = nil }),
		"upgraded-never-pooled": responses(func(r *clients.Response) {
			if r.Status == 101 {
				up := r.Upgraded
				t.Cleanup(func() { _ = up.Close() }) // until then it is lost
				r.Upgraded, r.Body = nil, clients.NoBody
			}
		}),

		"streaming-request":  hoarding,
		"head-before-upload": hoarding,
		"streaming-response": bodies(func(b io.ReadCloser) io.ReadCloser {
			whole, _ := io.ReadAll(b)
			return body{bytes.NewReader(whole), b.Close}
		}),
		"large-bodies": bodies(func(b io.ReadCloser) io.ReadCloser {
			n := 0
			return body{readFunc(func(p []byte) (int, error) {
				k, err := b.Read(p)
				if n < 1<<19 && n+k >= 1<<19 {
					p[0]++
				}
				n += k
				return k, err
			}), b.Close}
		}),
		"truncated-length":    truncating,
		"truncated-chunked":   truncating,
		"truncated-chunk":     truncating,
		"reset-in-body":       truncating,
		"bad-chunk":           truncating,
		"response-body-limit": keys(func(s *clients.Settings) { s.Limits.ResponseBody = 0 }),
		"request-body-error":  misnames(clients.RequestTooLarge, clients.BadRequest),
		"short-request-body": requests(func(r *clients.Request) {
			r.Body = io.MultiReader(r.Body, io.LimitReader(zeros{}, r.ContentLength-5))
		}),
		"end-once": responses(func(r *clients.Response) { r.End(nil) }),
		"parallel-bodies": func(s clients.Settings) (clients.Client, error) {
			var (
				mu    sync.Mutex
				stash []byte
			)
			return bodies(func(b io.ReadCloser) io.ReadCloser {
				whole, _ := io.ReadAll(b)
				mu.Lock()
				defer mu.Unlock()
				whole, stash = stash, whole
				return body{bytes.NewReader(whole), b.Close}
			})(s)
		},

		"refused": plain,
		"tls":     keys(func(s *clients.Settings) { s.TLS = clients.TLSSettings{} }),
		"tls-refused": trips(func(t *http.Transport) http.RoundTripper {
			t.DialTLSContext = nil
			t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
			return t
		}),
		"ipv6": trips(func(t *http.Transport) http.RoundTripper {
			dial := t.DialContext
			t.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, "tcp4", addr) }
			return t
		}),
		"closed-before-head": again(no),
		"reset-before-head":  again(no),
		"bad-heads":          wire("HTTP/1.1 099", "HTTP/1.1 200"),
		"status-000":         wire("HTTP/1.1 000", "HTTP/1.1 200"),
		"head-too-large":     keys(func(s *clients.Settings) { s.Limits.Header = conf.MiB }),
		"upload-reset":       misnames(clients.Reset, clients.Protocol),
		"upload-cut":         misnames(clients.Reset, clients.TimeoutBody),
		"early-response": answers(func(r *http.Response) {
			if r.StatusCode == 413 {
				r.StatusCode = 502
			}
		}),

		"connect-timeout":         misnames(clients.TimeoutConnect, clients.Dial),
		"tls-timeout":             misnames(clients.TimeoutConnect, clients.TLS),
		"response-header-timeout": never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.ResponseHeader }),
		"request-timeout":         never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.Request }),
		"request-covers-connect":  never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.Request }),
		"trickled-head":           never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.ResponseHeader }),
		"per-try-timeout":         never(func(s *clients.Settings) *time.Duration { return &s.Retry.PerTryTimeout }),
		"slow-upload":             does(cut),
		"after-upload":            never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.Request }),
		"body-idle":               never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.BodyIdle }),
		"slow-body":               does(cut),
		"slow-reader": bodies(func(b io.ReadCloser) io.ReadCloser {
			begin := time.Now()
			return body{readFunc(func(p []byte) (int, error) {
				if time.Since(begin) > limit {
					return 0, errors.New("too slow")
				}
				return b.Read(p[:min(len(p), 5)])
			}), b.Close}
		}),
		"upload-unread": never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.BodyIdle }),
		"upload-silent": never(func(s *clients.Settings) *time.Duration { return &s.Timeouts.BodyIdle }),
		"no-lingering":  keys(func(s *clients.Settings) { s.Pool.KeepAlive = false }),
		"no-limits":     does(cut),

		"reuse": keys(func(s *clients.Settings) { s.Pool.KeepAlive = false }),
		"no-reuse-half-read": bodies(func(b io.ReadCloser) io.ReadCloser {
			return body{b, func() error {
				_, _ = io.Copy(io.Discard, b)
				return b.Close()
			}}
		}),
		"no-poison":          naive,
		"unasked-bytes":      naive,
		"unasked-bytes-idle": naive,
		"connection-close":   naive,
		"keep-alive-off":     keys(func(s *clients.Settings) { s.Pool.KeepAlive = true }),
		"max-conns":          keys(func(s *clients.Settings) { s.Pool.MaxConns = 8 }),
		"idle-timeout":       keys(func(s *clients.Settings) { s.Pool.IdleTimeout /= 16 }),
		"pool-library": func(s clients.Settings) (clients.Client, error) {
			places := make(chan struct{}, 8)
			return does(func(cl clients.Client, ctx context.Context, req *clients.Request) (*clients.Response, error) {
				select {
				case places <- struct{}{}:
				default:
					return nil, &clients.Error{Kind: clients.PoolExhausted}
				}
				resp, err := cl.Do(ctx, req)
				if err != nil {
					<-places
					return nil, err
				}
				resp.OnEnd(func(error) { <-places })
				return resp, nil
			})(s)
		},
		"stale-get":   naive,
		"closed-idle": naive,
		"stale-post":  again(no),

		"retry-off":                    again(busy),
		"retry-5xx":                    keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-429":                    keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-connect":                keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-reset":                  keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-timeout":                keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-only-listed":            keys(func(s *clients.Settings) { s.Retry.RetryOn = []string{"5xx", "429", "connect", "reset", "timeout"} }),
		"retry-exhausted":              responses(func(r *clients.Response) { r.Fields.Del("X-Reason") }),
		"retry-methods":                keys(func(s *clients.Settings) { s.Retry.MaxAttempts = 1 }),
		"retry-any-method":             keys(func(s *clients.Settings) { s.Retry.NonIdempotent = false }),
		"retry-no-body":                again(busy),
		"retry-connections":            keys(func(s *clients.Settings) { s.Pool.KeepAlive = false }),
		"retry-then-slow":              does(cut),
		"retry-stalled":                keys(func(s *clients.Settings) { s.Retry.RetryOn = nil }),
		"retry-after":                  keys(func(s *clients.Settings) { s.Retry.Backoff.Max = time.Millisecond }),
		"retry-after-capped":           keys(func(s *clients.Settings) { s.Retry.Backoff.Max = 2 * grace }),
		"retry-within-request-timeout": keys(func(s *clients.Settings) { s.Retry.Backoff.Max = time.Millisecond }),
		"retry-canceled":               keys(func(s *clients.Settings) { s.Retry.Backoff.Max = time.Millisecond }),
		"retry-budget":                 keys(func(s *clients.Settings) { s.Retry.Budget = 1 }),

		"canceled-before-start": does(deaf),
		"cancel-before-head":    does(deaf),
		"cancel-in-body":        does(deaf),
		"cancel-in-upload":      does(deaf),
		"close": func(s clients.Settings) (clients.Client, error) {
			cl, err := right(s)
			return unclosed{cl}, err
		},
		"no-goroutines": func(s clients.Settings) (clients.Client, error) {
			go func() { <-t.Context().Done() }()
			return right(s)
		},
	}
}

// unclosed is a client whose Close does nothing.
type unclosed struct{ clients.Client }

func (unclosed) Close() error { return nil }
