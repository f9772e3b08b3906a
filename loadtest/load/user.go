package load

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// user is one virtual user: a connection, kept from request to request, and the
// recorder it shares with others. One goroutine at a time uses it.
type user struct {
	e     *engine
	shard *shard
	i     int // which one

	mu    sync.Mutex // guards nc against the interrupt, not against the user itself
	nc    net.Conn   // nil if not connected
	read  answers
	look  *inspection // nil until an answer is to be looked at
	idle  idleProbe
	turn  *turn // nil where a request and its answer take calls of their own
	turns bool  // the next read is a turn

	busy      atomic.Bool   // a request is in flight
	deadline  time.Duration // of the request in flight
	armed     time.Duration // the deadline that nc carries
	lastDone  time.Duration
	dialError bool // the last request failed for want of a connection
}

// outcome is what became of one request.
type outcome struct {
	answer
	class class
	err   error // why, unless fine or badStatus
	phase phase // of a timeout
}

// newUser makes the i-th user.
func (e *engine) newUser(i int) *user {
	u := &user{e: e, shard: e.shards[i%len(e.shards)], i: i}
	e.conns.add(u)
	return u
}

// send carries out the i-th request, which was due at due, records it and returns
// when it was done.
func (u *user) send(i int64, due time.Duration) time.Duration {
	kind, request := u.e.mix.pick(i)
	u.busy.Store(true)
	sent := u.e.now()
	out := u.exchange(&u.e.mix.kinds[kind], request, sent, u.e.giveUpAt(sent))
	done := u.e.now()
	u.busy.Store(false)
	u.lastDone = done
	if out.class == timeout && done >= u.e.until {
		out.class = cut
	}
	u.shard.record(u.e, sample{kind, due, sent, done, !u.dialError, out})
	return done
}

// giveUpAt is when a request that is sent now is given up: at its timeout, or at the
// end of what the end of the run waits.
func (e *engine) giveUpAt(sent time.Duration) time.Duration {
	at := sent + e.p.Timeout
	if e.p.GracefulStop > 0 && e.until != forever {
		at = min(at, e.until+e.p.GracefulStop)
	}
	return at
}

// exchange writes the request and reads the answer.
func (u *user) exchange(k *kind, request []byte, now, deadline time.Duration) outcome {
	u.deadline, u.dialError = deadline, false
	if u.nc != nil && now-u.lastDone > idleCheckAfter && u.idle.stale() {
		u.hangUp()
	}
	if u.nc == nil {
		if err := u.connect(); err != nil {
			u.dialError = true
			return outcome{class: classify(err), err: err, phase: connecting}
		}
	}
	u.inspect(k.checks)
	a, err := u.roundTrip(request, k.noBody, now)
	if err != nil {
		u.hangUp()
		return outcome{class: classify(err), err: err, phase: u.read.phase}
	}
	if !a.reuse || u.e.mix.once {
		u.hangUp()
	}
	return u.checked(k, a)
}

// inspect has the next answer looked at, or not.
func (u *user) inspect(k *checks) {
	u.read.look = nil
	if k == nil {
		return
	}
	if u.look == nil {
		u.look = &inspection{}
	}
	u.look.begin(k)
	u.read.look = u.look
}

// checked is what a full answer amounts to.
func (u *user) checked(k *kind, a answer) outcome {
	out := outcome{answer: a}
	switch {
	case a.later && a.status == http.StatusServiceUnavailable && k.status != a.status:
		out.class = rejected
	case k.status == 0 && a.status >= 400, k.status != 0 && a.status != k.status:
		out.class = badStatus
	case k.checks != nil:
		if out.err = u.look.verdict(); out.err != nil {
			out.class = badAnswer
		}
	}
	return out
}

