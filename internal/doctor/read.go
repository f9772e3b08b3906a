package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Read looks at the machine, and for as long as watch at who uses it. addresses are
// where servers listen by default. The end of ctx cuts the watch short.
func Read(ctx context.Context, watch time.Duration, addresses ...string) Facts {
	f := Facts{Taken: map[string]string{}}
	for _, address := range addresses {
		f.Taken[address] = taken(ctx, address)
	}
	readSystem(ctx, watch, &f)
	return f
}

// taken is why nobody can listen at address, "" if one can.
func taken(ctx context.Context, address string) string {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = l.Close()
		return ""
	case errors.Is(err, syscall.EADDRINUSE):
		return "taken: something listens there"
	case errors.Is(err, os.ErrPermission):
		return "not permitted: ports below 1024 need a privilege"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Sprintf("cannot be listened on: %v", err)
}
