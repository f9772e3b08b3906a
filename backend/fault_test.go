package backend

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatebench/backend/fault"
)

// putFaults switches faults on as a plan does.
func putFaults(t *testing.T, base, faults string) {
	t.Helper()
	resp, body := fetch(t, newClient(t), "PUT", base+"/-/faults", "", strings.NewReader(`{"faults": [`+faults+`]}`))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("faults %s: %d %s", faults, resp.StatusCode, body)
	}
}

// onWire sends one request and returns all bytes that come within a while, and what
// ended them: nil for an orderly end.
func onWire(t *testing.T, base, method string) (answer string, end error) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s /product?type=T HTTP/1.1\r\nHost: b\r\n\r\n", method)
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	b, err := io.ReadAll(bufio.NewReader(c))
	return string(b), err
}

func TestFaultsOnTheWire(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server = kind })
		_, body := fetch(t, newClient(t), "GET", base+"/product?type=T", "", nil)
		for _, tt := range []struct {
			fault  string
			end    error // nil: the end of the connection, in order
			length int   // announced; -1 without a head
			body   string
		}{
			{`{"status": 503}`, os.ErrDeadlineExceeded, -2, `{"title":"Service Unavailable","status":503,"detail":"a fault on purpose"}`},
			{`{"latency": "20ms"}`, os.ErrDeadlineExceeded, len(body), body},
			{`{"hang": true}`, os.ErrDeadlineExceeded, -1, ""},
			{`{"reset": "before-head"}`, syscall.ECONNRESET, -1, ""},
			{`{"reset": "after-head"}`, syscall.ECONNRESET, len(body), ""},
			{`{"slow_body": "50ms"}`, os.ErrDeadlineExceeded, len(body), body},
			{`{"truncate": true}`, nil, len(body), body[:len(body)/2]},
			{`{"length": "long"}`, os.ErrDeadlineExceeded, 2 * len(body), body},
			{`{"length": "short"}`, os.ErrDeadlineExceeded, len(body) / 2, body},
		} {
			t.Run(tt.fault, func(t *testing.T) {
				putFaults(t, base, tt.fault)
				answer, end := onWire(t, base, "GET")
				if !errors.Is(end, tt.end) {
					t.Errorf("ended with %v, want %v", end, tt.end)
				}
				head, got, _ := strings.Cut(answer, "\r\n\r\n")
				if got != tt.body {
					t.Errorf("body %q, want %q", got, tt.body)
				}
				switch announced := fmt.Sprintf("Content-Length: %d", tt.length); {
				case tt.length == -1 && head != "":
					t.Errorf("a head came: %q", head)
				case tt.length >= 0 && !strings.Contains(head, announced):
					t.Errorf("head %q does not say %s", head, announced)
				}
			})
		}
		putFaults(t, base, "")
		if resp, got := fetch(t, newClient(t), "GET", base+"/product?type=T", "", nil); resp.StatusCode != 200 || got != body {
			t.Errorf("without faults: %d %q", resp.StatusCode, got)
		}
	})
}

// A fault breaks the answer to an upload too, whatever of it was read.
func TestFaultsOnUploads(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server = kind })
		for _, broken := range []string{`{"reset": "before-head"}`, `{"reset": "after-head"}`, `{"truncate": true}`} {
			putFaults(t, base, broken)
			resp, err := newClient(t).Post(base+"/postProduct2", "application/json", strings.NewReader(`{"name":"`+strings.Repeat("a", 1<<10)+`","id":"1","price":2}`))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Errorf("%s: the answer came whole", broken)
			}
		}
	})
}

// A share is exact after every deck, for any way requests come in.
func TestShareIsExact(t *testing.T) {
	_, base := newBackend(t, func(*Config) {})
	c := newClient(t)
	putFaults(t, base, `{"status": 503, "share": "5%"}, {"status": 500, "share": "50%"}`)
	counts := map[int]int{}
	for range 400 {
		resp, _ := fetch(t, c, "GET", base+"/product?type=T", "", nil)
		counts[resp.StatusCode]++
	}
	// The second deck is dealt to those whom the first one spared.
	if counts[503] != 20 || counts[500] != 190 || counts[200] != 190 {
		t.Errorf("got %v", counts)
	}
}

func TestOwnPathsMeetNoFault(t *testing.T) {
	_, base := newBackend(t, func(*Config) {})
	putFaults(t, base, `{"hang": true}`)
	for _, path := range []string{"/healthz", "/metrics", "/-/faults"} {
		if resp, _ := fetch(t, newClient(t), "GET", base+path, "", nil); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	_, body := fetch(t, newClient(t), "DELETE", base+"/-/faults", "", nil)
	if strings.TrimSpace(body) != `{"faults":[]}` {
		t.Errorf("after DELETE: %s", body)
	}
}

func TestBadFaultsAreRefused(t *testing.T) {
	_, base := newBackend(t, func(*Config) {})
	putFaults(t, base, `{"status": 503}`)
	for faults, want := range map[string]string{
		`{}`:                                    "no fault is named",
		`{"status": 503, "hang": true}`:         "stands beside status",
		`{"status": 200}`:                       "tells of no failure",
		`{"statuss": 503}`:                      "did you mean status?",
		`{"latency": 200}`:                      "unit",
		`{"reset": "now"}`:                      "before-head or after-head",
		`{"length": "wrong"}`:                   "long or short",
		`{"hang": true, "share": "0%"}`:         "more than 0%",
		`{"hang": true, "share": "33.333333%"}`: "two decimals",
	} {
		resp, body := fetch(t, newClient(t), "PUT", base+"/-/faults", "", strings.NewReader(`{"faults": [`+faults+`]}`))
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %q", faults, resp.StatusCode, body, want)
		}
	}
	if _, body := fetch(t, newClient(t), "GET", base+"/-/faults", "", nil); body != `{"faults":[{"status":503,"share":"100%"}]}`+"\n" {
		t.Errorf("a bad order changed what is in force: %s", body)
	}
}

func TestFaultsAreSwitchedFromThisMachineAlone(t *testing.T) {
	s := newTestService(t, func(*Config) {})
	in := newInbound("DELETE", "/-/faults", "", "")
	in.RemoteIP = "192.0.2.1"
	if got := ask(t, s, in); got.Status != http.StatusForbidden {
		t.Errorf("got %+v", got)
	}
}

func TestFaultsSayWhatTheyAre(t *testing.T) {
	for want, f := range map[string]fault.Fault{
		"status 503":                    {Status: 503, Share: 1},
		"status 500 for 5% of requests": {Status: 500, Share: 0.05},
		"slow body of 2s":               {SlowBody: 2 * time.Second, Share: 1},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
