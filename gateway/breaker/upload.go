package breaker

import (
	"errors"
	"io"
	"sync/atomic"

	"gatebench/clients"
)

// An upload is a request body under watch. Silence in a body is one kind of error,
// timeout_body, whoever is silent; but a caller who stalls in the middle of an
// upload must not open the breaker for all the others. So the upload notes whether
// it was the one that was being waited for.
type upload struct {
	io.Reader
	state atomic.Uint32
}

const (
	idle    = iota // nobody waits for the caller
	waiting        // a Read has not returned
	broken         // a Read has failed
)

// watch puts a watched body in place of the request's, if it has one.
func watch(req *clients.Request) *upload {
	if req.Body == nil {
		return nil
	}
	u := &upload{Reader: req.Body}
	req.Body = u
	return u
}

// unwatch gives the request its own body back. Whoever still reads goes on reading
// through u.
func (u *upload) unwatch(req *clients.Request) {
	if u != nil {
		req.Body = u.Reader
	}
}

func (u *upload) Read(p []byte) (int, error) {
	u.state.Store(waiting)
	n, err := u.Reader.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		u.state.Store(idle)
	} else {
		u.state.Store(broken)
	}
	return n, err
}

// isWaiting reports whether it is the caller who is being waited for.
func (u *upload) isWaiting() bool { return u.state.Load() == waiting }

// toBlame reports whether err is silence in this body rather than upstream's.
func (u *upload) toBlame(err error) bool {
	return u != nil && clients.KindOf(err) == clients.TimeoutBody && u.state.Load() != idle
}
