package store

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Memory is a store in the memory of this process. It decides commits, gives them
// revisions, and applies them to the replica, which all readers use. [NewMemory] makes
// one.
type Memory struct {
	*Replica
	commits sync.Mutex // held while a commit is decided and applied, so that commits do not interleave
}

// newEpoch draws an epoch. Zero is left to mean "unknown".
func newEpoch() uint64 { return 1 + rand.Uint64N(math.MaxUint64) }

// NewMemory returns an empty store, at revision 0.
func NewMemory(cfg Config) *Memory {
	return &Memory{Replica: newReplica(cfg)}
}

// Commit makes all writes of c or none. It returns the revision at which they can be
// read, which is the current revision if they changed nothing.
//
// It fails with a [*ConflictError] if a write does not match the stored record, and
// with an [*InvalidError] if a write is invalid. It fails with the error of ctx if ctx
// ended first. The error names the first such write. A delete that expects no record,
// where there is none, succeeds and changes nothing.
//
// The store sets UID, Revision and Generation of stored records. In a write, UID and
// Revision are the values that the writer expects.
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
	next := model.At{Epoch: now.at.Epoch, Revision: now.at.Revision + 1}
	changes, err := decide(now, c, next.Revision)
	if err != nil {
		return 0, err
	}
	if len(changes) == 0 {
		return now.at.Revision, nil
	}
	m.advance(now, changes, next, c.Observed)
	return next.Revision, nil
}

// advance makes the changes the next state. The state is published before the history,
// so that a watcher can read the records of its events.
func (m *Memory) advance(now *state, changes []change, at model.At, observed time.Time) {
	next := newState(at, apply(now.records, changes))
	m.state.Store(next)
	m.history.append(&step{
		revision:  at.Revision,
		observed:  observed,
		committed: time.Now(),
		after:     next.position,
	}, changes)
}
