package catalog

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// Run keeps a catalog of the records of a store's watch, merged in the order given. It
// publishes each new snapshot with its change, one at a time. Publish must not block: it
// stores its arguments and returns.
//
// Run ends with the watch and returns its error, as [Merger.Run] does.
//
// A snapshot of the store, the first as well as one after a reset, becomes one change. No
// reader ever sees half of it.
func Run(watch iter.Seq2[model.Batch, error], order Order, publish func(*Snapshot, Change)) error {
	return NewMerger(order, publish).Run(watch)
}

func endsSnapshot(events []model.Event) bool {
	if len(events) == 0 {
		return false
	}
	_, ok := events[len(events)-1].(model.EndOfSnapshot)
	return ok
}

// rejoin returns the change from a snapshot that another builder made to its own
// unpublished one. Equal values in both become the same pointers, so that the change is as
// exact as any other.
func (b *Builder) rejoin(old *Snapshot) Change {
	next := *b.snapshot
	change := Change{Services: map[ServiceKey]ServiceChange{}}
	change.Primed, change.Judged = compareMarks(old.primed, next.primed)
	for was := range old.Services() {
		if _, ok := next.Service(was.Key); !ok {
			change.Services[was.Key] = ServiceChange{was, nil, compare(was.endpoints, nil)}
		}
	}
	services := next.services.Edit()
	for now := range next.Services() {
		was, _ := old.Service(now.Key)
		endpoints := now.adopt(was)
		if now.unless(was) == was {
			services.Set(now.Key, was)
			continue
		}
		change.Services[now.Key] = ServiceChange{was, now, endpoints}
	}
	next.services = services.Map()
	next.ports = old.ports
	next.indexPorts(change.Services)
	next.scopes, change.Scopes = rejoinScopes(old.scopes, next.scopes)
	next.opaques, change.Opaques = b.opaques.rejoin(old.opaques, next.opaques)
	next.workloads, change.Workloads = b.byName.rejoin(old.workloads, next.workloads)
	b.snapshot = &next
	return change
}

// adopt takes over the equal parts of was, if there is one, and returns the endpoints that
// differ.
func (s *Service) adopt(was *Service) map[EndpointID]struct{} {
	if was == nil {
		return compare(nil, s.endpoints)
	}
	if s.equal(was.Definition) {
		s.Definition = was.Definition
	}
	return reconcile(was.endpoints, s.endpoints)
}
