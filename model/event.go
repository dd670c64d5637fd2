package model

import "time"

// Event is one step of a watch: exactly one of [Upsert], [Delete],
// [EndOfSnapshot] and [Reset].
type Event interface{ event() }

// Upsert means that a record was created or changed; during a snapshot, that it exists.
type Upsert struct {
	Record Record
	// Before is the replaced record, which must not be written to; nil in a snapshot, and for a
	// created one.
	Before *Record
}

// Delete means that a record was deleted. It carries the record's last content; Revision is
// the revision of the deleting commit.
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

// Reset means that the watch cannot continue from the reader's state. The reader drops that
// state; a new snapshot follows.
type Reset struct{ Reason string }

func (Upsert) event()        {}
func (Delete) event()        {}
func (EndOfSnapshot) event() {}
func (Reset) event()         {}

// Batch is an atomic step of a watch. Outside a snapshot it is one whole commit. A snapshot
// may come in several batches; the last one ends with [EndOfSnapshot], and a reader applies
// them as one.
type Batch struct {
	Events []Event
	// Observed is when the registry's change was first seen, and Committed when
	// the store took it. Both are zero in a snapshot.
	Observed, Committed time.Time
}

// At is a moment in the life of a store. Revisions compare within one epoch;
// the zero At is no moment at all.
type At struct{ Epoch, Revision uint64 }

// Start is where a watch begins. The zero Start begins with a snapshot of now.
type Start struct {
	// Held is the moment of the reader's state, from an earlier watch with the same filter:
	// the moment of the last batch that it took whole. Unless Held is zero, the watch begins
	// with the missed commits, deletes included, and without a snapshot. If they are unknown,
	// it begins with a [Reset].
	Held At
	// NotOlderThan delays the begin of the watch until the store has reached this moment. With
	// an Epoch of zero its revision counts in the store's current epoch.
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

// Write is one conditional change to a store. Every write is compare-and-set.
// Record.Revision must be the revision of the stored record, zero when there is none.
// Record.UID, when set, must be its uid.
type Write struct {
	Record Record
	Delete bool // Record then needs its Ref and Revision only
}

// Commit is a set of writes that take effect together or not at all.
type Commit struct {
	Writes []Write
	// Observed is when the change was first seen at the registry; zero if unknown.
	Observed time.Time
}
