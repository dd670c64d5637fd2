package catalog

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/catalog/united"
	"github.com/isthmus-mesh/isthmus/model"
)

// Builder turns the steps of a store's watch into snapshots. One goroutine owns it. Merging
// needs state that a snapshot does not show: the owner of each endpoint, and the services
// that select each workload. The builder keeps it.
type Builder struct {
	order    merging
	sources  map[string]struct{} // sources that had a record since the builder was made
	snapshot *Snapshot
	// committed is when the store took the step that is applied; zero in a snapshot of the store.
	committed time.Time

	records  map[model.Ref]*serviceRecord
	owned    map[model.Ref]map[string]*Instance // endpoint records, by owner and name
	services map[ServiceKey]*assembly
	scoped   map[model.Ref]*Scope
	held     heldServices
	stale    stale.Sources
	selection

	opaques *united.Records[OpaqueKey, Opaque]
	byName  *united.Records[WorkloadKey, Workload]
	splits  *splitting
}

// assembly is the builder's state of one service.
type assembly struct {
	records []*serviceRecord // in merge order
	taken   []*serviceRecord // the records that take part in the service
}

// heldServices counts for each service record the holds that name it.
type heldServices map[model.Ref]int

// count adds a hold, or with a negative number removes it. Changed is called for each service.
func (h heldServices) count(hold *model.Record, by int, changed func(model.Ref)) {
	spec, _ := specOf[model.Hold](hold)
	for item := range spec.Items.All() {
		if item.Kind != model.KindService || item.Extent == model.OnlyOwned {
			continue
		}
		ref := model.Ref{Kind: item.Kind, Key: model.Key{Source: hold.Source, Namespace: item.Namespace, Name: item.Name}}
		if h[ref] += by; h[ref] == 0 {
			delete(h, ref)
		}
		changed(ref)
	}
}

// NewBuilder returns a builder that merges sources in the order given, and grants no source
// any rights. Sources that are not named come last, in the order of their names. Before
// that order, records that came through fewer Isthmuses come first.
func NewBuilder(sources []string) *Builder { return NewBuilderIn(Order{Sources: sources}) }

// NewBuilderIn returns a builder that merges sources in an order.
func NewBuilderIn(order Order) *Builder {
	m, _ := merging{}.arrange(order)
	return newBuilder(m)
}

func newBuilder(m merging) *Builder {
	b := &Builder{
		order:     m,
		sources:   map[string]struct{}{},
		snapshot:  Empty(),
		records:   map[model.Ref]*serviceRecord{},
		owned:     map[model.Ref]map[string]*Instance{},
		services:  map[ServiceKey]*assembly{},
		scoped:    map[model.Ref]*Scope{},
		held:      heldServices{},
		selection: *newSelection(),

		opaques: newOpaques(),
		byName:  newWorkloads(),
	}
	b.splits = newSplits(&b.order)
	return b
}

// Anew returns a builder without records that merges in the same order. Equal values of both
// are equal, so that [Builder.Rejoin] finds them.
func (b *Builder) Anew() *Builder { return newBuilder(b.order) }

// Snapshot returns the newest snapshot.
func (b *Builder) Snapshot() *Snapshot { return b.snapshot }

// Apply takes the events of one atomic step, in any order of kinds, and returns the exact
// change. Revision is the revision after the step.
func (b *Builder) Apply(revision uint64, events []model.Event) Change {
	return b.ApplyAt(revision, time.Time{}, events)
}

// ApplyAt is [Builder.Apply] for a step that the store took at a time; zero for a snapshot of
// the store.
func (b *Builder) ApplyAt(revision uint64, committed time.Time, events []model.Event) Change {
	b.committed = committed
	step := b.step()
	for _, event := range events {
		switch e := event.(type) {
		case model.Upsert:
			b.sources[e.Record.Source] = struct{}{}
			step.put(e.Record.Ref, e.Record.Owner, &e.Record)
		case model.Delete:
			step.put(e.Record.Ref, e.Record.Owner, nil)
		case model.EndOfSnapshot, model.Reset:
			// The reader of the watch handles these; they carry no record.
		}
	}
	return step.finish(revision)
}

func (b *Builder) step() *step {
	return &step{Builder: b, touched: map[ServiceKey]*touched{}, rescoped: map[string]struct{}{}}
}

// Arrange merges in another order from now on, and returns the exact change. A source that
// was inserted, or that has no records, costs nothing. A source that moved, or has other
// rights, costs a scan of all records for its own. Only their services are merged again.
func (b *Builder) Arrange(order Order) Change {
	next, moved := b.order.arrange(order)
	if !slices.Equal(b.order.homes, next.homes) { // each host may belong to another namespace
		moved = b.sources
	}
	split := resplit(b.order.splits, next.splits)
	b.order = next
	has := func(source string) bool { _, has := b.sources[source]; return has }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(moved)), has) && len(split) == 0 {
		return Change{}
	}
	step := b.step()
	for _, key := range split {
		step.touch(key).define = true
		step.splits.Touch(key)
	}
	if len(moved) > 0 {
		step.rerank(func(source string) bool { _, is := moved[source]; return is })
	}
	return step.finish(b.snapshot.Revision)
}
