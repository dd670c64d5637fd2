package cli

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// logging writes a log with a level and format that may change at any time, also for all
// loggers derived from it.
type logging struct {
	level slog.LevelVar
	json  atomic.Bool
}

// newLog returns a logger, and the object that changes its settings. The log contains text
// from clients and registries: the text format quotes unprintable characters, and so does
// JSON here.
func newLog(c config.Log, w io.Writer) (*slog.Logger, *logging) {
	l := &logging{}
	l.set(c)
	options, one := &slog.HandlerOptions{Level: &l.level}, &oneAtATime{w: w}
	return slog.New(&eitherFormat{l, slog.NewTextHandler(one, options), slog.NewJSONHandler(plain.JSONWriter(one), options)}), l
}

func (l *logging) set(c config.Log) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // validation has rejected other names
	}
	l.level.Set(level)
	l.json.Store(c.Format == "json")
}

// eitherFormat is a handler of both formats. Both handlers are kept, because a handler's
// added attributes cannot be read back.
type eitherFormat struct {
	*logging
	text, asJSON slog.Handler
}

var _ slog.Handler = (*eitherFormat)(nil)

func (h *eitherFormat) current() slog.Handler {
	if h.json.Load() {
		return h.asJSON
	}
	return h.text
}

// Enabled implements [slog.Handler].
func (h *eitherFormat) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// Handle implements [slog.Handler].
func (h *eitherFormat) Handle(ctx context.Context, r slog.Record) error {
	return h.current().Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *eitherFormat) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &eitherFormat{h.logging, h.text.WithAttrs(attrs), h.asJSON.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h *eitherFormat) WithGroup(name string) slog.Handler {
	return &eitherFormat{h.logging, h.text.WithGroup(name), h.asJSON.WithGroup(name)}
}

// oneAtATime keeps lines whole: two handlers write to one writer.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}
