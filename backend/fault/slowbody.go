package fault

import (
	"io"
	"time"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// pieces is how many a slow body comes in.
const pieces = 10

// A service that writes its answer as it works it out.
type slowBody time.Duration

var slowBodyKind = kind{
	key:   "slow_body",
	asked: func(f Fault) bool { return f.SlowBody != 0 },
	check: func(f Fault, c *conf.Check) {
		c.That(f.SlowBody > 0 && f.SlowBody <= longest, "slow_body", "%v is not a time for a body: write more than 0s, up to %v", f.SlowBody, longest)
	},
	words:   func(f Fault) string { return "slow body of " + f.SlowBody.String() },
	perform: func(f Fault) effect { return slowBody(f.SlowBody) },
}

func (s slowBody) answer(x Exchange) *clients.Response {
	resp := x.Next()
	if bodiless(x.In, resp) {
		return resp
	}
	piece := (max(resp.ContentLength, 0) + pieces - 1) / pieces
	if resp.ContentLength < 0 {
		piece = 512
	}
	gaps := max(resp.ContentLength, 0) / piece
	if resp.ContentLength%piece == 0 {
		gaps--
	}
	d := time.Duration(s) / time.Duration(max(gaps, 1))
	resp.Body = &slowly{ReadCloser: resp.Body, piece: piece, wait: func() error { return x.Wait(x.Ctx, d) }}
	return resp
}

// slowly gives its first piece at once and waits before each of the others.
type slowly struct {
	io.ReadCloser
	piece int64
	left  int64 // of the piece
	begun bool
	wait  func() error
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 && s.begun {
		if err := s.wait(); err != nil {
			return 0, &clients.Error{Kind: clients.Canceled, Err: err}
		}
	}
	if s.left == 0 {
		s.left, s.begun = s.piece, true
	}
	n, err := s.ReadCloser.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}
