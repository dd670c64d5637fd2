package translate

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// written is a row of the table of kinds.
type written struct {
	kind object.Kind
	off  string // why objects of the kind are not written; empty if they are
}

// table lists the kinds that may be written.
func (c Settings) table() []written {
	return []written{
		{object.ServiceEntry, ""},
		{object.WorkloadEntry, unless(c.Endpoints.mayBeWorkloads(), "outputs.istio.endpoints is inline")},
		{object.Sidecar, unless(c.Sidecars, "outputs.istio.sidecars is off")},
		{object.DestinationRule, unless(c.Shares == SharesAsRules, "outputs.istio.shares is weights")},
	}
}

func unless(holds bool, reason string) string {
	if holds {
		return ""
	}
	return reason
}

// each yields the kinds that are written, or those that are not.
func (c Settings) each(written bool) iter.Seq[object.Kind] {
	return func(yield func(object.Kind) bool) {
		for _, row := range c.table() {
			if (row.off == "") == written && !yield(row.kind) {
				return
			}
		}
	}
}

// Kinds returns the written kinds.
func (c Settings) Kinds() []object.Kind { return slices.Collect(c.each(true)) }

// Retired returns the kinds that an earlier run may have written.
func (c Settings) Retired() []object.Kind { return slices.Collect(c.each(false)) }

// WhyRetired returns why a kind is no longer written; empty if it is. Objects that an earlier
// run wrote are deleted, regardless of their sources.
func (c Settings) WhyRetired(kind object.Kind) string {
	for _, row := range c.table() {
		if row.kind == kind {
			return row.off
		}
	}
	return ""
}
