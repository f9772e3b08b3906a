package soak

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A job is one request of a mix-up run, all of it drawn from its number.
type job struct {
	id       uint64
	size     int64 // bytes, log-uniform from 1 B to 1 MB
	measured bool  // its length is announced
	cancel   int64 // after that many bytes the caller goes away, -1 for never
	uploads  bool  // it goes away in the upload rather than in the answer
}

func draw(id uint64) job {
	r := rand.New(rand.NewPCG(id, 1))
	j := job{id: id, size: int64(math.Exp(r.Float64() * math.Log(1e6))), measured: r.IntN(2) == 0, cancel: -1}
	if r.IntN(100) == 0 {
		j.cancel, j.uploads = r.Int64N(j.size), r.IntN(2) == 0
	}
	return j
}

// noise is what bodies are cut from.
var noise = func() []byte {
	b := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}()

// parts are the job's body: its number, and a piece of noise that no other job has
// in that place.
func (j job) parts() (name, rest []byte) {
	name = binary.BigEndian.AppendUint64(nil, j.id)
	name = name[len(name)-int(min(j.size, 8)):]
	at := (j.id * 0x9e3779b97f4a7c15) % uint64(len(noise)-1e6)
	return name, noise[at : at+uint64(j.size)-uint64(len(name))]
}

func (j job) body() io.Reader {
	name, rest := j.parts()
	return io.MultiReader(bytes.NewReader(name), bytes.NewReader(rest))
}

func (j job) sum() [sha256.Size]byte {
	name, rest := j.parts()
	h := sha256.New()
	_, _ = h.Write(name)
	_, _ = h.Write(rest)
	return [sha256.Size]byte(h.Sum(nil))
}

// echo gives every request its own body back, when it has all of it: the client
// that writes a request whole before it reads would be stuck otherwise.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header()["X-Job"] = r.Header["X-Job"]
	if len(body)%2 == 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	_, _ = w.Write(body)
}

// TestNoMixUp: everybody gets his own answer, whoever goes away meanwhile.
func TestNoMixUp(t *testing.T) {
	const callers = 48
	requests := uint64(2_000)
	if *full {
		requests = 20_000
	}
	eachPair(t, func(t *testing.T, p pair) {
		addr := p.inside(t, upstream(t, echo))
		caller := newCaller(t, callers)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var next, carried, cancelled, wrong atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		for range callers {
			all.Go(func() {
				for id := uint64(next.Add(1)); id <= requests; id = uint64(next.Add(1)) {
					j := draw(id)
					err := j.send(ctx, caller, "http://"+addr)
					switch {
					case errors.Is(err, errWentAway):
						cancelled.Add(1)
					case err != nil:
						if wrong.Add(1) <= 5 {
							t.Errorf("job %d of %d bytes: %v", id, j.size, err)
						}
					default:
						carried.Add(j.size)
					}
				}
			})
		}
		all.Wait()
		note(t, "Requests at once with unique bodies, each answer hashed", "%-24s %6d requests %4d went away %3d wrong %8.1f MB each way %6.1f s",
			p, requests, cancelled.Load(), wrong.Load(), float64(carried.Load())/1e6, time.Since(began).Seconds())
	})
}

var errWentAway = errors.New("the caller went away")

// send sends the job and compares the answer.
func (j job) send(ctx context.Context, c *http.Client, url string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := j.body()
	if j.uploads {
		body = &leaving{r: body, after: j.cancel, leave: cancel}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	if j.measured {
		req.ContentLength = j.size
	}
	name := strconv.FormatUint(j.id, 10)
	req.Header.Set("X-Job", name)
	resp, err := c.Do(req)
	if err != nil {
		return departure(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Job") != name {
		return departure(ctx, fmt.Errorf("answered %s for job %q", resp.Status, resp.Header.Get("X-Job")))
	}
	h := sha256.New()
	answer := io.Reader(resp.Body)
	if j.cancel >= 0 && !j.uploads {
		answer = &leaving{r: answer, after: j.cancel, leave: cancel}
	}
	if n, err := io.Copy(h, answer); err != nil {
		return departure(ctx, fmt.Errorf("after %d bytes: %w", n, err))
	}
	if [sha256.Size]byte(h.Sum(nil)) != j.sum() {
		return errors.New("the answer is not this job's")
	}
	return nil
}

// departure is err, unless it comes from the caller's own going away.
func departure(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errWentAway) {
		return errWentAway
	}
	return err
}

// leaving goes away after some bytes.
type leaving struct {
	r     io.Reader
	after int64
	leave context.CancelCauseFunc
}

func (l *leaving) Read(p []byte) (int, error) {
	if l.after == 0 {
		l.leave(errWentAway)
		return 0, errWentAway
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.after)])
	l.after -= int64(n)
	return n, err
}
