package breaker

import (
	"net/http"
	"slices"

	"gatebench/clients"
)

// What can be a failure, as [Settings.FailureOn] lists it. The words are those of the
// retry policy, and protocol.
const (
	onConnect  = "connect"  // refused, not reached in time, or no TLS
	onReset    = "reset"    // closed before the end of the answer
	onTimeout  = "timeout"  // no head in time, or a body that stopped
	onProtocol = "protocol" // no HTTP
	on5xx      = "5xx"      // 500 and above
	on429      = "429"
)

// FailureWords lists every word that FailureOn may hold.
func FailureWords() []string {
	return []string{onConnect, onReset, onTimeout, onProtocol, on5xx, on429}
}

// DefaultFailures is what counts unless told otherwise: all that says that upstream is
// not well. 429 says that it is, and that we ask too much.
func DefaultFailures() []string {
	return []string{onConnect, onReset, onTimeout, onProtocol, on5xx}
}

// failures is the set of outcomes that are failures.
type failures struct {
	kinds                        map[clients.Kind]bool
	serverError, tooManyRequests bool
}

func newFailures(words []string) failures {
	f := failures{kinds: map[clients.Kind]bool{}}
	for word, kinds := range map[string][]clients.Kind{
		onConnect:  {clients.Dial, clients.TLS, clients.TimeoutConnect},
		onReset:    {clients.Reset},
		onTimeout:  {clients.TimeoutHeader, clients.TimeoutBody},
		onProtocol: {clients.Protocol},
	} {
		for _, k := range kinds {
			f.kinds[k] = slices.Contains(words, word)
		}
	}
	f.serverError, f.tooManyRequests = slices.Contains(words, on5xx), slices.Contains(words, on429)
	return f
}

// status reports whether a response with that status is a failure.
func (f failures) status(status int) bool {
	return f.serverError && status >= 500 || f.tooManyRequests && status == http.StatusTooManyRequests
}

// verdict is the outcome of an exchange that ended with err, nil for a good end.
func (f failures) verdict(err error) outcome {
	switch {
	case err == nil:
		return success
	case f.kinds[clients.KindOf(err)]:
		return failure
	}
	return neutral
}
