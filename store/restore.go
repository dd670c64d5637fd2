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
	// It fails only for an epoch that is zero or the one there was.
	for m.feed.replace(model.At{Epoch: newEpoch(), Revision: revision}, why, all) != nil {
	}
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
