package store

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// restore replaces all records by saved ones, as of a revision. The store is in a new
// epoch from then on, and every open watch is reset.
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
