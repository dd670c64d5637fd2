// Package servicecenter mirrors a ServiceComb Service Center.
//
// Changes are found by polling, not by events. Every round lists the services and
// then finds the instances of all of them in few batch finds. Each key has its known
// revision, so that the registry sends only changed keys. The finds name no consumer.
// So nothing is written to the registry, and every environment and app of a project
// is seen. A change missed in one round is found in the next. With watch switched on,
// events of the registry's websockets name keys to find at once; they carry nothing
// else.
//
// A failed request, or an invalid answer, changes only the status. An object without
// the field of a registry's answer is invalid, and is no empty list. A service counts
// as gone when two lists in a row lack it and a find denies it.
//
// The path of an answer is a row of packages, each with imports that go down:
//   - registry sends the requests, and decodes the answers into values;
//   - mirror follows these values, and makes the listings;
//   - records converts services and instances to records, by pure functions;
//   - watch keeps the websockets, and yields the keys that events name.
//
// This package has the configuration and the loop of rounds. The mapping of the
// registry's objects is documented in docs/reference/servicecenter.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. Watches have
// goroutines of their own, which end before [Source.Run] returns and hand over only
// the names of keys.
package servicecenter
