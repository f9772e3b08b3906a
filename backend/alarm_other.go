//go:build !linux

package backend

import (
	"context"
	"time"
)

// An alarm is Go's own timer here: up to a millisecond late in an idle process.
type alarm struct{}

func newAlarm() (*alarm, error) { return &alarm{}, nil }

func (a *alarm) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *alarm) close() {}
