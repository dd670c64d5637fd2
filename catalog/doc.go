// Package catalog merges the records of every source into services.
//
// A service is a (namespace, host). Records unite inside that key and nowhere else, by
// these rules:
//
//   - the definition comes from the records that came through the fewest Isthmuses
//     ([model.Path]), and of these from the first source in the configured order;
//   - ports unite by number, and endpoints by address and port, with the
//     attributes of the first by the same order;
//   - an endpoint is gone when it is gone from every source;
//   - a record whose resolution contradicts the first one's is left out of the
//     service.
//
// Wherever records contradict each other, a [Conflict] names the one that counts.
//
// A snapshot also has values beside the services, each merged from records of its own:
//
//   - scopes;
//   - workloads, whether or not a service selects them; the first source of a name
//     wins;
//   - carried objects, of kinds that are not understood; the first source's
//     record wins, by kind, namespace and name;
//   - holds ([Snapshot.Holds]), for outputs that ask; a hold alone is no change.
//
// The result is an immutable [Snapshot] and the exact [Change] from the previous snapshot:
// the changed services and endpoints. The cost of a change depends on the number of changed
// objects. If one of a service's 20,000 endpoints changes, a few small tree nodes are
// copied, and the definition stays the same pointer.
//
// Two indexes come with it, for outputs that serve proxies. One has the services of a port
// ([Snapshot.Port]). The other has the services at the address of a workload
// ([Snapshot.ServedAt]; [Snapshot.HeadlessAt], for clients that connect to it). An entry of
// the first stays the same pointer until a definition in it changes.
//
// Place in the path: package catalog/merger reads a store's watch and hands snapshot and
// change to the outputs. The [Builder] between them is a plain value with one owner, no
// goroutine, no clock and no I/O. Snapshots may be read from any goroutine without a lock.
package catalog
