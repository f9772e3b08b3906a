package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"gatebench/clients"
)

const (
	// maxDiscard is how much of a body that nobody wanted is read to keep the
	// connection: what both libraries take.
	maxDiscard = 256 << 10

	// discardTime bounds that reading.
	discardTime = time.Second
)

var (
	errExchangeEnded = errors.New("the exchange has ended")
	errTooLong       = errors.New("the request body exceeds the limit")
	errSilence       = errors.New("the peer sends nothing more of the request body")
	errCutShort      = errors.New("the peer went away within the request body")
)

// past is a deadline that interrupts a Read in progress.
var past = time.Unix(1, 0)

// A body is a request's body in front of the library's. It bounds length and
// silence, says in our words what went wrong, and can be detached.
//
// It is made anew for each request and never reused: somebody may hold on to it.
type body struct {
	src  io.Reader
	conn *conn

	mu       sync.Mutex
	finished sync.Cond // a Read in progress ended
	left     int64     // announced bytes not read yet, -1 if their number is unknown
	room     int64     // bytes that the limit still allows, -1 without limit
	started  bool
	reading  bool
	detached bool
	broken   bool  // src failed: what follows on the connection is unknown
	err      error // why there is no more to read; io.EOF after the last byte
}

func newBody(src io.Reader, c *conn, length, limit int64) *body {
	b := &body{src: src, conn: c, left: length, room: -1}
	if limit > 0 {
		b.room = limit
	}
	b.finished.L = &b.mu
	return b
}

// Read gives an [*clients.Error] or io.EOF.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.begin(len(p))
	if err != nil || n == 0 {
		return 0, err
	}
	n, err = b.src.Read(p[:n])
	return b.finish(n, err)
}

// begin says how much to read.
func (b *body) begin(n int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.detached:
		return 0, &clients.Error{Kind: clients.Canceled, Err: errExchangeEnded}
	case b.err != nil:
		return 0, b.err
	}
	if b.room >= 0 {
		n = int(min(int64(n), b.room+1)) // one more, to see that there is one more
	}
	if n == 0 {
		return 0, nil
	}
	b.started, b.reading = true, true
	b.conn.timedOut.Store(false)
	if b.conn.silence > 0 {
		// Under the lock, so that it cannot undo detach's deadline.
		_ = b.conn.SetReadDeadline(time.Now().Add(b.conn.silence))
	}
	return n, nil
}

func (b *body) finish(n int, err error) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case err == io.EOF && b.left > 0:
		err = &clients.Error{Kind: clients.Canceled, Err: errCutShort} // fasthttp gives io.EOF
	case err != nil && err != io.EOF:
		err = b.cause(err)
	}
	b.broken = err != nil && err != io.EOF
	if b.detached {
		if err == io.EOF {
			b.err = err
		}
		b.finished.Broadcast()
		return 0, &clients.Error{Kind: clients.Canceled, Err: errExchangeEnded}
	}
	if b.room >= 0 {
		if int64(n) > b.room {
			n, err = int(b.room), &clients.Error{Kind: clients.RequestTooLarge, Err: errTooLong}
		}
		b.room -= int64(n)
	}
	b.err = err
	return n, err
}

// cause says in our words why reading failed.
func (b *body) cause(err error) error {
	kind := clients.BadRequest
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		kind = clients.TimeoutBody
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		kind = clients.Canceled
	}
	return &clients.Error{Kind: kind, Err: fmt.Errorf("read request body: %w", err)}
}

// failure is the first error other than io.EOF that reading met.
func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading && !b.detached && b.conn.timedOut.Load() {
		return &clients.Error{Kind: clients.TimeoutBody, Err: errSilence}
	}
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// whole reports whether the peer owes nothing more. Locked.
func (b *body) whole() bool { return b.left == 0 || b.err == io.EOF }

// outlastsHead reports, when the response head is about to be written, whether
// so much of the body is still to come that the connection should not be kept:
// somebody began to read and did not finish, or more is announced than one would
// discard.
func (b *body) outlastsHead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.whole() && (b.started || b.left > maxDiscard)
}

// detach ends the body: it interrupts and awaits a Read in progress, and no later
// one reaches the connection. whole says that the peer owes nothing more; sound
// that the connection is at a known place in the body.
func (b *body) detach() (whole, sound bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached = true
	if b.reading {
		_ = b.conn.SetReadDeadline(past)
	}
	for b.reading {
		b.finished.Wait()
	}
	return b.whole(), !b.broken
}

// discard reads what is left after detach, and reports whether it came to the
// end.
func (b *body) discard() bool {
	_ = b.conn.SetReadDeadline(time.Now().Add(discardTime))
	_, err := io.CopyN(io.Discard, b.src, maxDiscard+1)
	return err == io.EOF
}
