// Package resource translates a catalog snapshot into the resources of the Mesh
// Configuration Protocol: objects of Istio, each with a name, a version, labels and
// annotations. MCP v1 and MCP-over-xDS carry the same ones.
//
// It is the translation alone, as output/envoy is that for Envoys. A [Table] says
// which types there are and what they are called in a protocol:
//
//	services         ──▶ ServiceEntry, and the synthetic ones of MCP v1
//	scopes           ──▶ Sidecar
//	workloads        ──▶ WorkloadEntry
//	carried objects  ──▶ all other kinds, byte for byte
//
// A service becomes one ServiceEntry, however many endpoints it has. It becomes
// several only if some of its endpoints do not serve all of its ports, since a
// ServiceEntry cannot say that. The first one has the name of the record that defines
// the service, if no other service could claim that name: so what passes through keeps
// it. Selectors of workloads are replaced by the workloads that they select. These are
// there as WorkloadEntries as well, for selectors that others have.
//
// A [Translator] makes the steps. It keeps an index of all names, in which a change
// replaces what it concerns and nothing else: see [World]. What Istio would not take
// is no resource, and [Translator.LeftOut] says why.
//
// The version of a resource is a hash of its content, the same for push, for the
// protocol and in the resource's own metadata.
//
// Concurrency: a Translator belongs to one goroutine, but for LeftOut. Worlds are
// immutable and may be used from any. Nothing starts a goroutine, reads a clock or
// does I/O.
package resource
