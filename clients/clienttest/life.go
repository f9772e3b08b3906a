package clienttest

import (
	"context"
	"io"
	"strings"
	"time"

	"gatebench/clients"

	"go.uber.org/goleak"
)

// How exchanges and clients end.
func lifeCases() []testCase {
	return []testCase{
		rule("canceled-before-start", "a context that is done already: kind canceled, nothing sent", canceledBeforeStart),
		rule("cancel-before-head", "cancellation ends a wait for the head and its connection: kind canceled", cancelBeforeHead),
		rule("cancel-in-body", "cancellation ends a read of the body and its connection: kind canceled", cancelInBody),
		rule("cancel-in-upload", "cancellation ends an upload and its connection: kind canceled", cancelInUpload),
		rule("close", "Close closes idle connections; Do fails from then on", closing),
		rule("no-goroutines", "no goroutine stays behind after Close", noGoroutines),
	}
}

func canceledBeforeStart(c *check) {
	u := c.always(ok("-"))
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	cl := c.client(u)
	c.failsContext(ctx, cl, get("/"), clients.Canceled)
	c.failsContext(ctx, cl, post("/", "body"), clients.Canceled)
	c.arrived(u, 0)
}

func cancelBeforeHead(c *check) {
	u := c.serve(silent)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	cl := c.client(u)
	c.returns("cancellation of a wait for the head", func() {
		time.AfterFunc(limit, cancel)
		c.failsContext(ctx, cl, get("/"), clients.Canceled)
	})
	u.closedButFor(0)
}

func cancelInBody(c *check) {
	u := c.serve(func(p *peer) {
		if _, err := p.request(); err == nil {
			p.send(chunkedHead + chunk("first"))
			p.awaitClose()
		}
	})
	cl := c.client(u)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	resp, err := cl.Do(ctx, get("/"))
	if err != nil {
		c.fatalf("%v", err)
	}
	c.returns("cancellation of a read", func() {
		got := make([]byte, 5)
		_, _ = io.ReadFull(resp.Body, got)
		time.AfterFunc(limit, cancel)
		c.bodyFails(resp, clients.Canceled)
	})
	u.closedButFor(0)
}

func cancelInUpload(c *check) {
	ended := make(chan struct{})
	u := c.serve(func(p *peer) {
		if _, err := p.head(); err == nil {
			<-ended
		}
	})
	c.onEnd(func() { close(ended) })
	cl := c.client(u)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.returns("cancellation of an upload", func() {
		time.AfterFunc(limit, cancel)
		c.failsContext(ctx, cl, streaming("/", zeros{}), clients.Canceled)
	})
}

func closing(c *check) {
	u := c.always(ok("-"))
	cl := c.client(u)
	c.ok(cl, get("/"), "-")
	if err := cl.Close(); err != nil {
		c.errorf("close: %v", err)
	}
	u.closedButFor(0)
	if resp, err := cl.Do(c.ctx, get("/")); err == nil {
		resp.End(nil)
		c.errorf("Do after Close got status %d, want an error", resp.Status)
	} else {
		c.checkError(err)
	}
	c.arrived(u, 1)
	if err := cl.Close(); err != nil {
		c.errorf("close again: %v", err)
	}
}

func noGoroutines(c *check) {
	before := goleak.IgnoreCurrent()
	u := c.answer(func(*heard) string { return chunked([]string{strings.Repeat("x", 100<<10)}) })
	cl := c.client(u)
	for i := range 10 {
		resp := c.do(cl, post("/", "body"))
		if i%2 == 0 {
			resp.End(&clients.Error{Kind: clients.Canceled})
		} else {
			c.whole(resp)
		}
	}
	_ = cl.Close()
	c.cleanUp()
	if err := goleak.Find(before, goleak.IgnoreAnyFunction("gatebench/clients/clienttest.testCase.check")); err != nil {
		c.errorf("%v", err)
	}
}
