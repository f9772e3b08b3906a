package clients_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/clients"
)

// roundTrip is a transport made up for a test.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hang is an upstream that never answers.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// answer is a response of status 200 with a body of unknown length.
func answer(body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(body), ContentLength: -1,
	}
}

// timed is a client with no bound but those that change sets.
func timed(rt roundTrip, change func(*clients.Settings)) clients.Client {
	return clients.RoundTripper(rt, settings("upstream.example", func(s *clients.Settings) {
		s.Timeouts = clients.Timeouts{}
	}, change))
}

// every gives one byte per interval, then err. At the interval 0 it never does.
type every struct {
	interval time.Duration
	left     int
	err      error
}

func (b *every) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.err
	}
	time.Sleep(b.interval)
	b.left--
	p[0] = 'x'
	return 1, nil
}

// stalled blocks each read until ctx ends.
type stalled struct{ ctx context.Context }

func (b stalled) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, context.Cause(b.ctx)
}

// upload is a POST with that body, of unknown length.
func upload(body io.Reader) *clients.Request {
	return &clients.Request{Method: "POST", Target: "/", Host: "h", Body: body, ContentLength: -1}
}

func get() *clients.Request { return &clients.Request{Method: "GET", Target: "/", Host: "h"} }

// fails wants req to fail with kind after exactly that long.
func fails(t *testing.T, c clients.Client, req *clients.Request, kind clients.Kind, after time.Duration) *clients.Error {
	t.Helper()
	start := time.Now()
	resp, err := c.Do(t.Context(), req)
	if err == nil {
		resp.End(nil)
		t.Fatalf("got status %d, want %v", resp.Status, kind)
	}
	if took := time.Since(start); took != after || clients.KindOf(err) != kind {
		t.Errorf("after %v: %v, want %v after %v", took, err, kind, after)
	}
	e, ok := errors.AsType[*clients.Error](err)
	if !ok {
		t.Fatalf("%T is not a *clients.Error", err)
	}
	return e
}

func TestRequestTimeoutRunsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(hang, func(s *clients.Settings) { s.Timeouts.Request = 3 * time.Second })
		if e := fails(t, c, get(), clients.TimeoutHeader, 3*time.Second); e.Attempts != 1 {
			t.Errorf("%d attempts, want 1", e.Attempts)
		}
	})
}

func TestRequestTimeoutRunsFromTheEndOfTheUpload(t *testing.T) {
	for name, length := range map[string]int64{"unknown length": -1, "known length": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := timed(func(r *http.Request) (*http.Response, error) {
					// As net/http: no more than announced, which with a
					// known length may leave io.EOF unread.
					_, _ = io.CopyN(io.Discard, r.Body, 5)
					if length < 0 {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					return hang(r)
				}, func(s *clients.Settings) {
					s.Timeouts.Request, s.Timeouts.BodyIdle = 3*time.Second, 11*time.Second
				})
				req := upload(&every{interval: 10 * time.Second, left: 5, err: io.EOF})
				req.ContentLength = length
				fails(t, c, req, clients.TimeoutHeader, 53*time.Second)
			})
		})
	}
}

func TestRequestTimeoutCoversAttemptsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(hang, func(s *clients.Settings) {
			s.Timeouts.Request = 3500 * time.Millisecond
			s.Retry = clients.Retry{MaxAttempts: 10, RetryOn: []string{"timeout"}, PerTryTimeout: time.Second, Budget: 1}
		})
		if e := fails(t, c, get(), clients.TimeoutHeader, 3500*time.Millisecond); e.Attempts != 4 {
			t.Errorf("%d attempts of 1s in 3.5s, want 4", e.Attempts)
		}
	})
}

func TestPerTryTimeoutEndsOneAttemptOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := timed(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return hang(r)
			}
			return answer(stalledThen(r.Context(), time.Minute, "late")), nil
		}, func(s *clients.Settings) {
			s.Retry = clients.Retry{MaxAttempts: 2, RetryOn: []string{"timeout"}, PerTryTimeout: time.Second, Budget: 1}
		})
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "late" || resp.Attempts != 2 {
			t.Errorf("got %q, %v in %d attempts; want the second attempt's body, which no attempt's timeout bounds", body, err, resp.Attempts)
		}
	})
}

// stalledThen gives text after a wait, unless ctx ends first.
func stalledThen(ctx context.Context, wait time.Duration, text string) io.Reader {
	return io.MultiReader(readerFunc(func([]byte) (int, error) {
		select {
		case <-time.After(wait):
			return 0, io.EOF
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}), bytes.NewReader([]byte(text)))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestResponseHeaderTimeoutRunsFromTheRequestWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second) // connecting, say
			httptrace.ContextClientTrace(r.Context()).WroteRequest(httptrace.WroteRequestInfo{})
			return hang(r)
		}, func(s *clients.Settings) { s.Timeouts.ResponseHeader = 2 * time.Second })
		e := fails(t, c, get(), clients.TimeoutHeader, 7*time.Second)
		if !strings.Contains(e.Error(), "timeouts.response_header") {
			t.Errorf("%q does not say which timeout it was", e)
		}
	})
}

