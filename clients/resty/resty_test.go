package resty

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-resty/resty/v2"

	"gatebench/clients"
	"gatebench/clients/clienttest"
)

func TestClient(t *testing.T) { clienttest.Run(t, New, Deviations()...) }

// What is measured is resty: its middlewares build a request for each attempt, its
// loop tries again, and only then does ours go out.
func TestRestyItselfRuns(t *testing.T) {
	var arrived []*http.Request
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived, bodies = append(arrived, r), append(bodies, string(body))
		if len(arrived) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	c := newClient(t, srv.URL, func(s *clients.Settings) {
		s.Retry = clients.Retry{MaxAttempts: 3, RetryOn: []string{"5xx"}, Budget: 1}
	})

	var built []*http.Request // by resty's own middlewares
	retries := 0
	c.resty.SetPreRequestHook(func(rc *resty.Client, r *http.Request) error {
		built = append(built, r.Clone(r.Context()))
		return fill(rc, r)
	})
	c.resty.AddRetryHook(func(*resty.Response, error) { retries++ })

	resp, err := c.Do(t.Context(), &clients.Request{Method: "GET", Target: "/a%2Fb?x=%zz", Host: "shop.example"})
	if err != nil {
		t.Fatal(err)
	}
	resp.End(nil)
	if len(built) != 3 || retries != 2 || resp.Attempts != 3 || resp.Status != 200 {
		t.Errorf("resty built %d requests and retried %d times for status %d after %d attempts, want 3 and 2 for 200 after 3",
			len(built), retries, resp.Status, resp.Attempts)
	}
	for _, r := range built {
		if ua := r.Header.Get("User-Agent"); !strings.HasPrefix(ua, "go-resty/") {
			t.Errorf("the request before the hook has User-Agent %q: that is not resty's", ua)
		}
	}
	for i, r := range arrived {
		if r.RequestURI != "/a%2Fb?x=%zz" || r.Host != "shop.example" || len(r.Header) != 0 || bodies[i] != "" {
			t.Errorf("attempt %d arrived as %s at %s with %v, %q", i+1, r.RequestURI, r.Host, r.Header, bodies[i])
		}
	}
}

func TestNoJar(t *testing.T) {
	if jar := newClient(t, "http://127.0.0.1").resty.GetClient().Jar; jar != nil {
		t.Error("there is a cookie jar: one user's session would go out with another's request")
	}
}

func newClient(t *testing.T, upstream string, change ...func(*clients.Settings)) *client {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	s := clients.DefaultSettings()
	s.Upstream, s.Dialer = u, &clients.Dialer{Timeout: s.Timeouts.Connect}
	for _, f := range change {
		f(&s)
	}
	c, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*client)
}
