package store

import (
	"iter"
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Replica is the half of a store that is read: the records of one revision and the
// commits before it, for lists and watches. It decides nothing. Only its [Memory]
// changes it.
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

// state is one revision. It is immutable and published as a whole. A reader's records
// and its position in the history therefore always agree.
type state struct {
	at       model.At
	records  records
	position *position // just after the commit of that revision
}

// newState returns a state and a position without a following step.
func newState(at model.At, all records) *state { return &state{at, all, newPosition(at)} }

func noRecords() records { return immutable.New[model.Ref, *model.Record](model.Ref.Compare) }

// Get returns the record of ref, and whether there is one.
func (r *Replica) Get(ref model.Ref) (model.Record, bool) {
	record, ok := r.state.Load().records.Get(ref)
	if !ok {
		return model.Record{}, false
	}
	return *record, true
}

// List returns the records that f selects, in the order of their references. They are
// of the revision at the time of the call: ranging over it again yields the same
// records. Its cost is the yielded records and the depth of the tree, if the set
// fields of f are the first of kind, source, namespace and name. Otherwise each
// combination of the unset fields adds to the cost.
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

// ListAfter is [Replica.List] without the records up to a reference, with the moment of the
// records. The zero reference leaves out none.
func (r *Replica) ListAfter(f model.Filter, after model.Ref) (iter.Seq[model.Record], model.At) {
	now := r.state.Load()
	return func(yield func(model.Record) bool) {
		for record := range scanAfter(now.records, f, after) {
			if !yield(*record) {
				return
			}
		}
	}, now.at
}

// Revision returns the revision of the last commit with a change; zero if there was
// none.
func (r *Replica) Revision() uint64 { return r.At().Revision }

// At returns the moment of the replica: its epoch, and [Replica.Revision].
func (r *Replica) At() model.At { return r.state.Load().at }
