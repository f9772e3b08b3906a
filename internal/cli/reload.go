package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gatebench/gateway"
)

// watchEvery is how often a watched file is read: it is small, and in the cache.
const watchEvery = time.Second

// reloader gives a gateway that serves the configuration that its file has now.
type reloader struct {
	w    *world
	file string // "" where it was started without one
	log  *slog.Logger
	to   *gateway.Switch
	now  gateway.Config
	seen []byte // the file, as it was taken up or refused last
	last []byte // as the watch read it last
}

// onHangUp hears of SIGHUP, which would end the process otherwise, until stop is called.
func onHangUp() (hangUp chan os.Signal, stop func()) {
	hangUp = make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	return hangUp, func() { signal.Stop(hangUp) }
}

// run reloads on hangUp, and when a watched file has changed, until ctx ends.
func (r *reloader) run(ctx context.Context, hangUp <-chan os.Signal) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangUp:
			r.reload()
		case <-tick.C:
			if r.now.Watch && r.changed() {
				r.reload()
			}
		}
	}
}

// changed reports whether the file is another than it was, and has been the same for two
// looks: most writers empty a file before they fill it, and half a configuration can be
// a valid one. One that cannot be read has not changed: an editor may be about to put it
// back.
func (r *reloader) changed() bool {
	if r.file == "" {
		return false
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return false
	}
	settled := bytes.Equal(text, r.last)
	r.last = text
	return settled && !bytes.Equal(text, r.seen)
}

// reload takes the file's configuration up, or says why not and goes on with the old.
func (r *reloader) reload() {
	next, err := r.take()
	if err != nil {
		r.to.Refused()
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(r.w.stderr, "gatebench: not taken up: %s\n", strings.TrimRight(line, "\n"))
		}
		return
	}
	r.log.Info("configuration taken up", "client", next.Client, "before", r.now.Client)
	r.now = next
}

func (r *reloader) take() (gateway.Config, error) {
	if r.file == "" {
		return r.now, errors.New("there is no file to read anew: start the gateway with -f FILE")
	}
	text, err := os.ReadFile(r.file) // before it is loaded: a change in between is seen again
	if err != nil {
		return r.now, err
	}
	r.seen = text
	if len(bytes.TrimSpace(text)) == 0 {
		return r.now, fmt.Errorf("%s is empty: nothing to take up", r.file)
	}
	all, err := r.w.load(r.file)
	if err != nil {
		return r.now, err
	}
	next := all.Gateway
	if err := r.now.Fixed(next); err != nil {
		return r.now, fmt.Errorf("%s: gateway: %w", r.file, err)
	}
	gw, err := assemble(next, r.to.Now())
	if err != nil {
		return r.now, fmt.Errorf("%s: %w", r.file, err)
	}
	r.to.To(gw)
	return next, nil
}
