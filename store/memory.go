package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Memory is a store in the memory of this process. Make one with [NewMemory].
type Memory struct {
	state atomic.Pointer[state]

	commits sync.Mutex // held for the whole of a commit; guards history
	history *history
}

// state is one revision. It is immutable, and published as one so that a
// reader's records and its place in the history can never disagree.
type state struct {
	at       model.At
	records  records
	position *position // just after the commit of that revision
}

// newState returns a state, and a position that nothing leads on from yet.
func newState(at model.At, all records) *state { return &state{at, all, newPosition(at)} }

func noRecords() records { return immutable.New[model.Ref, *model.Record](model.Ref.Compare) }

// newEpoch draws an epoch. Zero is left to mean "unknown".
func newEpoch() uint64 { return 1 + rand.Uint64N(math.MaxUint64) }

// NewMemory returns an empty store, at revision 0.
func NewMemory(cfg Config) *Memory {
	start := newState(model.At{Epoch: newEpoch()}, noRecords())
	m := &Memory{history: newHistory(start.position, cfg.history())}
	m.state.Store(start)
	return m
}

// Commit makes all writes of c or none. It returns the revision at which they
// can be read, which is the current one if they changed nothing.
//
// It fails with a [*ConflictError] if a write does not fit what is stored,
// with an [*InvalidError] if it never could, and with the error of ctx if that
// ended first. It names the first such write. A delete that expects no record,
// where there is none, fits and changes nothing.
//
// UID, Revision and Generation of what is stored are the store's to set; those
// of the writes are what the writer expects to find.
func (m *Memory) Commit(ctx context.Context, c model.Commit) (revision uint64, err error) {
	if err := validate(c.Writes); err != nil {
		return 0, err
	}
	m.commits.Lock()
	defer m.commits.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("commit of %d writes: %w", len(c.Writes), err)
	}
	now := m.state.Load()
	changes, err := plan(now.records, c.Writes, now.at.Revision+1)
	if err != nil {
		return 0, err
	}
	if len(changes) == 0 {
		return now.at.Revision, nil
	}
	m.publish(now, changes, c.Observed)
	return now.at.Revision + 1, nil
}

// publish makes the changes the next revision. The state comes before the
// history, so that what a watcher is told it can read.
func (m *Memory) publish(now *state, changes []change, observed time.Time) {
	next := newState(model.At{Epoch: now.at.Epoch, Revision: now.at.Revision + 1}, apply(now.records, changes))
	m.state.Store(next)
	m.history.append(&step{
		revision:  next.at.Revision,
		observed:  observed,
		committed: time.Now(),
		after:     next.position,
	}, changes)
}

// Get returns the record that ref names, and whether there is one.
func (m *Memory) Get(ref model.Ref) (model.Record, bool) {
	record, ok := m.state.Load().records.Get(ref)
	if !ok {
		return model.Record{}, false
	}
	return *record, true
}

// List returns the records that f selects, in the order of their references,
// as of the revision at the time of the call. Ranging over it again yields the
// same records. It costs what it yields and the depth of the tree as long as
// the fields of f that are set are the first of kind, source, namespace and
// name; otherwise it also pays for each combination of the fields left out.
func (m *Memory) List(f model.Filter) iter.Seq[model.Record] {
	now := m.state.Load().records
	return func(yield func(model.Record) bool) {
		for record := range scan(now, f) {
			if !yield(*record) {
				return
			}
		}
	}
}

// Revision returns the revision of the last commit that changed something,
// zero if there was none.
func (m *Memory) Revision() uint64 { return m.At().Revision }

// At returns the moment the store is at: its epoch, and [Memory.Revision].
func (m *Memory) At() model.At { return m.state.Load().at }
