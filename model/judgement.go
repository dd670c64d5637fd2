package model

import (
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// Judgement is what was decided of what somebody else than the store holds of a
// source. Its slices are never written to.
type Judgement struct {
	// Baseline names what was judged. It is new with each process, so that what an
	// earlier one decided counts for nothing.
	Baseline string `json:"baseline"`
	// With are the sources that were listed by then, sorted, this one included: of
	// an object that others may speak of as well nothing is decided before.
	With []string `json:"with"`
	// Held is what must not be taken away yet, one for each cause.
	Held []HeldDrop `json:"held,omitempty"`
}

// HeldDrop is what is held for one cause.
type HeldDrop struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Lasting says that nothing but rejections keeps it from being confirmed.
	Lasting bool       `json:"lasting,omitempty"`
	Items   []HeldItem `json:"items"`
}

// HeldItem is what is held of one object: all of it, or some endpoints.
type HeldItem struct {
	Kind      Kind     `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"` // of a service, its host
	Whole     bool     `json:"whole,omitempty"`
	Endpoints []uint64 `json:"endpoints,omitempty"` // sorted; see package source
}

// Equal reports whether j and o say the same.
func (j Judgement) Equal(o Judgement) bool {
	return j.Baseline == o.Baseline && slices.Equal(j.With, o.With) && slices.EqualFunc(j.Held, o.Held, HeldDrop.Equal)
}

// Equal reports whether d and o say the same.
func (d HeldDrop) Equal(o HeldDrop) bool {
	return d.Reason == o.Reason && d.Since.Equal(o.Since) && d.Lasting == o.Lasting && slices.EqualFunc(d.Items, o.Items, HeldItem.Equal)
}

// Equal reports whether i and o say the same.
func (i HeldItem) Equal(o HeldItem) bool {
	return i.Kind == o.Kind && i.Namespace == o.Namespace && i.Name == o.Name && i.Whole == o.Whole && slices.Equal(i.Endpoints, o.Endpoints)
}

// Judgements are those of one source, at most one for each baseline.
type Judgements struct{ items []Judgement }

// JudgementsOf returns a copy of items.
func JudgementsOf(items ...Judgement) Judgements { return Judgements{slices.Clone(items)} }

// All yields them in order.
func (j Judgements) All() iter.Seq[Judgement] { return slices.Values(j.items) }

// Of returns the judgement of a baseline.
func (j Judgements) Of(baseline string) (Judgement, bool) {
	at := slices.IndexFunc(j.items, func(i Judgement) bool { return i.Baseline == baseline })
	if at < 0 {
		return Judgement{}, false
	}
	return j.items[at], true
}

// Equal reports whether j and o say the same.
func (j Judgements) Equal(o Judgements) bool {
	return slices.EqualFunc(j.items, o.items, Judgement.Equal)
}

// IsZero reports whether there are none, for the omitzero option of encoding/json.
func (j Judgements) IsZero() bool { return len(j.items) == 0 }

// MarshalJSON encodes them as an array.
func (j Judgements) MarshalJSON() ([]byte, error) {
	if j.items == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(j.items)
}

// UnmarshalJSON decodes an array.
func (j *Judgements) UnmarshalJSON(data []byte) error {
	var items []Judgement // anew, for copies of j share those it has
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	j.items = items
	return nil
}
