package model

import (
	"cmp"
	"time"
)

// Hold is what is held of a source for one cause: its registry no longer lists
// it, all at once, so that it is kept for a while. The records themselves do
// not say so, and a source keeps its Hold records exact in every commit.
//
// One record is enough however much is held, where whole objects are. What
// cannot be said in one of a size that any store takes is in several, which
// differ in their items alone.
type Hold struct {
	// Cause is the service that lost everything; zero if the source as a whole
	// lost too much.
	Cause  Ref       `json:"cause,omitzero"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Lost is how many endpoints were lost at most, some of which may be back.
	Lost uint32 `json:"lost,omitempty"`
	// Parts is how many records the items are spread over; zero in all but the first.
	Parts uint32 `json:"parts,omitempty"`
	// Everything says that all records of the source are held, but for its marks.
	Everything bool           `json:"everything,omitempty"`
	Items      List[HoldItem] `json:"items,omitzero"` // sorted
}

// HoldItem is one record that is held, or an object.
type HoldItem struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Extent    Extent `json:"extent,omitempty"`
}

// Extent says how much of an object is held.
type Extent string

// The extents. What an object owns is what its source has stored of that by now.
const (
	ThisRecord Extent = ""       // the record alone
	WithOwned  Extent = "object" // the object and all it owns
	OnlyOwned  Extent = "owned"  // all that the object owns
)

// EqualSpec implements [Spec].
func (h Hold) EqualSpec(spec Spec) bool {
	o, ok := spec.(Hold)
	return ok && h.Cause == o.Cause && h.Reason == o.Reason && h.Since.Equal(o.Since) && h.Lost == o.Lost &&
		h.Parts == o.Parts && h.Everything == o.Everything && h.Items.Equal(o.Items)
}

// Holds finds what a record is held for. The zero Holds finds nothing.
type Holds struct {
	everything map[string]*Hold // by source
	items      map[heldItem]*Hold
}

// heldItem is an item of one source.
type heldItem struct {
	source string
	HoldItem
}

// Add takes a [KindHold] record; others it leaves alone.
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

// Of returns what a record with that owner, zero if it stands alone, is held for.
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
