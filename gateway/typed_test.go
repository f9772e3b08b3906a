package gateway_test

import (
	"strings"
	"testing"

	"gatebench/clients"
	"gatebench/gateway"
)

// What typed answers look like on the wire, with every client and both servers, is in
// internal/wire.

func TestTypedModeNeedsAClientThatDecodes(t *testing.T) {
	cfg := gateway.DefaultConfig()
	cfg.Mode = gateway.ModeTyped
	_, err := gateway.New(cfg, gateway.Parts{Client: &upstream{}, Dialer: &clients.Dialer{}})
	if err == nil || !strings.Contains(err.Error(), "write mode: proxy") {
		t.Errorf("error %v, want one that says what to do", err)
	}
}
