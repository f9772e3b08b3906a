package gateway

import (
	"context"
	"testing"

	"gatebench/clients"
)

type idle struct{}

func (idle) Do(context.Context, *clients.Request) (*clients.Response, error) { return nil, nil }
func (idle) Close() error                                                    { return nil }

// Who looked which gateway is the newest before a switch, and enters it after that, is
// turned away: its client may be closed. No load meets that moment by chance.
func TestAGenerationThatIsNotTheNewestIsNotEntered(t *testing.T) {
	made := func(before *Gateway) *Gateway {
		g, err := New(DefaultConfig(), Parts{Client: idle{}, Dialer: &clients.Dialer{}, Succeeds: before})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	s := NewSwitch(made(nil))
	old := s.now.Load()
	s.To(made(s.Now()))
	if old.entered() {
		t.Error("it was entered after the switch")
	}
	if !s.now.Load().entered() {
		t.Error("the newest was not entered")
	}
	s.now.Load().leave()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
