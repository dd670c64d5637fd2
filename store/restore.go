package store

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// Restore replaces everything stored by the given records, as of a revision.
// It is for records that were saved: each keeps its uid, its revision and its
// generation. The store is in a new epoch from then on, and every open watch
// is reset, for what its reader was given may never have happened.
//
// A record that cannot be one of that revision fails it with an
// [*InvalidError], and nothing changes.
func (m *Memory) Restore(revision uint64, saved iter.Seq[model.Record]) error {
	all, err := collect(revision, saved)
	if err == nil {
		m.restore(revision, "the store was restored", all)
	}
	return err
}

func (m *Memory) restore(revision uint64, why string, all records) {
	m.commits.Lock()
	defer m.commits.Unlock()
	at := model.At{Epoch: newEpoch(), Revision: revision}
	for at.Epoch == m.At().Epoch {
		at.Epoch = newEpoch()
	}
	next := newState(at, all)
	m.state.Store(next)
	m.history.restart(next.position, why)
}

// collect returns records that were stored at a revision, or says which of
// them cannot have been.
func collect(revision uint64, all iter.Seq[model.Record]) (records, error) {
	editor := noRecords().Edit()
	for r := range all {
		if problem := problemOfSaved(&r, revision); problem != "" {
			return records{}, &InvalidError{r.Ref, problem}
		}
		if _, twice := editor.View().Get(r.Ref); twice {
			return records{}, &InvalidError{r.Ref, "saved twice"}
		}
		editor.Set(r.Ref, &r)
	}
	return editor.Map(), nil
}

// problemOfSaved says why a record cannot be one of those stored at a revision.
func problemOfSaved(r *model.Record, revision uint64) string {
	if problem := problemOf(&model.Write{Record: *r}); problem != "" {
		return problem
	}
	switch {
	case r.UID == model.UID{}:
		return "has no uid"
	case r.Generation == 0:
		return "has no generation"
	case r.Revision == 0 || r.Revision > revision:
		return fmt.Sprintf("has revision %d, and the store was at %d", r.Revision, revision)
	}
	return ""
}
