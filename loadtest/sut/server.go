package sut

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Server is a process that serves HTTP.
type Server struct {
	*Process
	// Addr is the host:port that it listens on.
	Addr string
}

// startTimeout bounds how long a server may take from its start to its first
// answer.
const startTimeout = 10 * time.Second

// Serve starts a server and returns when it is ready: it has printed
// `listening on ADDR` and answers 200 at the path ready. If it ends first, the
// error is an *[ExitError]. A server that is not ready in time, or before ctx is
// done, is killed.
func (l *Launcher) Serve(ctx context.Context, c Command, ready string) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady{c.Name, ready})
	defer cancel()
	addr := make(chan string, 1)
	c.Stdout = &lines{each: func(line string) {
		l.log.say(c.Name, line)
		if a, ok := strings.CutPrefix(line, "listening on "); ok {
			select {
			case addr <- a:
			default: // it has said so before
			}
		}
	}}
	p, err := l.Start(c)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p}
	if err := s.await(ctx, addr, ready); err != nil {
		p.Kill()
		<-p.done
		return nil, err
	}
	return s, nil
}

type errNotReady struct{ name, path string }

func (e errNotReady) Error() string {
	return fmt.Sprintf("%s did not listen and answer 200 at %s within %v", e.name, e.path, startTimeout)
}

// await returns when s listens and is ready, with its address filled in.
func (s *Server) await(ctx context.Context, addr <-chan string, ready string) error {
	select {
	case s.Addr = <-addr:
	case <-s.done:
		return s.Died()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		if _, err := s.Fetch(ctx, ready); err == nil {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.done:
			return s.Died()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Bounds on an answer that is read whole. A server under load answers late, one
// that is stuck never.
const (
	fetchLimit   = 16 << 20
	fetchTimeout = 3 * time.Second
)

// Fetch gets a path and returns the body of its 200 answer. Every call opens one
// connection and closes it, so that whoever counts connections knows how many are
// ours.
func (s *Server) Fetch(ctx context.Context, path string) ([]byte, error) {
	return s.ask(ctx, http.MethodGet, path, nil)
}

// Put sends a body to a path, by a connection of its own, and wants 200.
func (s *Server) Put(ctx context.Context, path string, body []byte) error {
	_, err := s.ask(ctx, http.MethodPut, path, body)
	return err
}

func (s *Server) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, errors.New("no answer within "+fetchTimeout.String()))
	defer cancel()
	answer, err := s.exchange(ctx, method, path, body)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // says more than "context deadline exceeded"
		}
		return nil, fmt.Errorf("ask %s for %s: %w", s.name, path, err)
	}
	return answer, nil
}

func (s *Server) exchange(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// A transport of its own: no proxy from the environment, no kept
	// connection.
	t := &http.Transport{DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, fetchLimit))
}
