package catalog

import "github.com/isthmus-mesh/isthmus/model"

// Builder turns the steps of a store's watch into snapshots. It belongs to one
// goroutine. It keeps what merging needs and a snapshot does not show: which
// record owns which endpoint, and which service selects which workload.
type Builder struct {
	order    merging
	sources  map[string]struct{} // that had a record since the builder was made
	snapshot *Snapshot

	records  map[model.Ref]*serviceRecord
	owned    map[model.Ref]map[string]*Instance // endpoint records, by owner and name
	services map[ServiceKey]*assembly
	scoped   map[model.Ref]*Scope
	selection

	consumptions *united[ServiceKey, Consumption]
	opaques      *united[OpaqueKey, Opaque]
	byName       *united[WorkloadKey, Workload]
}

// assembly is what the builder knows of one service.
type assembly struct {
	records []*serviceRecord // in merge order
	taken   []*serviceRecord // those that take part
}

// NewBuilder returns a builder that merges sources in the order given, and in which no
// source has any rights. Sources that are not named come last, in the order of their
// names. Before that order, records that came through fewer Isthmuses come first.
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

		consumptions: newConsumptions(),
		opaques:      newOpaques(),
		byName:       newWorkloads(),
	}
}

// Snapshot returns the newest snapshot.
func (b *Builder) Snapshot() *Snapshot { return b.snapshot }

// Apply takes the events of one atomic step, in any order of kinds, and
// returns the exact change. Revision is the one the step leads to.
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
			// The reader of the watch deals with these; they carry no record.
		}
	}
	return step.finish(revision)
}

func (b *Builder) step() *step {
	return &step{Builder: b, touched: map[ServiceKey]*touched{}, rescoped: map[string]struct{}{}}
}
