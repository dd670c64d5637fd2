// Package smi reads the objects of the Service Mesh Interface that divide calls: TrafficSplit of
// the group split.smi-spec.io, in the versions v1alpha1 to v1alpha4. No other package knows
// their content. It does no I/O, and makes no such objects.
//
// A TrafficSplit divides the calls to its root service between Services of its own namespace.
// [Read] makes a [model.Split] of its specification. Package convert/istio, which has the table
// of all kinds, reads the document and the metadata around it.
//
// Functions here share nothing and may be called from any goroutine.
package smi
