package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// asked is the cause of a context's end: a signal asked the process to end.
type asked struct{ signal syscall.Signal }

func (a asked) Error() string { return "asked to end: " + a.signal.String() }

// status is a shell's exit status of a process that such a signal has ended.
func (a asked) status() int { return signaled + int(a.signal) }

// signaled is the number that shells add to the number of a signal.
const signaled = 128

// Signals returns a context that ends when SIGINT or SIGTERM asks the process to end.
// [Main] reports that for an interrupted command. Call stop when the context is no longer
// needed.
func Signals(parent context.Context) (ctx context.Context, stop func()) {
	return until(parent, syscall.SIGINT, syscall.SIGTERM)
}

// until is [Signals] for other signals.
func until(parent context.Context, signals ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	if len(signals) > 0 { // an empty list would mean all signals
		signal.Notify(came, signals...)
	}
	go func() {
		select {
		case s := <-came:
			number, _ := s.(syscall.Signal)
			cancel(asked{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(nil)
	}
}

// interruption returns the signal that has ended a context, if one has.
func interruption(ctx context.Context) (asked, bool) {
	return errors.AsType[asked](context.Cause(ctx))
}
