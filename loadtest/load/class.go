package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// class names what became of a failed request, and by that the side to look at.
type class string

const (
	fine        class = ""            // not failed
	refused     class = "refused"     // nobody listens
	reset       class = "reset"       // the connection ended before the answer did
	timeout     class = "timeout"     // no whole answer within the timeout
	cut         class = "cut"         // in flight when the run ended, and not answered in the wait after it
	protocol    class = "protocol"    // an answer that is not HTTP/1.1
	rejected    class = "rejected"    // turned away: 503 with Retry-After, as a breaker or a server that sheds load answers
	badStatus   class = "status"      // answered with 400 or above, or with another status than was to be
	badAnswer   class = "check"       // the right status, and a field or body that is not as it was to be
	tlsFailure  class = "tls"         // no handshake, or a certificate that is not trusted
	descriptors class = "descriptors" // this machine: out of file descriptors
	ports       class = "ports"       // this machine: out of local ports
	otherwise   class = "other"
)

// phase is how far an exchange has come: where a timeout struck.
type phase int

const (
	connecting   phase = iota // and shaking hands
	awaitingHead              // writing the request, and waiting for the answer's head
	readingBody
	phases // how many there are
)

func (p phase) String() string { return [phases]string{"connect", "header", "body"}[p] }

// errInterrupted ends what is in flight when the run is interrupted.
var errInterrupted = errors.New("the run was interrupted")

// handshakeError is an error of the TLS handshake.
type handshakeError struct{ err error }

func (e handshakeError) Error() string { return "tls handshake: " + e.err.Error() }
func (e handshakeError) Unwrap() error { return e.err }

// errnos are the classes that the operating system decides.
var errnos = []struct {
	errno syscall.Errno
	class class
}{
	{syscall.ECONNREFUSED, refused},
	{syscall.ECONNRESET, reset},
	{syscall.ECONNABORTED, reset},
	{syscall.EPIPE, reset},
	{syscall.ETIMEDOUT, timeout},
	{syscall.EMFILE, descriptors},
	{syscall.ENFILE, descriptors},
	{syscall.EADDRNOTAVAIL, ports},
}

// classify finds the class of an error on the way to an answer.
func classify(err error) class {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return cut
	}
	for _, e := range errnos {
		if errors.Is(err, e.errno) {
			return e.class
		}
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return timeout
	}
	if _, ok := errors.AsType[protocolError](err); ok {
		return protocol
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return reset
	}
	if _, ok := errors.AsType[checkError](err); ok {
		return badAnswer
	}
	if _, ok := errors.AsType[handshakeError](err); ok {
		return tlsFailure
	}
	return otherwise
}

// describe is the example of a class that the summary shows.
func describe(err error) string {
	if errors.Is(err, io.EOF) {
		return "the connection was closed before the answer was complete"
	}
	return fmt.Sprint(err)
}
