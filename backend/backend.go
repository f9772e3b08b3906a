// Package backend is the product service behind the gateway: the endpoints of the
// published experiments, on either inbound server, with as many workers and as
// slow as its configuration says.
//
// It leaves HTTP itself to package server. What a request means is written once,
// as a function from a request to a response.
//
// What can go wrong on purpose is in package fault; the path /-/faults, for callers on
// the same machine, says what is in force.
//
// The trap: the metrics of connections include the connection that reads them.
// Whoever counts connections keeps one open for that and takes it off.
package backend

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"gatebench/clients"
	"gatebench/server"
)

// Backend is a running product service.
type Backend struct {
	server  *server.Server
	service *service
	alarm   *alarm
	most    int // connections
}

// New makes a backend that is ready to serve. Its errors name the configuration
// that is bad, or say why the upload folder cannot be used. Close releases what
// it holds.
func New(cfg Config, log *slog.Logger) (*Backend, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	files, err := openUploads(cfg.UploadDir, cfg.MaxUpload)
	if err != nil {
		return nil, err
	}
	clock, err := newAlarm()
	if err != nil {
		return nil, errors.Join(err, files.close())
	}
	b := &Backend{alarm: clock, most: cfg.MaxConnections}
	b.service = newService(cfg, files, clock.wait, b.Conns, log)
	b.server, err = server.New(serverConfig(cfg, log), b.service)
	if err != nil {
		clock.close()
		return nil, errors.Join(err, files.close())
	}
	return b, nil
}

// BodyIdle is how long a caller may be silent within a body, or take nothing of an
// answer.
const BodyIdle = time.Minute

// serverConfig bounds what a stranger may do to a backend that is reached
// directly. A gateway keeps idle connections for 90 s by default; the backend is
// the one that keeps them longer, or each would risk a request on a connection
// about to close.
func serverConfig(cfg Config, log *slog.Logger) server.Config {
	return server.Config{
		Kind:              cfg.Server,
		MaxHeaderBytes:    64 << 10,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       10 * time.Minute,
		BodyIdle:          BodyIdle,
		Reject: func(status int, _ clients.Kind, detail string) *clients.Response {
			return refusal{status, detail}.response()
		},
		Log: log,
	}
}

// Serve answers on ln until Shutdown or Close.
func (b *Backend) Serve(ln net.Listener) error { return b.server.Serve(bound(ln, b.most)) }

// Shutdown stops accepting and waits for the requests in flight, until ctx ends.
func (b *Backend) Shutdown(ctx context.Context) error { return b.server.Shutdown(ctx) }

// Close ends everything at once and removes a temporary upload folder. It is
// called after Shutdown too.
func (b *Backend) Close() error {
	err := b.server.Close()
	b.alarm.close()
	return errors.Join(err, b.service.uploads.close())
}

// Conns counts the connections.
func (b *Backend) Conns() server.Conns { return b.server.Conns() }
