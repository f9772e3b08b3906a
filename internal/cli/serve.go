package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/term"
)

// What a server that was asked to stop leaves to requests in flight.
const (
	leastDrain  = 30 * time.Second
	drainMargin = 10 * time.Second // to answer whoever was given up
)

// drainTimeout bounds how long a server that was asked to stop waits for requests
// in flight, if it bears silence for that long, 0 for ever. It must outlast a peer
// who has got stuck, or stopping because of him fails: one who had taken a little of
// an answer just before is given up only a second silence later.
func drainTimeout(silence time.Duration) time.Duration {
	return max(leastDrain, 2*silence+drainMargin)
}

// service is what serve runs: package server's two servers, and the backend.
type service interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// listen opens addr, in words that name it.
func listen(ctx context.Context, what, addr string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, exit(exitCannotRun, "cannot listen on %s for the %s: %w", addr, what, cause(err))
	}
	return ln, nil
}

// cause drops the layers of a net error that repeat the address.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return sys.Err
		}
		return op.Err
	}
	return err
}

// announce writes the line that scripts wait for.
func announce(stdout io.Writer, what string, ln net.Listener) {
	fmt.Fprintf(stdout, "%s %s\n", what, ln.Addr())
}

// serve announces ln on stdout, serves until ctx ends, then drains. silence is how
// long s bears it.
func serve(ctx context.Context, stdout io.Writer, ln net.Listener, s service, silence time.Duration) error {
	announce(stdout, "listening on", ln)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		_ = s.Close()
		return exit(exitCannotRun, "serving on %s ended: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout(silence))
	defer cancel()
	err := s.Shutdown(drain)
	err = errors.Join(err, s.Close())
	if err = errors.Join(err, <-served); err != nil {
		return exit(exitCannotRun, "stopping the server on %s: %w", ln.Addr(), err)
	}
	return nil
}

// isTerminal reports whether w is a terminal that can redraw a line.
func isTerminal(w io.Writer, env map[string]string) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && env["TERM"] != "dumb"
}

// terminalWidth returns the width of w in columns, fileWidth if it has none.
func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return fileWidth
}
