// Package source mirrors registries into the store.
//
// A [Source] knows one registry: it lists, then follows, and passes on what it
// reads. A [Supervisor] runs it: it compares every completed listing with what
// the store holds for that source and commits the difference, restarts a
// source that failed, and keeps its status. So the rules that must never be
// broken — an error is never an empty list, a bad object poisons only itself —
// are kept in one place for every registry.
//
// A source reports in one of three ways, and may mix them. A [Listing] has every
// record, of the whole registry or of some places. A [Change] with Upserts and
// Deletes reports whole objects that were created, changed or deleted. A Change
// with OwnedUpserts and OwnedDeletes reports single records that an object owns,
// such as one endpoint of a service:
//
//	sink.Change(ctx, source.Change{OwnedUpserts: []model.Record{{
//		Ref: endpoint, Owner: service, Spec: spec,
//	}}})
//
// Its cost does not depend on how many other records the owner has. The record must
// have the key that it has in a listing, for a later listing overrides the change: a
// record that the listing lacks is gone, and one that it has is as listed. A record
// whose owner is not stored is left out, and [Sink].Relist asks the source for a
// listing. So a source need not know what it missed. Where the owner is stale or held
// the change applies to the record alone, and the owner stays stale or held.
//
// Package sourcetest checks sources and baselines, from outside and on whatever
// store they are kept in.
//
// A drop that looks wrong is held: see [Hold]. The commit of the listing then has one
// [model.Hold] record for each cause, which names the missing records. The missing
// records themselves do not change.
//
// Packages below this one (source/file, …) each know one kind of registry. To
// add one, implement the single method of [Source] and add a row to the table
// of kinds in package config. README.md teaches it with a worked example.
//
// Concurrency: a source runs on one goroutine of its supervisor, and a sink is
// used by that goroutine alone. The status may be read from anywhere.
package source
