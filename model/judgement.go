package model

import (
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// Judgement is a decision about the objects that another system than the store holds of a
// source. Its slices are never written to.
type Judgement struct {
	// Baseline names the judged objects. It is new with each process, so that a decision of an
	// earlier process counts for nothing.
	Baseline string `json:"baseline"`
	// With are the sources that were listed by then, sorted, this one included. An object that
	// other sources may also contribute to is not decided before.
	With []string `json:"with"`
	// Held are the drops that must not be carried out yet, one for each cause.
	Held []HeldDrop `json:"held,omitempty"`
}

// HeldDrop is the held items of one cause.
type HeldDrop struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Lasting means that only rejections delay its confirmation.
	Lasting bool       `json:"lasting,omitempty"`
	Items   []HeldItem `json:"items"`
}

// HeldItem is the held part of one object: all of it, or some endpoints.
type HeldItem struct {
	Kind      Kind     `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"` // the host of a service
	Whole     bool     `json:"whole,omitempty"`
	Endpoints []uint64 `json:"endpoints,omitempty"` // sorted; see package source
}

// Equal reports whether j and o are equal.
func (j Judgement) Equal(o Judgement) bool {
	return j.Baseline == o.Baseline && slices.Equal(j.With, o.With) && slices.EqualFunc(j.Held, o.Held, HeldDrop.Equal)
}

// Equal reports whether d and o are equal.
func (d HeldDrop) Equal(o HeldDrop) bool {
	return d.Reason == o.Reason && d.Since.Equal(o.Since) && d.Lasting == o.Lasting && slices.EqualFunc(d.Items, o.Items, HeldItem.Equal)
}

// Equal reports whether i and o are equal.
func (i HeldItem) Equal(o HeldItem) bool {
	return i.Kind == o.Kind && i.Namespace == o.Namespace && i.Name == o.Name && i.Whole == o.Whole && slices.Equal(i.Endpoints, o.Endpoints)
}

// Judgements are the judgements of one source, at most one for each baseline.
type Judgements struct{ items []Judgement }

// JudgementsOf returns a copy of items.
func JudgementsOf(items ...Judgement) Judgements { return Judgements{slices.Clone(items)} }

// All yields the judgements in order.
func (j Judgements) All() iter.Seq[Judgement] { return slices.Values(j.items) }

// Of returns the judgement of a baseline.
func (j Judgements) Of(baseline string) (Judgement, bool) {
	at := slices.IndexFunc(j.items, func(i Judgement) bool { return i.Baseline == baseline })
	if at < 0 {
		return Judgement{}, false
	}
	return j.items[at], true
}

// Equal reports whether j and o are equal.
func (j Judgements) Equal(o Judgements) bool {
	return slices.EqualFunc(j.items, o.items, Judgement.Equal)
}

// IsZero reports whether there are none, for the omitzero option of encoding/json.
func (j Judgements) IsZero() bool { return len(j.items) == 0 }

// MarshalJSON encodes the judgements as an array.
func (j Judgements) MarshalJSON() ([]byte, error) {
	if j.items == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(j.items)
}

// UnmarshalJSON decodes an array.
func (j *Judgements) UnmarshalJSON(data []byte) error {
	var items []Judgement // allocated anew, because copies of j share its items
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	j.items = items
	return nil
}
