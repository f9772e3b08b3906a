package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatebench/server"
)

// A gateway writes its profile when it is stopped, whichever its server: a gzip stream,
// as every reader of profiles takes it.
func TestGatewayWritesAProfileWhenItIsStopped(t *testing.T) {
	for _, kind := range []string{profileCPU, profileHeap} {
		for _, srv := range server.Kinds() {
			t.Run(kind+" "+srv, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "p")
				environ := []string{"GATEBENCH_GATEWAY_LISTEN=127.0.0.1:0", "GATEBENCH_GATEWAY_SERVER=" + srv}
				ctx, stop := context.WithCancel(t.Context())
				said, saying := io.Pipe()
				var errs bytes.Buffer
				code := make(chan int)
				go func() {
					code <- Run(ctx, []string{"gateway", "--pprof", kind, "--pprof-file", file}, environ, saying, &errs)
				}()
				if _, err := said.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.Copy(io.Discard, said) }()
				if content, err := os.ReadFile(file); err != nil || kind == profileHeap && len(content) > 0 {
					t.Errorf("before it is stopped: %d bytes, %v", len(content), err)
				}
				stop()
				select {
				case got := <-code:
					if got != exitOK {
						t.Errorf("exit code %d: %s", got, &errs)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("it did not stop")
				}
				f, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				z, err := gzip.NewReader(f)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, z); n == 0 || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		}
	}
}

func TestProfilesThatCannotBeAreRefusedBeforeAnythingStarts(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		says string
	}{
		{"run quick --pprof trace", exitUsage, "write cpu or heap"},
		{"gateway --pprof mutex --pprof-file x", exitUsage, "write cpu or heap"},
		{"gateway --pprof cpu", exitUsage, "pprof-file"},
		{"gateway --pprof cpu --pprof-file " + t.TempDir() + "/none/p", exitCannotRun, "no such file or directory"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), strings.Fields(tc.args), nil, &out, &errs); code != tc.code || !strings.Contains(errs.String(), tc.says) {
			t.Errorf("%s: exit code %d, %s", tc.args, code, &errs)
		}
	}
}
