// Package source is the contract between registries and Isthmus.
//
// A [Source] knows one registry: it lists, then follows, and passes on its readings to a
// [Sink]. Package supervise runs it: a supervisor compares every completed listing with
// the stored records of that source and commits the difference. So two rules hold in one
// place for every registry: an error is never an empty list, and a bad object poisons
// only itself.
//
// A source reports in one of three ways, and may mix them. A [model.Listing] has every
// record, of the whole registry or of some places. A [model.Change] with Upserts and
// Deletes reports whole objects that were created, changed or deleted. A Change with
// OwnedUpserts and OwnedDeletes reports single records that an object owns, such as
// one endpoint of a service:
//
//	sink.Change(ctx, model.Change{OwnedUpserts: []model.Record{{
//		Ref: endpoint, Owner: service, Spec: spec,
//	}}})
//
// The cost of such a record does not depend on the number of the owner's other
// records. It must have the same key as in a listing, for a later listing overrides
// the change: a record that the listing lacks is gone, and a listed one is as listed.
// A record without a stored owner is left out, and [Sink].Relist asks the source for
// a listing. So a source need not track its gaps. If the owner is stale or held, it
// stays so, and the change applies to the record alone.
//
// Package sourcetest checks sources and baselines from outside.
//
// The packages on the way of a listing are reading (checks and compares it), index (the
// stored records in numbers), hold (judges its drops), baseline (compares it with other
// systems) and supervise. No package of a registry imports them, except in tests.
//
// All other packages below this one (source/file, …) each know one kind of registry. To add
// one, implement the single method of [Source] and add a row to the table of kinds in
// package config. README.md teaches it with a worked example.
//
// Concurrency: a source runs on one goroutine of its supervisor, and only that
// goroutine uses a sink.
package source
