package store

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// Restore replaces all stored records by the given ones, as of a revision. The records
// are saved ones: each keeps its uid, its revision and its generation. The store is in
// a new epoch from then on. Every open watch is reset, because the new history may
// lack commits that its reader was sent.
//
// A record that cannot have been stored at that revision fails it with an
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

// collect returns records that were stored at a revision, or an error for a record
// that cannot have been.
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

// problemOfSaved explains why a record cannot have been stored at a revision.
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
