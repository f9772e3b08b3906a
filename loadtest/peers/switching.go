package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gatebench/clients/registry"
)

const switches = 10

// switching has the client of a gateway that serves 1,000/s switched ten times by
// SIGHUP, once each second, and a file with a mistake in between.
func (b *bench) switching(ctx context.Context, t *table) error {
	for _, kind := range []string{"net/http", "fasthttp"} {
		t.section(fmt.Sprintf("Server %s, 1,000/s through %d switches", kind, switches))
		if err := b.switchUnder(ctx, t, kind); err != nil {
			t.missing("server "+kind, err)
		}
	}
	return ctx.Err()
}

func (b *bench) switchUnder(ctx context.Context, t *table, kind string) error {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "gateway.yaml")
	config := func(client string) error {
		return os.WriteFile(file, []byte("gateway: {server: "+kind+", client: "+client+"}\n"), 0o600)
	}
	turns := registry.Names()
	if err := config(turns[0]); err != nil {
		return err
	}
	backend, err := b.backend(ctx, "GATEBENCH_BACKEND_LATENCY=5ms")
	if err != nil {
		return err
	}
	defer backend.stop()
	env := append(os.Environ(), "GATEBENCH_GATEWAY_LISTEN=127.0.0.1:0", "GATEBENCH_GATEWAY_UPSTREAM=http://"+backend.addr)
	gateway, err := b.start(ctx, -1, env, b.gatebench, "gateway", "-f", file)
	if err != nil {
		return err
	}
	defer gateway.stop()

	type measured struct {
		sum summary
		err error
	}
	done := make(chan measured, 1)
	go func() {
		_, sum, err := b.load(ctx, -1, "--url", gateway.url(), "--rate", "1000", "--duration", strconv.Itoa(switches+2)+"s")
		done <- measured{sum, err}
	}()
	for i := range switches {
		time.Sleep(time.Second)
		if i == switches/2 {
			if err := errors.Join(config("a-client-that-there-is-not"), gateway.cmd.Process.Signal(syscall.SIGHUP)); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
		if err := errors.Join(config(turns[(i+1)%len(turns)]), gateway.cmd.Process.Signal(syscall.SIGHUP)); err != nil {
			return err
		}
	}
	m := <-done
	if m.err != nil {
		return m.err
	}
	return judgeSwitching(ctx, t, backend, gateway, m.sum)
}

func judgeSwitching(ctx context.Context, t *table, backend, gateway *server, sum summary) error {
	read := func(s *server, path, line string) (v float64) {
		v, err := scraped(ctx, "http://"+s.addr+path, line)
		if err != nil {
			t.missing(line, err)
		}
		return v
	}
	reloads := func(outcome string) float64 {
		return read(gateway, "/-/metrics", `gatebench_gateway_config_reloads_total{outcome="`+outcome+`"} `)
	}
	t.near("configurations taken up", reloads("applied"), switches, 0, "")
	t.near("configurations refused", reloads("refused"), 1, 0, "")
	r := sum.Requests
	t.row("requests", fmt.Sprintf("%d sent, %d ok, %d failed, %d dropped%s", r.Sent, r.OK, r.Failed, r.Dropped, classes(sum.Errors)), "none failed, none dropped", r.Failed == 0 && r.Dropped == 0 && r.Sent == r.OK)
	t.near("requests that arrived at the backend", read(backend, "/metrics", `gatebench_backend_requests_total{code="200",route="/product"} `), float64(r.Sent), 0, "")
	t.near("connections opened: the gateway's count, and what the backend accepted but for this question",
		read(gateway, "/-/metrics", "gatebench_gateway_upstream_connections_opened_total "), read(backend, "/metrics", "gatebench_backend_connections_opened_total ")-1, 1, "")
	open, live := read(gateway, "/-/metrics", "gatebench_gateway_upstream_connections_open "), read(backend, "/metrics", "gatebench_backend_connections_live ")
	t.row("connections open at the end", fmt.Sprintf("%.0f with the last client, %.0f at the backend", open, live), "no more than the last client's, and this question's", live <= open+1)
	t.told("response time", fmt.Sprintf("p50 %.3g ms, p99 %.3g ms", sum.ResponseTime.P50, sum.ResponseTime.P99), "5 ms and the hop", "")
	return nil
}

// classes lists what failed.
func classes(errs map[string]int64) string {
	var b strings.Builder
	for class, n := range errs {
		fmt.Fprintf(&b, ", %d %s", n, class)
	}
	return b.String()
}
