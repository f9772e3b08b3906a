package load

import (
	"context"
	"net"
	"testing"
)

// What a request costs besides its system calls: picking, reading, recording.
func BenchmarkSend(b *testing.B) {
	m, err := Target{URL: "http://canned/"}.prepare(profile(Profile{}))
	if err != nil {
		b.Fatal(err)
	}
	e := newEngine(m, profile(Profile{Executor: ConstantVUs, VUs: 1, Duration: 1e12}), func(context.Context) (net.Conn, error) { return canned{}, nil })
	e.ctx = b.Context()
	u := e.newUser(0)
	due := e.now()
	for i := 0; b.Loop(); i++ {
		due = u.send(int64(i), due)
	}
}