func (u *user) roundTrip(request []byte, noBody bool, now time.Duration) (answer, error) {
	if u.armed <= now || u.exactDeadline() {
		if err := u.arm(); err != nil {
			return answer{}, err
		}
	}
	// A server may answer before it has read all of a body, and close: the
	// answer is then there to be read although the write failed.
	u.read.phase = awaitingHead
	writeErr := u.begin(request)
	if writeErr != nil && classify(writeErr) != reset {
		return answer{}, writeErr
	}
	a, err := u.read.next(noBody)
	if u.turn != nil {
		writeErr = u.turn.wrote
	}
	if writeErr != nil {
		a.reuse = false
		if err != nil {
			err = writeErr
		}
	}
	return a, err
}

// begin writes the request, or has the first read do it.
func (u *user) begin(request []byte) error {
	if u.turn == nil {
		return u.write(request)
	}
	u.turn.request, u.turn.wrote, u.turns = request, nil, true
	return nil
}

// exactDeadline reports whether every request needs its own deadline on the
// connection: a TLS connection is spoilt by a write that times out.
func (u *user) exactDeadline() bool {
	_, ok := u.nc.(*tls.Conn)
	return ok
}

// arm puts the request's deadline on the connection. It is not done for each
// request: a timer costs, and one that goes off early is told from the real one
// by the clock, in retry. So it costs one timer per timeout, not one per request.
func (u *user) arm() error {
	u.armed = u.deadline
	_ = u.nc.SetDeadline(u.e.begin.Add(u.deadline))
	// The interrupt sets stopped before it sets its own deadline: if ours has
	// just overwritten that one, or came on a connection it did not know yet,
	// this sees it.
	if u.e.stopped.Load() != 0 {
		return errInterrupted
	}
	return nil
}

// retry decides what a deadline that went off means: nil if it was that of an
// earlier request, and the wait goes on.
func (u *user) retry(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if u.e.now() >= u.deadline {
		return err
	}
	return u.arm()
}

func (u *user) write(b []byte) error {
	for {
		n, err := u.nc.Write(b)
		if err == nil {
			return nil
		}
		if err := u.retry(err); err != nil {
			return err
		}
		b = b[n:]
	}
}

// Read is the connection as the answers see it.
func (u *user) Read(b []byte) (int, error) {
	for {
		n, err := u.readOnce(b)
		if err == nil || n > 0 {
			u.turns = false
			return n, nil
		}
		if err := u.retry(err); err != nil {
			return 0, err
		}
	}
}

func (u *user) readOnce(b []byte) (int, error) {
	if u.turns {
		return u.turn.read(b)
	}
	return u.nc.Read(b)
}

func (u *user) connect() error {
	ctx, cancel := context.WithDeadline(u.e.ctx, u.e.begin.Add(u.deadline))
	defer cancel()
	nc, err := u.dial(ctx)
	if err != nil {
		if u.e.ctx.Err() != nil {
			u.e.interrupt()
			return errInterrupted
		}
		return err
	}
	u.shard.opened()
	u.mu.Lock()
	u.nc = nc
	u.mu.Unlock()
	u.idle, u.turn, u.turns = probe(nc), newTurn(nc, u.write), false
	u.read.reset(u)
	u.armed = 0
	return nil
}

// dial opens a connection on a goroutine of its own. Dialling is the deepest that a
// user ever calls: done on the user's stack it would leave each of ten thousand
// users with twice the memory that it needs from then on.
func (u *user) dial(ctx context.Context) (nc net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		nc, err = u.e.dial(ctx)
		close(done)
	}()
	<-done
	return nc, err
}

func (u *user) hangUp() {
	if u.nc == nil {
		return
	}
	_ = u.nc.Close()
	u.mu.Lock()
	u.nc = nil
	u.mu.Unlock()
}

// connections lets the interrupt reach every connection there is.
type connections struct {
	mu    sync.Mutex
	users []*user
}

func (c *connections) add(u *user) {
	c.mu.Lock()
	c.users = append(c.users, u)
	c.mu.Unlock()
}

// wakeAll ends all reads and writes.
func (c *connections) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.users {
		u.mu.Lock()
		if u.nc != nil {
			_ = u.nc.SetDeadline(time.Unix(1, 0))
		}
		u.mu.Unlock()
	}
}
