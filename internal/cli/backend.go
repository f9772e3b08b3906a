package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"gatebench/backend"
)

func newBackend(w *world) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "backend [-f FILE]",
		Short: "Serve the product backend",
		Long: `Serves the backend section of the file: the product API that the gateway stands
in front of. Ready when /healthz answers 200; metrics at /metrics. On a terminal it
shows its live connections once a second.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := w.load(file)
			if err != nil {
				return err
			}
			return runBackend(cmd.Context(), w, cfg.Backend)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "configuration file (default: none, every value its default)")
	return cmd
}

func runBackend(ctx context.Context, w *world, cfg backend.Config) error {
	b, err := backend.New(cfg, slog.New(slog.NewTextHandler(w.stderr, nil)))
	if err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	ln, err := listen(ctx, "backend", cfg.Listen)
	if err != nil {
		_ = b.Close()
		return err
	}
	if isTerminal(w.stdout, w.env()) {
		go showConnections(ctx, w, b)
	}
	return serve(ctx, w.stdout, ln, b, backend.BodyIdle)
}

// showConnections redraws one line a second: whether a client opens connections
// in bursts is seen best while it happens.
func showConnections(ctx context.Context, w *world, b *backend.Backend) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(w.stdout)
			return
		case <-tick.C:
			c := b.Conns()
			fmt.Fprintf(w.stdout, "\r\x1b[Kconnections: %d live, %d idle, %d opened", c.Live, c.Idle, c.Opened)
		}
	}
}
