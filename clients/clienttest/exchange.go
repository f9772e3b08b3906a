package clienttest

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"gatebench/clients"
)

// host is what requests say, unlike any address they are sent to.
const host = "shop.example"

// settings are the defaults with a small pool, towards u.
func settings(u *upstream) clients.Settings {
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: u.scheme, Host: u.addr}
	s.Pool.MaxConns = 8
	return s
}

// client makes a client of u, with settings changed by tweaks.
func (c *check) client(u *upstream, tweaks ...func(*clients.Settings)) clients.Client {
	cl, _ := c.dialingClient(u, tweaks...)
	return cl
}

// dialingClient is client together with the dialer that counts its connections.
func (c *check) dialingClient(u *upstream, tweaks ...func(*clients.Settings)) (clients.Client, *clients.Dialer) {
	s := settings(u)
	for _, tweak := range tweaks {
		tweak(&s)
	}
	s.Dialer = &clients.Dialer{Timeout: s.Timeouts.Connect}
	cl, err := c.newClient(s)
	if err != nil {
		c.fatalf("new client: %v", err)
	}
	c.onEnd(func() { _ = cl.Close() })
	return cl, s.Dialer
}

// onlyReader hides what a body is, as a server does: a library that looks for
// *strings.Reader must not find one.
type onlyReader struct{ io.Reader }

func bodyless(method, target string) *clients.Request {
	return &clients.Request{Method: method, Target: target, Host: host}
}

func get(target string) *clients.Request { return bodyless("GET", target) }

func withBody(method, target, body string) *clients.Request {
	r := bodyless(method, target)
	r.Body, r.ContentLength = onlyReader{strings.NewReader(body)}, int64(len(body))
	return r
}

func post(target, body string) *clients.Request { return withBody("POST", target, body) }

// streaming is a POST of unknown length.
func streaming(target string, body io.Reader) *clients.Request {
	r := bodyless("POST", target)
	r.Body, r.ContentLength = onlyReader{body}, -1
	return r
}

// do wants a response head.
func (c *check) do(cl clients.Client, req *clients.Request) *clients.Response {
	resp, err := cl.Do(c.ctx, req)
	if err != nil {
		c.checkError(err)
		c.fatalf("%s %s: %v", req.Method, req.Target, err)
	}
	c.onEnd(func() { resp.End(nil) })
	return resp
}

// whole wants the body to end well, and ends the exchange.
func (c *check) whole(resp *clients.Response) string {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.errorf("read body: %v after %d bytes", err, len(b))
	}
	resp.End(err)
	return string(b)
}

// exchange is do and whole; it returns the status and the body.
func (c *check) exchange(cl clients.Client, req *clients.Request) (status int, body string) {
	resp := c.do(cl, req)
	return resp.Status, c.whole(resp)
}

// ok wants a 200 with that body.
func (c *check) ok(cl clients.Client, req *clients.Request, want string) {
	status, body := c.exchange(cl, req)
	if status != 200 || body != want {
		c.errorf("%s %s: got %d %s, want 200 %s", req.Method, req.Target, status, brief(body), brief(want))
	}
}

// fails wants Do to fail with one of kinds and returns its error.
func (c *check) fails(cl clients.Client, req *clients.Request, kinds ...clients.Kind) *clients.Error {
	return c.failsContext(c.ctx, cl, req, kinds...)
}

func (c *check) failsContext(ctx context.Context, cl clients.Client, req *clients.Request, kinds ...clients.Kind) *clients.Error {
	resp, err := cl.Do(ctx, req)
	if err == nil {
		c.errorf("%s %s: got status %d, want an error of kind %v", req.Method, brief(req.Target), resp.Status, kinds)
		resp.End(nil)
		return nil
	}
	return c.kind(err, kinds...)
}

// kind wants err to be an *Error of one of kinds.
func (c *check) kind(err error, kinds ...clients.Kind) *clients.Error {
	e := c.checkError(err)
	if e == nil {
		return nil
	}
	for _, k := range kinds {
		if e.Kind == k {
			return e
		}
	}
	c.errorf("got an error of kind %v, want %v: %v", e.Kind, kinds, err)
	return e
}

func (c *check) checkError(err error) *clients.Error {
	e, ok := errors.AsType[*clients.Error](err)
	if !ok {
		c.errorf("got %T (%v), want a *clients.Error", err, err)
		return nil
	}
	if e.Kind == 0 {
		c.errorf("an *Error without a kind: %v", err)
	}
	return e
}

// bodyFails wants reading resp's body to fail with kind, and ends the exchange.
// It returns what could be read before.
func (c *check) bodyFails(resp *clients.Response, kind clients.Kind) string {
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		c.errorf("the body ended well after %d bytes, want an error of kind %v", len(b), kind)
	} else {
		c.kind(err, kind)
		if _, again := resp.Body.Read(make([]byte, 1)); again == nil || errors.Is(again, io.EOF) {
			c.errorf("a second read ended with %v: a broken body stays broken", again)
		}
	}
	resp.End(err)
	return string(b)
}

// lasts wants f to return after least, not before, and not much later: a limit
// that acts.
func (c *check) lasts(least time.Duration, f func()) {
	start := time.Now()
	c.bounded("a limit of "+least.String()+" to act", least+c.grace, f)
	if d := time.Since(start); d < least {
		c.errorf("it took %v, want %v at least", d, least)
	}
}

// returns wants f to return at once.
func (c *check) returns(what string, f func()) { c.bounded(what, c.grace, f) }

// bounded wants f to return within most; otherwise the case is over, and f is left
// to end with the upstream.
func (c *check) bounded(what string, most time.Duration, f func()) {
	done := make(chan struct{})
	c.running.Go(func() {
		defer close(done)
		defer c.recover()
		f()
	})
	select {
	case <-done:
	case <-time.After(most):
		c.fatalf("%s: not within %v", what, most)
	}
}

func brief(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "?") + "…"
	}
	return s
}
