package storetest

import (
	"errors"
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// commit folds in one commit after the snapshot.
func (v *view) commit(b model.Batch) error {
	revision, err := revisionOf(b.Events[0])
	if err != nil {
		return err
	}
	if revision <= v.revision {
		return fmt.Errorf("rule 4: a commit of revision %d after %d", revision, v.revision)
	}
	if b.Committed.IsZero() {
		return errors.New("a commit without its time")
	}
	v.revision = revision
	for _, event := range b.Events {
		if r, err := revisionOf(event); err != nil {
			return err
		} else if r != revision {
			return fmt.Errorf("revisions %d and %d in one commit", revision, r)
		}
		if err := v.change(event, revision); err != nil {
			return err
		}
	}
	return nil
}

func revisionOf(event model.Event) (uint64, error) {
	switch e := event.(type) {
	case model.Upsert:
		return e.Record.Revision, nil
	case model.Delete:
		return e.Revision, nil
	default:
		return 0, fmt.Errorf("rule 2: a %T among the changes of a commit", event)
	}
}

func (v *view) change(event model.Event, revision uint64) error {
	switch e := event.(type) {
	case model.Upsert:
		return v.upsert(e.Record, revision)
	case model.Delete:
		return v.remove(e.Record, revision)
	}
	return nil
}

func (v *view) upsert(r model.Record, revision uint64) error {
	if err := v.advance(r.Ref, revision); err != nil {
		return err
	}
	held, ok := v.held[r.Ref]
	switch {
	case v.ended[r.UID] || r.UID == model.UID{}:
		return fmt.Errorf("rule 6: %s has uid %s, which is of no living record", r.Ref, r.UID)
	case ok && (r.UID != held.UID || r.Generation != held.Generation+1):
		return fmt.Errorf("%s: uid %s, generation %d follows uid %s, generation %d",
			r.Ref, r.UID, r.Generation, held.UID, held.Generation)
	case !ok && r.Generation != 1:
		return fmt.Errorf("%s: begins at generation %d", r.Ref, r.Generation)
	}
	v.held[r.Ref] = r
	return nil
}

func (v *view) remove(r model.Record, revision uint64) error {
	if err := v.advance(r.Ref, revision); err != nil {
		return err
	}
	if held, ok := v.held[r.Ref]; !ok || !same(held, r) {
		return fmt.Errorf("rule 5: a delete of %s with %+v, where %+v was held", r.Ref, r, held)
	}
	delete(v.held, r.Ref)
	v.ended[r.UID] = true
	return nil
}

func (v *view) advance(ref model.Ref, revision uint64) error {
	if revision <= v.got[ref] {
		return fmt.Errorf("rule 3: %s at revision %d after %d", ref, revision, v.got[ref])
	}
	v.got[ref] = revision
	return nil
}

// same reports whether a and b are the same state of the same life of a record.
func same(a, b model.Record) bool {
	return a.SameContent(b) && a.UID == b.UID && a.Revision == b.Revision && a.Generation == b.Generation
}
