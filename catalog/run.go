package catalog

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// Run keeps a catalog of everything a store's watch tells, merging sources in
// the order given, and publishes each new snapshot with its change, one at a
// time. Publish must not block: it takes note and returns.
//
// Run ends with the watch and returns its error.
//
// A snapshot of the store, the first as well as one after a reset, becomes one
// change, so that no reader ever sees half of it.
func Run(watch iter.Seq2[model.Batch, error], order []string, publish func(*Snapshot, Change)) error {
	published, builder := Empty(), NewBuilder(order)
	live := false // the builder has seen the end of its snapshot
	for batch, err := range watch {
		if err != nil {
			return err
		}
		revision := builder.Snapshot().Revision
		for _, event := range batch.Events {
			switch e := event.(type) {
			case model.Reset:
				builder, live, revision = NewBuilder(order), false, 0
			case model.Upsert:
				revision = max(revision, e.Record.Revision)
			case model.Delete:
				revision = max(revision, e.Revision)
			case model.EndOfSnapshot:
				revision = e.Revision
			}
		}
		change := builder.Apply(revision, batch.Events)
		if !live {
			if !endsSnapshot(batch.Events) {
				continue
			}
			live, change = true, between(published, builder.Snapshot())
		}
		change.Observed, change.Committed = batch.Observed, batch.Committed
		published = builder.Snapshot()
		publish(published, change)
	}
	return nil
}

func endsSnapshot(events []model.Event) bool {
	if len(events) == 0 {
		return false
	}
	_, ok := events[len(events)-1].(model.EndOfSnapshot)
	return ok
}

// between compares two snapshots that share nothing. It is for the reader that
// lost its place; services that say the same are not part of the change.
func between(old, now *Snapshot) Change {
	change := Change{Services: map[ServiceKey]ServiceChange{}, Primed: true}
	for service := range old.Services() {
		if _, ok := now.Service(service.Key); !ok {
			change.Services[service.Key] = ServiceChange{service, nil, compare(service.endpoints, nil)}
		}
	}
	for service := range now.Services() {
		was, _ := old.Service(service.Key)
		if was == nil {
			change.Services[service.Key] = ServiceChange{nil, service, compare(nil, service.endpoints)}
			continue
		}
		endpoints := compare(was.endpoints, service.endpoints)
		if len(endpoints) > 0 || !was.equal(service.Definition) {
			change.Services[service.Key] = ServiceChange{was, service, endpoints}
		}
	}
	return change
}
