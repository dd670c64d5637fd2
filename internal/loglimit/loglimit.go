// Package loglimit bounds the log lines that peers can cause. Any client that may connect
// can cause unlimited lines: the disk would be full of them before an operator reads the
// first.
//
// A limit is common to all loggers that are derived from its handler. Each level has a
// share of its own, so that a flood of warnings does not hide an error. The next logged
// line has the number of suppressed lines before it.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// burst is the number of lines of a level that may come at once. After that, each further
	// line takes an interval.
	burst    = 10
	interval = time.Second
	// Unlogged is the key of the number of suppressed lines.
	Unlogged = "unlogged"
)

// New returns a handler that passes on the lines within the limit. A handler that is
// already limited is returned as it is. It may be used by any goroutine, as far as the
// handler behind it may.
func New(h slog.Handler) slog.Handler {
	if _, ok := h.(*limited); ok {
		return h
	}
	return &limited{Handler: h, levels: new([3]share)}
}

type limited struct {
	slog.Handler
	levels *[3]share // shared by all handlers derived from one
}

var _ slog.Handler = (*limited)(nil)

// Handle implements [slog.Handler].
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	left, ok := l.share(r.Level).take(time.Now())
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64(Unlogged, left))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.levels}
}

// WithGroup implements [slog.Handler].
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.levels}
}

func (l *limited) share(level slog.Level) *share {
	switch {
	case level >= slog.LevelError:
		return &l.levels[2]
	case level >= slog.LevelInfo:
		return &l.levels[1]
	default:
		return &l.levels[0]
	}
}

// share is the state of the limit for one level.
type share struct {
	mu   sync.Mutex
	next time.Time // when the next line would come at an even spacing
	left uint64    // lines suppressed since the last logged one
}

// take reports whether one more line is within the share, and how many lines before it were
// suppressed.
func (s *share) take(now time.Time) (left uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.next
	if next.Before(now) {
		next = now
	}
	if next.Sub(now) > (burst-1)*interval {
		s.left++
		return 0, false
	}
	s.next, left, s.left = next.Add(interval), s.left, 0
	return left, true
}
