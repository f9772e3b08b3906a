package floor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"gatebench/clients"
	"gatebench/clients/clienttest"
)

// kept is what of the contract holds without an upstream.
var kept = []string{"no-injection", "end-once", "pool-library", "canceled-before-start", "no-goroutines"}

// All else must fail: a rule that begins to hold is one that the floor pays for.
func TestFloorKeepsNothingThatNeedsAnUpstream(t *testing.T) {
	var exempt []clients.Deviation
	for _, r := range clienttest.Rules() {
		if !slices.Contains(kept, r.Name) {
			exempt = append(exempt, clients.Deviation{Name: r.Name, Reason: "there is no upstream"})
		}
	}
	clienttest.Run(t, New, exempt...)
}

func ask(t *testing.T, c clients.Client, req clients.Request) (*clients.Response, string) {
	t.Helper()
	resp, err := c.Do(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.End(nil)
	return resp, string(body)
}

func TestFloorAnswersAProductFromMemory(t *testing.T) {
	c, err := New(clients.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	resp, body := ask(t, c, clients.Request{Method: "GET", Target: "/product"})
	if resp.Status != 200 || resp.ContentLength != 60 || len(body) != 60 || !json.Valid([]byte(body)) || resp.Attempts != 0 {
		t.Errorf("status %d, length %d, %d attempts: %s", resp.Status, resp.ContentLength, resp.Attempts, body)
	}
	resp.Fields[0].Value = "changed by the hop"
	if again, _ := ask(t, c, clients.Request{Method: "GET"}); again.Fields.Get("Content-Type") != "application/json" {
		t.Errorf("answers share their fields: %v", again.Fields)
	}
	if resp, body := ask(t, c, clients.Request{Method: "HEAD"}); body != "" || resp.ContentLength != 60 {
		t.Errorf("to HEAD: length %d, body %q", resp.ContentLength, body)
	}
}

func TestFloorRefusesWhatItCannotAnswer(t *testing.T) {
	c, _ := New(clients.Settings{})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		req  clients.Request
		kind clients.Kind
	}{
		{"an upgrade", t.Context(), clients.Request{Method: "GET", Fields: clients.Fields{{Name: "upgrade", Value: "websocket"}}}, clients.Unsupported},
		{"a caller who left", gone, clients.Request{Method: "GET"}, clients.Canceled},
	} {
		if resp, err := c.Do(tc.ctx, &tc.req); resp != nil || clients.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), &clients.Request{Method: "GET"}); !errors.Is(err, clients.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
