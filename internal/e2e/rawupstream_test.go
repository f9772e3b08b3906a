package e2e

import (
	"bufio"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// rawUpstream accepts requests on a socket, shows their heads byte for byte, and
// answers when the test says so.
type rawUpstream struct {
	addr  string
	calls chan call
}

type call struct {
	head   string
	answer func()
}

func newRawUpstream(t *testing.T) *rawUpstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	u := &rawUpstream{addr: ln.Addr().String(), calls: make(chan call, 16)}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go u.serve(c)
		}
	}()
	return u
}

// serve reads one head.
func (u *rawUpstream) serve(c net.Conn) {
	r := bufio.NewReader(c)
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			_ = c.Close()
			return
		}
		if line == "\r\n" {
			break
		}
		head.WriteString(line)
	}
	u.calls <- call{head.String(), func() {
		_, _ = c.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
		_ = c.Close()
	}}
}

// next waits for the next request: its head, and what answers it.
func (u *rawUpstream) next(t *testing.T) (head string, answer func()) {
	t.Helper()
	select {
	case c := <-u.calls:
		return c.head, c.answer
	case <-time.After(patience):
		t.Fatal("no request reached upstream")
		return "", nil
	}
}

// allStacks is every goroutine's stack.
func allStacks() string {
	for n := 1 << 20; ; n *= 2 {
		b := make([]byte, n)
		if used := runtime.Stack(b, true); used < n {
			return string(b[:used])
		}
	}
}

// fieldsSorted reports whether the field lines after Host are in the order of
// their names, as net/http writes them.
func fieldsSorted(head string) bool {
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(head), "\r\n")[1:] {
		name, _, _ := strings.Cut(line, ":")
		if name != "Host" && name != "User-Agent" {
			names = append(names, name)
		}
	}
	return slices.IsSorted(names)
}
