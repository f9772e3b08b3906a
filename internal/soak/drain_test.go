package soak

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestTermLosesNoRequest stops a gateway under keep-alive callers who never pause.
// Every request on a connection that the gateway has accepted is answered, the
// answer is whole, and the last one says that it is.
func TestTermLosesNoRequest(t *testing.T) {
	const callers = 24
	eachPair(t, func(t *testing.T, p pair) {
		g := p.apart(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			time.Sleep(time.Duration(len(body)%5) * time.Millisecond) // some are in flight at any time
			_, _ = w.Write(body)
		}))
		var answered, farewells atomic.Int64
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				c := &steady{addr: g.addr, body: strings.Repeat("x", 1+i*173)}
				err := c.callUntilRefused(&answered)
				if err != nil {
					t.Error(err)
				}
				farewells.Add(c.farewells)
			})
		}
		wait(t, "some load", func() bool { return answered.Load() > 20*callers })
		if err := g.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		before := answered.Load()
		all.Wait()
		if err := g.Wait(); err != nil {
			t.Errorf("the gateway ended with %v: %s", err, &g.stderr)
		}
		if farewells.Load() < callers {
			t.Errorf("%d connections were told of their end, of at least %d", farewells.Load(), callers)
		}
		note(t, "SIGTERM under keep-alive load", "%-24s %6d requests answered before it, %4d after it, none lost", p, before, answered.Load()-before)
	})
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// A steady caller sends one request after the other, over one connection as long
// as the gateway keeps it.
type steady struct {
	addr      string
	body      string
	farewells int64 // answers that ended a connection
}

// callUntilRefused ends well when connections are refused. A connection that is
// reset before it has carried anything has been refused too: only the system had
// accepted it.
func (c *steady) callUntilRefused(answered *atomic.Int64) error {
	for {
		conn, err := net.DialTimeout("tcp", c.addr, patience)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := c.callUntilLast(conn, answered)
		_ = conn.Close()
		if n == 0 && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d answers on a connection: %w", n, err)
		}
	}
}

// callUntilLast returns how many requests were answered. It is an error if one
// was not.
func (c *steady) callUntilLast(conn net.Conn, answered *atomic.Int64) (n int64, _ error) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	br := bufio.NewReader(conn)
	for {
		method, body := "POST", c.body
		if n%2 == 0 {
			method, body = "GET", ""
		}
		if _, err := fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: soak\r\nContent-Length: %d\r\n\r\n%s", method, len(body), body); err != nil {
			return n, err
		}
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return n, err
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode != http.StatusOK:
			return n, fmt.Errorf("%s: %s", resp.Status, got)
		case err != nil:
			return n, err
		case string(got) != body:
			return n, errors.New("another's answer")
		}
		n++
		answered.Add(1)
		if resp.Close {
			c.farewells++
			return n, nil
		}
	}
}
