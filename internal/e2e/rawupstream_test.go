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
// answers when the test lets it.
type rawUpstream struct {
	addr  string
	heads chan string
}

func newRawUpstream(t *testing.T) *rawUpstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &rawUpstream{addr: ln.Addr().String(), heads: make(chan string)}
	release := make(chan struct{})
	t.Cleanup(func() { close(release); _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				var head strings.Builder
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					if line == "\r\n" {
						break
					}
					head.WriteString(line)
				}
				select {
				case u.heads <- head.String():
				case <-release:
					return
				}
				<-release
				_, _ = c.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
			}()
		}
	}()
	return u
}

// next waits for the head of the next request; its answer waits for the test's
// end.
func (u *rawUpstream) next(t *testing.T) string {
	t.Helper()
	select {
	case h := <-u.heads:
		return h
	case <-time.After(patience):
		t.Fatal("no request reached upstream")
		return ""
	}
}

// allStacks is every goroutine's stack.
func allStacks() string {
	for n := 1 << 20; ; n *= 2 {
		b := make([]byte, n)
		if len := runtime.Stack(b, true); len < n {
			return string(b[:len])
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
