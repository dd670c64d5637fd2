package catalog

import "github.com/isthmus-mesh/isthmus/model"

// Builder turns the steps of a store's watch into snapshots. One goroutine owns it. Merging
// needs state that a snapshot does not show: the owner of each endpoint, and the services
// that select each workload. The builder keeps it.
type Builder struct {
	order    merging
	sources  map[string]struct{} // sources that had a record since the builder was made
	snapshot *Snapshot

	records  map[model.Ref]*serviceRecord
	owned    map[model.Ref]map[string]*Instance // endpoint records, by owner and name
	services map[ServiceKey]*assembly
	scoped   map[model.Ref]*Scope
	selection

	opaques *united[OpaqueKey, Opaque]
	byName  *united[WorkloadKey, Workload]
}

// assembly is the builder's state of one service.
type assembly struct {
	records []*serviceRecord // in merge order
	taken   []*serviceRecord // the records that take part in the service
}

// NewBuilder returns a builder that merges sources in the order given, and grants no source
// any rights. Sources that are not named come last, in the order of their names. Before
// that order, records that came through fewer Isthmuses come first.
func NewBuilder(sources []string) *Builder { return Order{Sources: sources}.NewBuilder() }

// NewBuilder returns a builder that merges sources in this order.
func (o Order) NewBuilder() *Builder {
	m, _ := merging{}.arrange(o)
	return newBuilder(m)
}

func newBuilder(m merging) *Builder {
	return &Builder{
		order:     m,
		sources:   map[string]struct{}{},
		snapshot:  Empty(),
		records:   map[model.Ref]*serviceRecord{},
		owned:     map[model.Ref]map[string]*Instance{},
		services:  map[ServiceKey]*assembly{},
		scoped:    map[model.Ref]*Scope{},
		selection: *newSelection(),

		opaques: newOpaques(),
		byName:  newWorkloads(),
	}
}

// Snapshot returns the newest snapshot.
func (b *Builder) Snapshot() *Snapshot { return b.snapshot }

// Apply takes the events of one atomic step, in any order of kinds, and returns the exact
// change. Revision is the revision after the step.
func (b *Builder) Apply(revision uint64, events []model.Event) Change {
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