// A downstream that stops sending in mid-body, without hanging up, must not hold
// the request: neither when the time is up nor when upstream is gone.
func TestStalledUploadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		body := readerFunc(func([]byte) (int, error) { <-release; return 0, io.EOF })
		c := timed(func(r *http.Request) (*http.Response, error) {
			_, err := io.Copy(io.Discard, r.Body) // like a transport, it waits for its writer
			return nil, err
		}, func(s *clients.Settings) { s.Timeouts.BodyIdle = 2 * time.Second })
		fails(t, c, upload(body), clients.TimeoutBody, 2*time.Second)
	})
}

func TestUploadThatUpstreamStopsReadingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			_, _ = r.Body.Read(make([]byte, 1))
			return hang(r)
		}, func(s *clients.Settings) { s.Timeouts.BodyIdle = 2 * time.Second })
		body := &every{interval: time.Second, left: 9, err: io.EOF}
		fails(t, c, upload(body), clients.TimeoutBody, 3*time.Second)
	})
}

func TestSlowDownloadOutlivesEveryOtherTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			return answer(&every{interval: 900 * time.Millisecond, left: 100, err: io.EOF}), nil
		}, func(s *clients.Settings) {
			s.Timeouts = clients.Timeouts{Connect: time.Second, ResponseHeader: time.Second, Request: time.Second, BodyIdle: time.Second}
			s.Retry.PerTryTimeout = time.Second
		})
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		if body, err := io.ReadAll(resp.Body); len(body) != 100 || err != nil {
			t.Errorf("%d bytes, %v; want 100 in 90s", len(body), err)
		}
	})
}

func TestSilentDownloadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			return answer(io.MultiReader(&every{interval: time.Second, left: 3, err: io.EOF}, stalled{r.Context()})), nil
		}, func(s *clients.Settings) { s.Timeouts.BodyIdle = 2 * time.Second })
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		start := time.Now()
		body, err := io.ReadAll(resp.Body)
		if took := time.Since(start); len(body) != 3 || clients.KindOf(err) != clients.TimeoutBody || took != 5*time.Second {
			t.Errorf("%d bytes, %v after %v; want 3, then timeout_body after 5s", len(body), err, took)
		}
	})
}

// Time between two reads is downstream's, not upstream's silence.
func TestSlowReaderIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			body := &every{interval: time.Second, left: 5, err: io.EOF}
			return answer(readerFunc(func(p []byte) (int, error) {
				if r.Context().Err() != nil {
					return 0, context.Cause(r.Context())
				}
				return body.Read(p)
			})), nil
		}, func(s *clients.Settings) { s.Timeouts.BodyIdle = 2 * time.Second })
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		for p := make([]byte, 1); ; time.Sleep(time.Minute) {
			if _, err := resp.Body.Read(p); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An answer before the end of the upload moves the silence that counts to the
// response: the upload may rest while the response flows.
func TestEarlyAnswerOutlivesARestingUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			return answer(&every{interval: time.Second, left: 60, err: io.EOF}), nil
		}, func(s *clients.Settings) { s.Timeouts.BodyIdle = 2 * time.Second })
		resp, err := c.Do(t.Context(), upload(stalled{t.Context()}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		if body, err := io.ReadAll(resp.Body); len(body) != 60 || err != nil {
			t.Errorf("%d bytes, %v; want 60", len(body), err)
		}
	})
}

func TestDownstreamGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(hang, func(s *clients.Settings) { s.Timeouts.Request = time.Minute })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Do(ctx, get())
		if clients.KindOf(err) != clients.Canceled {
			t.Errorf("got %v, want canceled", err)
		}
	})
}

// A body that dribbles must not hold up the next attempt.
func TestRetryDoesNotWaitForADribblingBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := timed(func(r *http.Request) (*http.Response, error) {
			if calls++; calls > 1 {
				return answer(bytes.NewReader(nil)), nil
			}
			resp := answer(stalled{r.Context()})
			resp.StatusCode = 503
			return resp, nil
		}, func(s *clients.Settings) {
			s.Timeouts.Request = time.Minute
			s.Retry = clients.Retry{MaxAttempts: 2, RetryOn: []string{"5xx"}, Budget: 1}
		})
		start := time.Now()
		resp, err := c.Do(t.Context(), get())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.End(nil)
		if took := time.Since(start); resp.Status != 200 || took > 100*time.Millisecond {
			t.Errorf("status %d after %v", resp.Status, took)
		}
	})
}

// Nothing of an exchange may ring in a later one, though they share timers.
func TestTimersAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(func(r *http.Request) (*http.Response, error) {
			if r.Host == "slow" {
				return hang(r)
			}
			time.Sleep(900 * time.Millisecond)
			return answer(bytes.NewReader([]byte("x"))), nil
		}, func(s *clients.Settings) { s.Timeouts.Request, s.Timeouts.BodyIdle = time.Second, time.Second })
		var wg sync.WaitGroup
		for user := range 8 {
			wg.Go(func() {
				for i := range 50 {
					req := get()
					if (i+user)%7 == 0 {
						req.Host = "slow"
					}
					resp, err := c.Do(t.Context(), req)
					if req.Host == "slow" {
						if clients.KindOf(err) != clients.TimeoutHeader {
							t.Errorf("slow: %v, want timeout_header", err)
						}
						continue
					}
					if err != nil {
						t.Errorf("quick: %v", err)
						continue
					}
					if _, err := io.ReadAll(resp.Body); err != nil {
						t.Errorf("quick body: %v", err)
					}
					resp.End(nil)
				}
			})
		}
		wg.Wait()
	})
}
