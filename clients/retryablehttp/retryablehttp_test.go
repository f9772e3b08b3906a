package retryablehttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/hashicorp/go-retryablehttp"

	"gatebench/clients"
	"gatebench/clients/clienttest"
)

func TestClient(t *testing.T) { clienttest.Run(t, New, Deviations()...) }

// What is measured is go-retryablehttp: its loop makes the attempts, and asks.
func TestTheLibraryItselfRetries(t *testing.T) {
	for name, c := range map[string]struct {
		healthyFrom int // the attempt, from 0
		status      int
		want        []int // attempts that the library saw
	}{
		"heals":      {2, 200, []int{0, 1, 2}},
		"never does": {9, 503, []int{0, 1, 2}},
		"is well":    {0, 200, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if arrived < c.healthyFrom {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				arrived++
			}))
			defer srv.Close()
			u, err := url.Parse(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			s := clients.DefaultSettings()
			s.Upstream, s.Dialer = u, &clients.Dialer{Timeout: s.Timeouts.Connect}
			s.Retry = clients.Retry{MaxAttempts: 3, RetryOn: []string{"5xx"}, Budget: 1}
			made, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = made.Close() }()
			var attempts []int
			made.(*client).retryable.RequestLogHook = func(_ retryablehttp.Logger, _ *http.Request, n int) {
				attempts = append(attempts, n)
			}

			resp, err := made.Do(t.Context(), &clients.Request{Method: "GET", Target: "/", Host: "shop.example"})
			if err != nil {
				t.Fatal(err)
			}
			resp.End(nil)
			if resp.Status != c.status || !slices.Equal(attempts, c.want) || arrived != len(c.want) || resp.Attempts != len(c.want) {
				t.Errorf("status %d after attempts %v of the library's, %d arrived, %d counted; want %d after %v",
					resp.Status, attempts, arrived, resp.Attempts, c.status, c.want)
			}
		})
	}
}
