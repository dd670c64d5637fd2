// Package servicecenter mirrors a ServiceComb Service Center.
//
// What the registry says is found by polling, not by events: every round
// lists the services and then finds the instances of all of them in few batch
// finds, each key with the revision that is known, so that only what changed
// is sent. No consumer is given, so nothing is written to the registry and
// every environment and app of a project is seen. Whatever is missed in one
// round is found in the next. With watch switched on, events of the registry's
// websockets say which keys to find at once; they carry nothing else.
//
// A request that fails, or an answer that does not make sense, changes nothing
// but the status. An object without the field that an answer of the registry
// has makes no sense, and is no empty list. A service counts as gone when two lists in a row lack it and
// a find says that it does not exist.
//
// How services become records is a pure function of their instances, in
// convert.go and what it uses; how the state follows the answers is one, too,
// in state.go,
// answers.go and listing.go. What the registry's objects become is documented in
// docs/reference/servicecenter.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. Watches have
// goroutines of their own, which end before [Source.Run] returns and hand over
// nothing but the names of keys.
package servicecenter
