// Package records converts services of a Service Center to records of the mesh:
// services with their endpoints, who uses whom, and scopes.
//
// [Rules] are parsed from [Settings] once. Every conversion is a pure function of the
// rules, the registry's objects, the ports known before, and the time. It makes no
// requests and keeps no state, but [Naming] caches rendered templates. An invalid
// object is rejected by itself. The mapping is documented in
// docs/reference/servicecenter.md.
//
// Concurrency: a [Naming] belongs to one goroutine; the rest is safe for any.
package records
