package sut

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatebench/internal/conf"
)

// behind serves 3,000 bytes behind a wire.
func behind(t *testing.T) *Wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 3000))
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(ln) }()
	w, err := NewWire(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		_ = s.Close()
		<-served
	})
	return w
}

// through asks once by a new connection.
func through(w *Wire, timeout time.Duration) (took time.Duration, err error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: timeout}
	began := time.Now()
	resp, err := c.Get("http://" + w.Addr())
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	return time.Since(began), err
}

func TestWireFaults(t *testing.T) {
	for _, tt := range []struct {
		fault   WireFault
		atLeast time.Duration
		broken  func(error) bool
	}{
		{fault: WireFault{Latency: 60 * time.Millisecond}, atLeast: 60 * time.Millisecond},
		{fault: WireFault{Bandwidth: 20 * kilobyte}, atLeast: 100 * time.Millisecond},
		{fault: WireFault{Slice: 100}, atLeast: 20 * time.Millisecond},
		{fault: WireFault{SlowClose: 50 * time.Millisecond}},
		{fault: WireFault{Reset: true}, broken: func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }},
		{fault: WireFault{Silence: true}, broken: func(err error) bool { ne, ok := errors.AsType[net.Error](err); return ok && ne.Timeout() }},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			if err := tt.fault.Validate(); err != nil {
				t.Fatal(err)
			}
			w := behind(t)
			if err := w.Set(t.Context(), []WireFault{tt.fault}); err != nil {
				t.Fatal(err)
			}
			took, err := through(w, 500*time.Millisecond)
			switch {
			case tt.broken == nil && err != nil, tt.broken != nil && !tt.broken(err):
				t.Errorf("ended with %v", err)
			case took < tt.atLeast:
				t.Errorf("took %v, want %v or more", took, tt.atLeast)
			}
			if err := w.Set(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := through(w, 5*time.Second); err != nil {
				t.Errorf("without faults: %v", err)
			}
		})
	}
}

func TestBadWireFaultsAreRefused(t *testing.T) {
	for want, f := range map[string]WireFault{
		"no fault is named":     {},
		"2 faults stand":        {Reset: true, Silence: true},
		"whole milliseconds":    {Latency: time.Microsecond},
		"more than the latency": {Latency: time.Millisecond, Jitter: time.Second},
		"whole kilobytes":       {Bandwidth: conf.KiB},
		"no size":               {Slice: -1},
	} {
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}
