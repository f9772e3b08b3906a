package clients_test

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatebench/clients"
)

func TestDialerCounts(t *testing.T) {
	d := &clients.Dialer{Timeout: time.Second}
	addr := canned(t, "")
	one, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = one.Close()
	_ = one.Close() // counts once
	if _, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:0"); clients.KindOf(err) != clients.Dial {
		t.Errorf("nobody listens on port 0: %v, want a dial error", err)
	}
	if d.Opened() != 2 || d.Open() != 1 || d.Failed() != 1 {
		t.Errorf("opened %d, open %d, failed %d; want 2, 1, 1", d.Opened(), d.Open(), d.Failed())
	}
	_ = two.Close()
}

func TestTLSConfig(t *testing.T) {
	s := clients.DefaultSettings()
	s.Upstream = &url.URL{Scheme: "http", Host: "h:1"}
	if c, err := s.TLSConfig(); c != nil || err != nil {
		t.Errorf("for a clear upstream: %v, %v", c, err)
	}

	s.Upstream = &url.URL{Scheme: "https", Host: "h.example:1"}
	c, err := s.TLSConfig()
	if err != nil || c.ServerName != "h.example" || c.RootCAs != nil {
		t.Errorf("by default: %v, want the upstream's name and the system's authorities", err)
	}
	s.TLS.ServerName = "other.example"
	if c, err := s.TLSConfig(); err != nil || c.ServerName != "other.example" {
		t.Errorf("server_name: %v", err)
	}

	s.TLS.CA = filepath.Join(t.TempDir(), "ca.pem")
	if _, err := s.TLSConfig(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "tls.ca") {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(s.TLS.CA, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TLSConfig(); err == nil || !strings.Contains(err.Error(), s.TLS.CA) {
		t.Errorf("a file without a certificate: %v", err)
	}
}
