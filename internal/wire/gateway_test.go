package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gatebench/internal/cli"
)

// A gateway is `gatebench gateway` running inside the test.
type gateway struct {
	c    *check
	addr string
	log  *lockedBuffer
}

// gateway starts one in front of up; keys are further lines of its section.
func (c *check) gateway(up *upstream, keys ...string) *gateway {
	return c.gatewayTo("http://"+up.addr, keys...)
}

func (c *check) gatewayTo(url string, keys ...string) *gateway {
	c.mayBegin()
	yaml := fmt.Sprintf("gateway:\n  listen: 127.0.0.1:0\n  upstream: %q\n  server: %s\n  client: %s\n", url, c.server, c.client)
	for _, k := range keys {
		yaml += "  " + k + "\n"
	}
	f, err := os.CreateTemp(c.dir, "*.yaml")
	if err == nil {
		_, err = f.WriteString(yaml)
		err = firstOf(err, f.Close())
	}
	if err != nil {
		c.fatalf("write the configuration: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stdout, in := io.Pipe()
	g := &gateway{c: c, log: new(lockedBuffer)}
	ended := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, []string{"gateway", "-f", filepath.Clean(f.Name())}, calm, in, g.log)
		_ = in.Close()
		ended <- code
	}()
	c.onEnd(&c.gateways, func() {
		stop()
		if code := <-ended; code != 0 {
			c.errorf("the gateway ended with code %d", code)
		}
		if log := g.log.String(); log != "" {
			c.errorf("the gateway has complained: %s", log)
		}
	})
	first, _ := bufio.NewReader(stdout).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if !ok {
		c.fatalf("the gateway did not start: %q %s", first, g.log)
	}
	g.addr = addr
	return g
}

// calm is the environment of every gateway: that a machine is busy with many cases
// at once shall not be what a timeout strikes, or what a breaker forgets.
var calm = []string{
	"GATEBENCH_GATEWAY_TIMEOUTS_CONNECT=10s",
	"GATEBENCH_GATEWAY_CIRCUIT_BREAKER_WINDOW=1m",
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// metric reads one sample, named as it is exposed; 0 where there is none.
func (g *gateway) metric(sample string) int {
	m := g.c.ask(g, get("/-/metrics"))
	for line := range strings.Lines(m.Body) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), sample+" "); ok {
			f, _ := strconv.ParseFloat(rest, 64)
			return int(f)
		}
	}
	return 0
}

// counted waits until a sample has that value: a gateway counts after it has
// answered.
func (g *gateway) counted(sample string, want int) {
	g.c.eventually(fmt.Sprintf("%s %d", sample, want), func() bool { return g.metric(sample) == want })
}

func (g *gateway) breaker(state string) {
	g.counted(fmt.Sprintf("gatebench_gateway_breaker_state{state=%q}", state), 1)
}

const (
	inFlight = "gatebench_gateway_in_flight"
	attempts = "gatebench_gateway_upstream_attempts_total"
)

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// captureStderr lets what is written to os.Stderr go to libraries, until restore.
func captureStderr() (restore func()) {
	was := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	os.Stderr = w
	log.SetOutput(w) // it has kept the old one
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(libraries, r)
	}()
	return func() {
		os.Stderr = was
		log.SetOutput(was)
		_ = w.Close()
		<-done
	}
}

// A proxyCanary is the proxy that the environment names.
type proxyCanary struct {
	ln   net.Listener
	hits atomic.Int64
	done chan struct{}
}

func newProxyCanary() *proxyCanary {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p := &proxyCanary{ln: ln, done: make(chan struct{})}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		_ = os.Setenv(name, "http://"+ln.Addr().String())
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	go func() {
		defer close(p.done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p.hits.Add(1)
			_ = conn.Close()
		}
	}()
	return p
}

func (p *proxyCanary) close() {
	_ = p.ln.Close()
	<-p.done
}
