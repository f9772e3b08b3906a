package clients

import "io"

// A Decoder is a client that can make a Go value of an answer, the way its own
// library would. That is its second, optional half: a gateway in mode "typed" needs
// it, one that passes bytes on does not.
type Decoder interface {
	// Decode reads one JSON value from body, to its end, into v, which it may not
	// keep. Fields that v does not have are dropped. An error of body is returned
	// so that [KindOf] finds its kind; one without a kind means that what came is
	// not JSON, not all of it, or not of v's type.
	Decode(body io.Reader, v any) error
}
