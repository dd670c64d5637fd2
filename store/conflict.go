package store

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// Reason is why a write conflicts with the stored record.
type Reason string

// The reasons of a [ConflictError].
const (
	// ReasonExists: the write expects no record, and there is one.
	ReasonExists Reason = "exists"
	// ReasonMissing: the write expects a record, and there is none.
	ReasonMissing Reason = "missing"
	// ReasonOtherLife: the record was deleted and created again; its uid differs.
	ReasonOtherLife Reason = "other life"
	// ReasonSuperseded: the stored record is at another revision than the write expects.
	ReasonSuperseded Reason = "superseded"
)

// Version tells one state of a record from all others.
type Version struct {
	UID      model.UID
	Revision uint64
}

// ConflictError reports that a write was not based on the stored record. No write of
// its commit took effect. The writer reads the record again and decides anew.
type ConflictError struct {
	Ref    model.Ref
	Reason Reason
	Wanted Version // that the write expects
	Stored Version // of the stored record; zero if none is stored
}

func (e *ConflictError) Error() string {
	switch e.Reason {
	case ReasonExists:
		return fmt.Sprintf("%s: exists at revision %d, and the write expects no record; read it and write with its revision",
			e.Ref, e.Stored.Revision)
	case ReasonMissing:
		return fmt.Sprintf("%s: not stored, and the write expects revision %d, uid %s; it was deleted, or never created: "+
			"create it with no revision and no uid, or let it be", e.Ref, e.Wanted.Revision, e.Wanted.UID)
	case ReasonOtherLife:
		return fmt.Sprintf("%s: has uid %s, and the write expects %s; it was deleted and created again: "+
			"read it again and decide anew", e.Ref, e.Stored.UID, e.Wanted.UID)
	case ReasonSuperseded:
		return fmt.Sprintf("%s: is at revision %d, and the write expects %d; read it again and apply the change to what is stored",
			e.Ref, e.Stored.Revision, e.Wanted.Revision)
	}
	return fmt.Sprintf("%s: %s", e.Ref, e.Reason)
}

// InvalidError reports a write that is invalid, whichever record is stored. No write
// of its commit took effect, and a retry fails as well.
type InvalidError struct {
	Ref     model.Ref
	Problem string // the fault and how to fix it
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Ref, e.Problem) }

// compare checks a write against the record stored under its reference; nil if none
// is. A wrong uid is reported before a wrong revision: the revision of another life
// means nothing.
func compare(w, stored *model.Record) error {
	conflict := &ConflictError{Ref: w.Ref, Wanted: Version{w.UID, w.Revision}}
	if stored == nil {
		if conflict.Wanted == (Version{}) {
			return nil
		}
		conflict.Reason = ReasonMissing
		return conflict
	}
	conflict.Stored = Version{stored.UID, stored.Revision}
	switch {
	case w.UID != model.UID{} && w.UID != stored.UID:
		conflict.Reason = ReasonOtherLife
	case w.Revision == 0:
		conflict.Reason = ReasonExists
	case w.Revision != stored.Revision:
		conflict.Reason = ReasonSuperseded
	default:
		return nil
	}
	return conflict
}
