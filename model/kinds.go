package model

import (
	"encoding/json"
	"iter"
)

// kindRow is the properties of a kind of records.
type kindRow struct {
	kind Kind
	// owner is the kind of the records that may own such records; empty if they never have an
	// owner.
	owner Kind
	spec  specType
	// reserved means that such records are Isthmus's own about a source.
	reserved bool
}

// specType is the operations on specifications of one type.
type specType struct {
	decode func(json.RawMessage) (Spec, error)
	is     func(Spec) bool // reports such a value, not a pointer to it
}

// kinds is the table of record kinds: other kinds are [Opaque]. A new kind needs its value,
// a row here, and its merge in package catalog.
var kinds = [...]kindRow{
	{kind: KindService, spec: typeOf[Service]()},
	{kind: KindEndpoint, spec: typeOf[Endpoint](), owner: KindService},
	{kind: KindWorkload, spec: typeOf[Workload]()},
	{kind: KindScope, spec: typeOf[Scope]()},
	{kind: KindConsumption, spec: typeOf[Consumption]()},
	{kind: KindSplit, spec: typeOf[Split]()},
	{kind: KindSource, spec: typeOf[SourceMark](), reserved: true},
	{kind: KindHold, spec: typeOf[Hold](), reserved: true},
	{kind: KindMergedService, spec: typeOf[MergedService](), reserved: true},
	{kind: KindMergedEndpoint, spec: typeOf[MergedEndpoint](), owner: KindMergedService, reserved: true},
}

func typeOf[S Spec]() specType {
	return specType{
		decode: func(data json.RawMessage) (Spec, error) {
			var s S
			if err := json.Unmarshal(data, &s); err != nil {
				return nil, err
			}
			return s, nil
		},
		is: func(spec Spec) bool {
			_, ok := spec.(S)
			return ok
		},
	}
}

// carried is the row of all kinds that are not in the table.
var carried = kindRow{spec: typeOf[Opaque]()}

// rowOf returns the row of a kind, and whether it has one; otherwise the row of carried
// kinds. It is called for each record of each listing, so it copies nothing.
func rowOf(kind Kind) (row *kindRow, understood bool) {
	for i := range kinds {
		if kinds[i].kind == kind {
			return &kinds[i], true
		}
	}
	return &carried, false
}

// Kinds yields the kinds that Isthmus understands.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for _, row := range kinds {
			if !yield(row.kind) {
				return
			}
		}
	}
}

// Understood reports whether k is a kind that Isthmus understands. Records of
// any other are carried with an [Opaque] specification.
func (k Kind) Understood() bool {
	_, understood := rowOf(k)
	return understood
}

// Fits reports whether records of the kind may have the specification, as [Decode] would
// read it back.
func (k Kind) Fits(spec Spec) bool {
	row, _ := rowOf(k)
	return row.spec.is(spec)
}

// MayComeWith reports whether records of the kind may be owned by records of the kind
// owner. A kind that is not understood may have any owner.
func (k Kind) MayComeWith(owner Kind) bool {
	row, understood := rowOf(k)
	return !understood || row.owner == owner
}

// Reserved reports whether records of the kind are Isthmus's own, such as its statements about
// a source, and never part of a registry's listing.
func (k Kind) Reserved() bool {
	row, _ := rowOf(k)
	return row.reserved
}

// IsSpec reports whether spec is one of the specifications of this package, held
// by value.
func IsSpec(spec Spec) bool {
	for _, row := range kinds {
		if row.spec.is(spec) {
			return true
		}
	}
	return typeOf[Opaque]().is(spec)
}
