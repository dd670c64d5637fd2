package store

import (
	"crypto/rand"
	"fmt"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// records is every record of one revision. Revisions share the records themselves, so
// nothing may write to a record.
type records = immutable.Map[model.Ref, *model.Record]

// change is the effect of a write. before is nil when the record is created, after
// when it is deleted.
type change struct{ before, after *model.Record }

// validate reports the first invalid write, regardless of the stored records.
func validate(writes []model.Write) error {
	written := make(map[model.Ref]struct{}, len(writes))
	for i := range writes {
		w := &writes[i]
		if problem := problemOf(w); problem != "" {
			return &InvalidError{w.Record.Ref, problem}
		}
		if _, twice := written[w.Record.Ref]; twice {
			return &InvalidError{w.Record.Ref, "written twice in one commit; keep the write that counts, or use two commits"}
		}
		written[w.Record.Ref] = struct{}{}
	}
	return nil
}

func problemOf(w *model.Write) string {
	switch r := &w.Record; {
	case r.Kind == "":
		return "kind is empty; every record needs one"
	case r.Source == "":
		return "source is empty; every record belongs to one"
	case r.Name == "":
		return "name is empty; every record needs one"
	case w.Delete:
		return "" // Only the reference and the versions of a delete are read.
	default:
		return problemOfSpec(r.Spec)
	}
}

// problemOfSpec rejects everything but the values of package model. A pointer to such
// a value would let its owner change the store from outside.
func problemOfSpec(spec model.Spec) string {
	switch {
	case spec == nil:
		return "has no specification; give it one, or delete it"
	case model.IsSpec(spec):
		return ""
	default:
		return fmt.Sprintf("specification is a %T; want one of package model's, by value", spec)
	}
}

// decide returns the changes of a valid commit.
func decide(now *state, c model.Commit, revision uint64) ([]change, error) {
	return plan(now.records, c.Writes, revision)
}

// plan compares every write with the stored record and returns the effective changes,
// in the order of the writes.
func plan(stored records, writes []model.Write, revision uint64) ([]change, error) {
	changes := make([]change, 0, len(writes))
	for i := range writes {
		w := &writes[i]
		before, _ := stored.Get(w.Record.Ref)
		if err := compare(&w.Record, before); err != nil {
			return nil, err
		}
		if c, ok := effect(w, before, revision); ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// effect returns the change of a matching write, and whether there is one.
func effect(w *model.Write, before *model.Record, revision uint64) (change, bool) {
	switch {
	case w.Delete:
		return change{before: before}, before != nil
	case before == nil:
		return change{after: stamp(w.Record, newUID(), revision, 1)}, true
	case before.SameContent(w.Record):
		return change{}, false
	default:
		return change{before, stamp(w.Record, before.UID, revision, before.Generation+1)}, true
	}
}

// stamp returns a copy of r with the fields that the store sets.
func stamp(r model.Record, uid model.UID, revision, generation uint64) *model.Record {
	r.UID, r.Revision, r.Generation = uid, revision, generation
	return &r
}

func newUID() (uid model.UID) {
	_, _ = rand.Read(uid[:]) // never fails: the process ends first
	return uid
}

// apply returns stored with the changes made.
func apply(stored records, changes []change) records {
	editor := stored.Edit()
	for _, c := range changes {
		if c.after == nil {
			editor.Delete(c.before.Ref)
		} else {
			editor.Set(c.after.Ref, c.after)
		}
	}
	return editor.Map()
}
