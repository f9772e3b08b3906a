package backend

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// workers is a pool of workers as a servlet container has: a request holds one
// from when its work begins until its answer is written. Who finds none free
// waits, first come first served.
//
//	arrives ──▶ free worker? ──yes──▶ works ──▶ leaves, hands its worker to the
//	                │ no                          first in the queue
//	                ├──▶ queue full: turned away
//	                └──▶ queue ──▶ handed a worker
//	                       └──▶ gives up: out of the queue
type workers struct {
	limit int // 0 is unbounded
	room  int // of the queue, 0 is unbounded

	mu    sync.Mutex
	busy  int
	queue list.List // of chan struct{}, closed when a worker is handed over
}

// errQueueFull turns a request away.
var errQueueFull = errors.New("all workers are busy, and the queue before them is full")

// enter takes a worker, or waits for one until ctx ends. It gives errQueueFull
// where there is no room to wait in.
func (w *workers) enter(ctx context.Context) error {
	w.mu.Lock()
	if w.limit == 0 || w.busy < w.limit {
		w.busy++
		w.mu.Unlock()
		return nil
	}
	if w.room > 0 && w.queue.Len() >= w.room {
		w.mu.Unlock()
		return errQueueFull
	}
	handed := make(chan struct{})
	place := w.queue.PushBack(handed)
	w.mu.Unlock()

	select {
	case <-handed:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	select {
	case <-handed: // both at once: the worker is ours and must go on
		w.pass()
	default:
		w.queue.Remove(place)
	}
	w.mu.Unlock()
	return ctx.Err()
}

// leave gives a worker back.
func (w *workers) leave() {
	w.mu.Lock()
	w.pass()
	w.mu.Unlock()
}

// pass hands a worker to the first in the queue, if any. The queue is empty
// whenever a worker is free, so nobody can overtake it.
func (w *workers) pass() {
	first := w.queue.Front()
	if first == nil {
		w.busy--
		return
	}
	close(w.queue.Remove(first).(chan struct{}))
}

// load returns how many workers are busy and how many requests wait for one.
func (w *workers) load() (busy, queued int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy, w.queue.Len()
}
