package cli

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A server that was asked to stop ends in time, whatever it is busy with.
func TestAServerThatIsBusyStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		work := make(chan struct{})
		time.AfterFunc(time.Hour, stop)
		began := time.Now()
		err := stopWithin(ctx, slog.New(slog.DiscardHandler), func() error { <-work; return errors.New("too late") })
		if took := time.Since(began); err != nil || took != time.Hour+5*time.Second {
			t.Errorf("it returned %v after %s", err, took)
		}
		close(work)
	})
}

// One that ends by itself, or within the limit, says how it ended.
func TestAServerSaysHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		if err := stopWithin(t.Context(), nil, func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("it returned %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := stopWithin(ctx, nil, func() error { time.Sleep(time.Second); return failed }); !errors.Is(err, failed) {
			t.Errorf("it returned %v", err)
		}
	})
}
