package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// targetConfig is the plainest server there is, and what it does wrong on purpose. It
// answers 60 bytes of JSON, keeps every connection, and reads no more of a request
// than its end: what is measured is the tool in front of it.
type targetConfig struct {
	latency time.Duration
	stall   bool // 1 ms to an answer, but hold what arrives in the tenth second of every ten until it is over
	faults  bool // no answer to 1 request of 100, 503 to 5
}

func (c *targetConfig) flags(fs *flag.FlagSet) {
	fs.DurationVar(&c.latency, "latency", 0, "serve: time to an answer")
	fs.BoolVar(&c.stall, "stall", false, "serve: answer after 1 ms, but hold what arrives in the tenth second of every ten")
	fs.BoolVar(&c.faults, "faults", false, "serve: swallow 1 request of 100 and refuse 5")
}

const (
	body60 = `{"id":"1","name":"TA","price":56.67,"padding":"xxxxxxxxxxx"}`

	answerOK  = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n" + body60
	answer503 = "HTTP/1.1 503 Service Unavailable\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
)

type target struct {
	targetConfig
	begin time.Time
	seen  atomic.Int64
}

// serveTarget listens on a free port, says which, and serves until ctx ends.
func serveTarget(ctx context.Context, c targetConfig, out io.Writer) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	fmt.Fprintf(out, "listening on %s\n", ln.Addr())
	t := &target{targetConfig: c, begin: time.Now()}
	for {
		nc, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go t.serve(nc)
	}
}

func (t *target) serve(nc net.Conn) {
	defer nc.Close()
	buf := make([]byte, 4096)
	n := 0
	for {
		k, err := nc.Read(buf[n:])
		if err != nil {
			return
		}
		n += k
		if !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			if n == len(buf) {
				return
			}
			continue
		}
		n = 0
		answer := t.answer()
		if answer == "" {
			_, _ = io.Copy(io.Discard, nc)
			return
		}
		if _, err := io.WriteString(nc, answer); err != nil {
			return
		}
	}
}

func (t *target) answer() string {
	if t.faults {
		switch i := t.seen.Add(1); {
		case i%100 == 50:
			return ""
		case i%20 == 7:
			return answer503
		}
	}
	if t.stall {
		const period, from = 10 * time.Second, 9 * time.Second
		if at := time.Since(t.begin) % period; at >= from {
			pause(period - at)
		}
		pause(time.Millisecond)
	}
	if t.latency > 0 {
		time.Sleep(t.latency)
	}
	return answerOK
}

// pause sleeps on a thread of its own, to the kernel's resolution: [time.Sleep] is late
// by up to 1 ms in an idle process. It is for a hundred sleepers, not for thousands.
func pause(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}
