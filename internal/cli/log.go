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

// logging writes a log of which level and format may change at any time, for
// all loggers derived from it, too.
type logging struct {
	level slog.LevelVar
	json  atomic.Bool
}

// newLog returns a logger, and what changes it. What clients and registries say
// is in it: the text format quotes what does not print, and so does JSON here.
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

// eitherFormat is a handler of both formats, which are kept side by side
// because a handler cannot be asked for what was added to it.
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

// oneAtATime keeps lines whole: two handlers write to one place.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}
