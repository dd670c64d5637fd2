package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Config configures the supervision of a source.
type Config struct {
	Kind string // of registry, for the status
	Log  *slog.Logger
	// Hold configures which drops are held; [hold.Default] unless set.
	Hold hold.Config
	// Edited says that people edit the registry, such as files. The replacement of
	// all its endpoints in one listing is no drop then.
	Edited bool
	// Only confines the source to a part of its registry.
	Only source.Only
	// LocalAddresses says whether endpoints at local addresses are allowed.
	LocalAddresses source.LocalAddresses
	// Network is the network of endpoints that name none.
	Network source.Network
	// Restored is when the records stored at the start were last known to be current;
	// zero if that is unknown, or none were restored.
	Restored time.Time
	// Events takes what changes; nil keeps nothing.
	Events *events.Log
	// Listed, if set, is called once: when the first complete listing of this
	// supervisor is stored and visible in its status.
	Listed func()
	// MinBackoff and MaxBackoff bound the wait before a failed source is run again;
	// 200 ms and 30 s unless set. The waits start over once a source has been live
	// for as long as the longest of them.
	MinBackoff, MaxBackoff time.Duration
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MinBackoff <= 0 {
		c.MinBackoff = 200 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = 30 * time.Second
	}
	c.MaxBackoff = max(c.MaxBackoff, c.MinBackoff)
	if c.Hold == (hold.Config{}) {
		c.Hold = hold.Default()
	}
	return c
}

// Supervisor runs one source: it mirrors the source's readings into the store, runs
// it again when it fails, and keeps its status.
type Supervisor struct {
	src    source.Source
	cfg    Config
	mirror *mirror
	status *status

	running   atomic.Bool
	departure atomic.Pointer[HeldStatus] // nil unless it leaves the configuration
}

// New returns a supervisor of the source with that name, which must be unique in the
// store. It does nothing until [Supervisor.Run].
func New(name string, src source.Source, store Store, cfg Config) *Supervisor {
	cfg = cfg.withDefaults()
	return &Supervisor{src: src, cfg: cfg, mirror: newMirror(name, store, cfg), status: newStatus(name, cfg)}
}

// Status returns the state of the source. It may be called from anywhere.
func (s *Supervisor) Status() source.Status {
	return s.departure.Load().shown(s.mirror.order.Load().shown(s.status.get(), time.Now()))
}

// Run runs the source until ctx ends and then returns nil. A source that fails,
// panics or ends is run again after a wait; its stored records stay. Run fails only
// when the supervisor runs already, for its source must not run twice.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("source %s: already running", s.mirror.source)
	}
	defer s.running.Store(false)
	var following sync.WaitGroup
	following.Go(func() { s.followStale(ctx) })
	defer following.Wait()
	for {
		live, err := s.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if live >= s.cfg.MaxBackoff {
			s.status.recovered()
		}
		if !wait.Sleep(ctx, s.status.ended(err, stackOf(err))) {
			return nil
		}
	}
}

// runOnce runs the source to its end and returns how long it had been live and why it
// ended. The source runs on this goroutine, so its panics end up here.
func (s *Supervisor) runOnce(ctx context.Context) (live time.Duration, err error) {
	k := &sink{src: s.src, mirror: s.mirror, status: s.status, limits: reading.Limits{Source: s.mirror.source, Only: s.cfg.Only, Local: s.cfg.LocalAddresses, Network: s.cfg.Network}}
	defer s.mirror.relist.Stop()
	defer k.stopAsking()
	if err := s.restore(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
		if !k.live.IsZero() {
			live = time.Since(k.live)
		}
	}()
	err = s.src.Run(ctx, k)
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause // the source's own error only repeats that it was asked to end
	}
	if err != nil {
		return 0, err
	}
	return 0, errors.New("the source ended unexpectedly")
}

// restore reads the stored records before the source is run.
func (s *Supervisor) restore(ctx context.Context) error {
	done, err := s.mirror.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.mirror.restore(ctx); err != nil {
		return err
	}
	s.status.restored(s.mirror.counts())
	return nil
}

// panicError is a panic of a source, which stops that source alone.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("panic: %v: this is a defect of Isthmus, please report it with the stack in its log", e.value)
}

// stackOf returns the stack of a panic; nil for any other error.
func stackOf(err error) []byte {
	if p, panicked := errors.AsType[*panicError](err); panicked {
		return p.stack
	}
	return nil
}

// Exchanges returns the counts of the source; nil if it is not [source.Exchanging].
func (s *Supervisor) Exchanges() []source.Exchange {
	if src, ok := s.src.(source.Exchanging); ok {
		return src.Exchanges()
	}
	return nil
}

// StreamsRejected counts streams and connections that a listening source did not
// serve, by cause; nil for all other sources.
func (s *Supervisor) StreamsRejected() map[string]uint64 {
	if src, ok := s.src.(source.Listener); ok {
		return src.StreamsRejected()
	}
	return nil
}
