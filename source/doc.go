// Package source mirrors registries into the store.
//
// A [Source] knows one registry: it lists, then follows, and passes on what it
// reads. A [Supervisor] runs it: it compares every completed listing with what
// the store holds for that source and commits the difference, restarts a
// source that failed, and keeps its status. So the rules that must never be
// broken — an error is never an empty list, a bad object poisons only itself —
// are kept in one place for every registry.
//
// A registry is read in one of three ways, which one source may mix. A [Listing]
// says all there is, everywhere or in some places. A [Change] with Upserts and
// Deletes says what became of whole objects. A Change with OwnedUpserts and
// OwnedDeletes says what became of single records that an object owns, such as
// one endpoint of a service:
//
//	sink.Change(ctx, source.Change{OwnedUpserts: []model.Record{{
//		Ref: endpoint, Owner: service, Spec: spec,
//	}}})
//
// That costs the same however many others the owner has. It must be named as the
// same record is in a listing, which has the last word: what a later listing
// lacks is gone, and what it has is as it says. A record whose owner is not
// stored is left out, and [Sink].Relist asks for a listing, so a source that
// misses the beginning of something need not know it. Where the owner is stale or
// held the change applies to the record alone, and the owner stays stale or held.
//
// Sources, listed and written, and what others have of them are checked from outside
// by package sourcetest, on whatever store they are kept in.
//
// A drop that looks wrong is held: see [Hold]. What is held is said in one record
// for each cause, a [model.Hold], in the commit of the listing that it is about; the
// records that are held do not change.
//
// Packages below this one (source/file, …) each know one kind of registry. To
// add one, implement the single method of [Source] and add a row to the table
// of kinds in package config. README.md teaches it with a worked example.
//
// Concurrency: a source runs on one goroutine of its supervisor, and a sink is
// used by that goroutine alone. The status may be read from anywhere.
package source
