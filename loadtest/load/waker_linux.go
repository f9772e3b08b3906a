package load

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gatebench/internal/lead"
)

// newWaker makes a waker on a timerfd.
//
// Why not time.Sleep: the runtime hands its next timer to epoll_wait, which counts
// in milliseconds, so an idle process wakes half a millisecond late on average
// (golang.org/issue/53824). Why not clock_nanosleep on a thread of its own: the
// thread keeps its P while it sleeps, and with GOMAXPROCS=1 the request that it
// has just handed over waits until the runtime takes the P back, up to 10 ms.
// A timerfd is a descriptor like a socket: the poller that waits for answers
// waits for it too, and its timer has no slack.
func newWaker(e *engine) (waker, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	w := &timerfd{e: e, fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		w.close()
		return nil, os.NewSyscallError("clock_gettime", err)
	}
	w.base = time.Duration(ts.Nano()) - e.now()
	return w, nil
}

type timerfd struct {
	e    *engine
	fd   int
	file *os.File // the poller's view of fd; owns it
	base time.Duration
	lead lead.Lead
	spec unix.ItimerSpec
	buf  [8]byte
}

func (w *timerfd) wait(t time.Duration) {
	set := t - w.lead.Ahead()
	onTime := set > w.e.now()
	w.spec.Value = unix.NsecToTimespec(int64(w.base + set))
	err := unix.TimerfdSettime(w.fd, unix.TFD_TIMER_ABSTIME, &w.spec, nil)
	if err == nil {
		_, err = w.file.Read(w.buf[:])
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
	case err != nil:
		w.e.sleepUntil(t) // less precise, and the lag will show it
	default:
		now := w.e.now()
		if onTime {
			w.lead.Rang(now - set)
		}
		for ; now < t; now = w.e.now() {
			// The rest of the lead: some microseconds.
		}
	}
}

func (w *timerfd) wake() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

func (w *timerfd) close() { _ = w.file.Close() }
