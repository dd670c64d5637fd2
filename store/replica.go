package store

import (
	"iter"
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Replica is the half of a store that is read: the records of one revision and
// the commits that led there, for lists and watches. It decides nothing. Only
// its [Memory] changes it.
type Replica struct {
	state   atomic.Pointer[state]
	history *history
}

func newReplica(cfg Config) *Replica {
	start := newState(model.At{Epoch: newEpoch()}, noRecords())
	r := &Replica{history: newHistory(start.position, cfg.withDefaults())}
	r.state.Store(start)
	return r
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

// Get returns the record that ref names, and whether there is one.
func (r *Replica) Get(ref model.Ref) (model.Record, bool) {
	record, ok := r.state.Load().records.Get(ref)
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
func (r *Replica) List(f model.Filter) iter.Seq[model.Record] {
	now := r.state.Load().records
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
func (r *Replica) Revision() uint64 { return r.At().Revision }

// At returns the moment the replica is at: its epoch, and [Replica.Revision].
func (r *Replica) At() model.At { return r.state.Load().at }
