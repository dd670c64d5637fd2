package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// Store is the store that supervisors mirror registries to.
type Store interface {
	Committer
	Lister
	// Revision returns the revision of the last commit that List shows.
	Revision() uint64
}

// Committer takes commits.
type Committer interface {
	// Commit applies all writes of a commit or, on any error, none, and returns its revision.
	Commit(ctx context.Context, commit model.Commit) (uint64, error)
}

// Lister has records to read.
type Lister interface {
	// List yields the records a filter selects, in the order of [model.Ref.Compare]
	// and as of one revision. It shows every commit that has returned.
	List(filter model.Filter) iter.Seq[model.Record]
}

// Config configures the supervision of a source.
type Config struct {
	Kind string // of registry, for the status
	Log  *slog.Logger
	// Hold configures which drops are held; [DefaultHold] unless set.
	Hold Hold
	// Edited says that people edit the registry, such as files. The replacement of
	// all its endpoints in one listing is no drop then.
	Edited bool
	// Only confines the source to a part of its registry.
	Only Only
	// LocalAddresses says whether endpoints at local addresses are allowed.
	LocalAddresses LocalAddresses
	// Restored is when the records stored at the start were last known to be current;
	// zero if that is unknown, or none were restored.
	Restored time.Time
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
	if c.Hold == (Hold{}) {
		c.Hold = DefaultHold()
	}
	return c
}

// Supervisor runs one source: it mirrors the source's readings into the store, runs
// it again when it fails, and keeps its status.
type Supervisor struct {
	name  string
	src   Source
	store Store
	cfg   Config

	running atomic.Bool

	// writing is held by the writer of this source's records in the store: the
	// present run, or an operator's release. It is a channel so that a caller can
	// stop waiting when its context ends.
	writing chan struct{}
	repeats repeats // logged rejections; belongs to the writer

	departure atomic.Pointer[HeldStatus] // nil unless it leaves the configuration

	state
}

// NewSupervisor returns a supervisor of the source with that name, which must be
// unique in the store. It does nothing until [Supervisor.Run].
func NewSupervisor(name string, src Source, store Store, cfg Config) *Supervisor {
	s := &Supervisor{name: name, src: src, store: store, cfg: cfg.withDefaults(), writing: make(chan struct{}, 1)}
	s.begin(name, s.cfg)
	return s
}

// Status returns the state of the source. It may be called from anywhere.
func (s *Supervisor) Status() Status { return s.departure.Load().shown(s.own()) }

// own returns the status without a departure.
func (s *state) own() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Run runs the source until ctx ends and then returns nil. A source that fails,
// panics or ends is run again after a wait; its stored records stay. Run fails only
// when the supervisor runs already, for its source must not run twice.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("source %s: runs already", s.name)
	}
	defer s.running.Store(false)
	for {
		live, err := s.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if live >= s.cfg.MaxBackoff {
			s.recovered()
		}
		if !wait.Sleep(ctx, s.ended(err)) {
			return nil
		}
	}
}

// runOnce runs the source to its end and returns how long it had been live and why it
// ended. The source runs on this goroutine, so its panics end up here.
func (s *Supervisor) runOnce(ctx context.Context) (live time.Duration, err error) {
	k := &sink{Supervisor: s}
	defer k.relist.Stop()
	defer k.askForOwners(false, true)
	if err := k.restore(ctx); err != nil {
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
	return 0, errors.New("the source ended without being asked to")
}

// panicError is a panic of a source, which stops that source alone.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("panic: %v: this is a defect of Isthmus, please report it with the stack in its log", e.value)
}

func (s *Supervisor) all() iter.Seq[model.Record] { return s.store.List(model.Filter{Source: s.name}) }

// write makes the caller the writer of the source's records, until done is called. It
// fails if ctx ends first.
func (s *Supervisor) write(ctx context.Context) (done func(), err error) {
	select {
	case s.writing <- struct{}{}:
		return func() { <-s.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reindex rebuilds the index and the holds from the store. It returns writes that
// remove the marks of an older Isthmus on held records. These are held for the source
// as a whole, since their cause is unknown.
func (s *Supervisor) reindex() (unmark []model.Write) {
	var said []model.Record
	var stored []part
	index := newIndex()
	for rec := range index.following(s.all()) {
		switch {
		case rec.Kind == model.KindHold:
			said = append(said, rec)
		case !rec.Kind.Reserved():
			stored = append(stored, partOf(rec))
		}
		if rec.Status.LegacyHeld != "" {
			unmark = append(unmark, model.Write{Record: rec})
		}
	}
	if len(said) == 0 {
		stored = nil
	}
	holds := s.holds.restore(said, stored)
	holds.adopt(unmark)
	s.reread(index, holds)
	return unmark
}
