package sut

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// lines calls each with every whole line written to it, without its end.
type lines struct {
	each func(string)
	rest []byte
}

// longestLine is where a line without an end is cut.
const longestLine = 64 << 10

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) < longestLine {
			return len(b), nil
		}
		if i < 0 {
			i = len(l.rest) - 1
		}
		l.each(string(bytes.TrimRight(l.rest[:i+1], "\r\n")))
		l.rest = l.rest[i+1:]
	}
}

// end gives what was written without an end of line.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.each(string(l.rest))
		l.rest = nil
	}
}

// journal is one log for many speakers.
type journal struct {
	mu sync.Mutex
	w  io.Writer
}

func (j *journal) say(who, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// A log that cannot be written must not end a measurement.
	_, _ = fmt.Fprintf(j.w, "%s: %s\n", who, what)
}
