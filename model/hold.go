package model

import (
	"cmp"
	"time"
)

// Hold is a set of held records of a source with one cause. Its registry suddenly no longer
// lists them, so they are kept for a while. The held records themselves do not show that. A
// source keeps its Hold records exact in every commit.
//
// One record is enough for any number of whole objects. Items that exceed the record size
// that any store takes are spread over several records, which differ in their items alone.
type Hold struct {
	// Cause is the service that lost everything; zero if the source as a whole lost too much.
	Cause  Ref       `json:"cause,omitzero"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Lost is how many endpoints the cause had: a service has lost all of them, a source some.
	Lost uint32 `json:"lost,omitempty"`
	// Parts is the number of records with the items; zero in all but the first.
	Parts uint32 `json:"parts,omitempty"`
	// Everything means that all records of the source are held, except its marks.
	Everything bool           `json:"everything,omitempty"`
	Items      List[HoldItem] `json:"items,omitzero"` // sorted
}

// HoldItem is one held record or object.
type HoldItem struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Extent    Extent `json:"extent,omitempty"`
}

// Extent is the held part of an object.
type Extent string

// The extents. The owned records of an object are the ones stored by now.
const (
	ThisRecord Extent = ""       // the record alone
	WithOwned  Extent = "object" // the object and all its owned records
	OnlyOwned  Extent = "owned"  // only the object's owned records
)

// EqualSpec implements [Spec].
func (h Hold) EqualSpec(spec Spec) bool {
	o, ok := spec.(Hold)
	return ok && h.Cause == o.Cause && h.Reason == o.Reason && h.Since.Equal(o.Since) && h.Lost == o.Lost &&
		h.Parts == o.Parts && h.Everything == o.Everything && h.Items.Equal(o.Items)
}

// Holds finds the hold of a record. The zero Holds finds nothing.
type Holds struct {
	everything map[string]*Hold // by source
	items      map[heldItem]*Hold
}

// heldItem is an item of one source.
type heldItem struct {
	source string
	HoldItem
}

// Add adds a [KindHold] record; it ignores other records.
func (h *Holds) Add(rec Record) {
	hold, ok := rec.Spec.(Hold)
	if !ok {
		return
	}
	if h.items == nil {
		h.everything, h.items = map[string]*Hold{}, map[heldItem]*Hold{}
	}
	if hold.Everything {
		h.everything[rec.Source] = &hold
	}
	for item := range hold.Items.All() {
		h.items[heldItem{rec.Source, item}] = &hold
	}
}

// Of returns the hold of a record with that owner, zero if it has none.
func (h Holds) Of(ref, owner Ref) (Hold, bool) {
	if len(h.items) == 0 && len(h.everything) == 0 || ref.Kind.Reserved() {
		return Hold{}, false
	}
	hold := h.item(ref, ThisRecord)
	switch {
	case hold != nil:
	case owner == (Ref{}):
		hold = h.item(ref, WithOwned)
	default:
		hold = cmp.Or(h.item(owner, WithOwned), h.item(owner, OnlyOwned))
	}
	if hold = cmp.Or(hold, h.everything[ref.Source]); hold == nil {
		return Hold{}, false
	}
	return *hold, true
}

func (h Holds) item(ref Ref, extent Extent) *Hold {
	return h.items[heldItem{ref.Source, HoldItem{ref.Kind, ref.Namespace, ref.Name, extent}}]
}
