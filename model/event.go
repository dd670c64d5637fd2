package model

import "time"

// Event is one step of a watch: exactly one of [Upsert], [Delete],
// [EndOfSnapshot] and [Reset].
type Event interface{ event() }

// Upsert says that a record was created or changed; during a snapshot, that it exists.
type Upsert struct{ Record Record }

// Delete says that a record is gone. It carries the last content the record
// had; Revision is that of the commit which deleted it.
type Delete struct {
	Record   Record
	Revision uint64
}

// EndOfSnapshot follows the last record of a snapshot, once per snapshot,
// also when the snapshot is empty.
type EndOfSnapshot struct {
	Revision uint64 // every record of the snapshot is as of this revision
	Epoch    uint64 // changes when the store loses history; revisions compare within one epoch
}

// Reset says that the watch cannot go on from what the reader holds. The
// reader drops it all; a new snapshot follows.
type Reset struct{ Reason string }

func (Upsert) event()        {}
func (Delete) event()        {}
func (EndOfSnapshot) event() {}
func (Reset) event()         {}

// Batch is an atomic step of a watch. Outside a snapshot it is one whole
// commit. A snapshot may come in several batches, of which the last ends with
// [EndOfSnapshot]; a reader applies them as one.
type Batch struct {
	Events []Event
	// Observed is when the registry's change was first seen, and Committed when
	// the store took it. Both are zero in a snapshot.
	Observed, Committed time.Time
}

// At is a moment in the life of a store. Revisions compare within one epoch;
// the zero At is no moment at all.
type At struct{ Epoch, Revision uint64 }

// Start says where a watch begins. The zero Start begins with a snapshot of now.
type Start struct {
	// Held is the moment whose state the reader holds, from an earlier watch
	// with the same filter: that of the last batch it took whole. Unless it is
	// zero, the watch begins with what the reader missed since, deletes
	// included, and without a snapshot; or with a [Reset] if that is not known.
	Held At
	// NotOlderThan keeps the watch from beginning before the store has come so
	// far. With an Epoch of zero its revision is of whatever epoch the store is in.
	NotOlderThan At
}

// Filter selects records. Empty fields select all.
type Filter struct {
	Kind      Kind
	Source    string
	Namespace string
	Prefix    string // of the name
}

// Matches reports whether the filter selects a record with that reference.
func (f Filter) Matches(r Ref) bool {
	return (f.Kind == "" || f.Kind == r.Kind) &&
		(f.Source == "" || f.Source == r.Source) &&
		(f.Namespace == "" || f.Namespace == r.Namespace) &&
		len(r.Name) >= len(f.Prefix) && r.Name[:len(f.Prefix)] == f.Prefix
}

// Write is one conditional change to a store. Every write is compare-and-set:
// Record.Revision must be that of the stored record, zero when there is none,
// and Record.UID, when set, that of its life.
type Write struct {
	Record Record
	Delete bool // Record then needs its Ref and Revision only
}

// Commit is a set of writes that take effect together or not at all.
type Commit struct {
	Writes []Write
	// Observed is when the change was first seen at the registry; zero if unknown.
	Observed time.Time
	// Epoch is the one that the revisions of the writes are of, for a writer that
	// may outlive it: a store that lost commits gives their revisions out again.
	// Zero is whatever epoch the store is in.
	Epoch uint64
}
