package model

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"time"
)

// Kind is the kind of object that a record describes.
type Kind string

// The kinds Isthmus understands. A record of any other kind is carried
// unchanged, with an [Opaque] specification.
const (
	KindService     Kind = "Service"
	KindEndpoint    Kind = "Endpoint"
	KindWorkload    Kind = "Workload"
	KindScope       Kind = "Scope"
	KindConsumption Kind = "Consumption"
	KindSplit       Kind = "Split"
	// KindSource marks that a source has delivered a complete listing. It is a record like any
	// other, so the mark reaches every reader at the very revision of the listing.
	KindSource Kind = "Source"
	// KindHold is the held records of a source with one cause. Each cause has a record of its
	// own, so that a change of one cause does not rewrite another.
	KindHold Kind = "Hold"
	// KindMergedService and KindMergedEndpoint are the merged catalog. No source has such
	// records.
	KindMergedService  Kind = "MergedService"
	KindMergedEndpoint Kind = "MergedEndpoint"
)

// Key names a record within its kind. Namespace is empty for records that
// belong to no namespace.
type Key struct {
	Source    string `json:"source"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Compare orders keys by source, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Source, o.Source),
		cmp.Compare(k.Namespace, o.Namespace),
		cmp.Compare(k.Name, o.Name),
	)
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Source + ":" + k.Name
	}
	return k.Source + ":" + k.Namespace + "/" + k.Name
}

// Ref names a record among all kinds.
type Ref struct {
	Kind Kind `json:"kind"`
	Key  `json:"key"`
}

// Compare orders references by kind, then key.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), r.Key.Compare(o.Key))
}

func (r Ref) String() string { return string(r.Kind) + " " + r.Key.String() }

// UID distinguishes one life of a record from the next: deleting a record and creating it
// again under the same key gives a new UID. The zero UID means "not stored".
type UID [16]byte

func (u UID) String() string { return hex.EncodeToString(u[:]) }

// MarshalText encodes u in hexadecimal.
func (u UID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText decodes the result of [UID.MarshalText].
func (u *UID) UnmarshalText(text []byte) error {
	if len(text) == hex.EncodedLen(len(u)) { // otherwise Decode may write past the end
		if _, err := hex.Decode(u[:], text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("uid %q: want %d hexadecimal digits", text, 2*len(u))
}

// Status is Isthmus's own statement about a record. The zero Status means that the record
// is its source's newest version. Whether the source still lists it is stated by [Hold]
// records.
type Status struct {
	// Stale is why the source's newest version of this object was rejected, so that this
	// record is its last good one; empty if it is the newest.
	Stale string `json:"stale,omitempty"`
	// LegacyHeld is the reason of a hold in a store that was written before there were [Hold]
	// records. A supervisor replaces it by a Hold before it runs its source, and no other code
	// may read it or set it.
	LegacyHeld string `json:"held,omitempty"`
	// Since is when the reason arose; zero when there is none.
	Since time.Time `json:"since,omitzero"`
}

func (s Status) equal(o Status) bool {
	return s.Stale == o.Stale && s.LegacyHeld == o.LegacyHeld && s.Since.Equal(o.Since)
}

// Spec is the content of a record: a [Service], [Endpoint], [Workload], [Scope], [Split],
// [Consumption], [SourceMark], [Hold], [MergedService], [MergedEndpoint] or [Opaque], held by
// value so that it cannot change.
type Spec interface {
	// EqualSpec reports whether o is of the same type and equal.
	EqualSpec(o Spec) bool
}

// Record is the one envelope for everything Isthmus holds, in memory and on disk alike. The
// store sets UID, Revision and Generation.
type Record struct {
	Ref
	// UID distinguishes this life of the record from an earlier one.
	UID UID `json:"uid"`
	// Revision is the store's revision of the commit that last changed the
	// record; every record of one commit shares it. Zero: not stored.
	Revision uint64 `json:"revision"`
	// Generation counts the contents of this life of the record, from 1.
	Generation uint64 `json:"generation"`
	// Owner is the record that this one is created and deleted with, such as the service of an
	// inline endpoint; zero if it has none.
	Owner Ref `json:"owner,omitzero"`
	// Path is the Isthmuses that the record came through.
	Path Path `json:"path,omitempty"`
	// Place is the position of the object in its registry, such as the path of a file; empty
	// where a registry has no places, and on owned records.
	Place  string `json:"place,omitempty"`
	Status Status `json:"status,omitzero"`
	Spec   Spec   `json:"spec"`
}

// SameContent reports whether r and o have the same content, regardless of life and
// revision. A store ignores a write that changes nothing.
func (r Record) SameContent(o Record) bool {
	return r.Ref == o.Ref && r.Owner == o.Owner && r.Path == o.Path && r.Place == o.Place &&
		r.Status.equal(o.Status) &&
		(r.Spec == nil) == (o.Spec == nil) && (r.Spec == nil || r.Spec.EqualSpec(o.Spec))
}
