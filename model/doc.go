// Package model holds the values that every floor of Isthmus uses: records, their
// specifications, and the events and writes that carry them.
//
// It depends on the standard library only, starts no goroutine and reads no clock.
// Everything a [Record] reaches is immutable by type: slices and maps are wrapped in [List]
// and [Map], which have no way to change them. A record may therefore be handed to any
// number of goroutines without copying.
//
// The vocabulary is Istio's ServiceEntry and WorkloadEntry (networking.istio.io/v1),
// because every connected system already uses it.
package model
