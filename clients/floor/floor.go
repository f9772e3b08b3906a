// Package floor is the client that calls nobody: it answers every request from
// memory. An arm with it shows what a gateway costs by itself, so that of a client
// can be said how many microseconds it adds.
//
// It is no client under test. It keeps what the hop relies on (an answer, its
// length, an end, a refusal once closed) and nothing of the contract that speaks of
// an upstream; the registry lists it apart.
//
// The trap: it has no upstream to wait for, so that its response times say nothing of
// a client's. What may be subtracted is the CPU time of gateways that ran at once.
package floor

import (
	"context"
	"errors"
	"sync/atomic"

	"gatebench/clients"
)

// product is the one answer, of 60 bytes; it is only read.
var product = []byte(`{"id":"1","name":"floor","type":"T","price":1,"stock":10000}`)

type client struct{ closed atomic.Bool }

// New builds the client. Of the settings it needs none.
func New(clients.Settings) (clients.Client, error) { return new(client), nil }

// Do implements [clients.Client].
func (c *client) Do(ctx context.Context, req *clients.Request) (*clients.Response, error) {
	switch {
	case c.closed.Load():
		return nil, &clients.Error{Kind: clients.Dial, Err: clients.ErrClosed}
	case ctx.Err() != nil:
		return nil, &clients.Error{Kind: clients.Canceled, Err: context.Cause(ctx)}
	case req.Fields.Has("Upgrade"):
		return nil, &clients.Error{Kind: clients.Unsupported, Err: errors.New("nobody is there to upgrade to")}
	}
	fields := append(make(clients.Fields, 0, 4), clients.Field{Name: "Content-Type", Value: "application/json"}) // and room for what the hop adds
	if req.Method == "HEAD" {
		resp := clients.NewResponse(200, fields, nil)
		resp.ContentLength = int64(len(product))
		return resp, nil
	}
	return clients.NewResponse(200, fields, product), nil
}

// Close implements [clients.Client].
func (c *client) Close() error {
	c.closed.Store(true)
	return nil
}
