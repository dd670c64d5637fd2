package store

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// scan yields the records that f selects, in order. It reads runs of matching records
// and skips the records between them. A set field of the filter therefore helps even
// when a field before it is open.
func scan(in records, f model.Filter) iter.Seq[*model.Record] {
	return func(yield func(*model.Record) bool) {
		at, more := lowest(f), true
		for more {
			at, more = run(in, f, at, yield)
		}
	}
}

// scanAfter is scan without the records up to a reference.
func scanAfter(in records, f model.Filter, after model.Ref) iter.Seq[*model.Record] {
	if after.Compare(lowest(f)) < 0 {
		return scan(in, f)
	}
	return func(yield func(*model.Record) bool) {
		after.Name += "\x00" // the lowest reference above it
		at, more := after, true
		for more {
			at, more = run(in, f, at, yield)
		}
	}
}

// run yields the records from at on, up to the first record that f does not select. It
// returns where the next run can start.
func run(in records, f model.Filter, at model.Ref, yield func(*model.Record) bool) (next model.Ref, more bool) {
	for ref, record := range in.From(at) {
		if !f.Matches(ref) {
			return leap(f, ref)
		}
		if !yield(record) {
			return model.Ref{}, false
		}
	}
	return model.Ref{}, false
}

// parts are the fields of a reference, in the order they are compared.
type parts [4]string

func partsOf(r model.Ref) parts { return parts{string(r.Kind), r.Source, r.Namespace, r.Name} }

func (p parts) ref() model.Ref {
	return model.Ref{Kind: model.Kind(p[0]), Key: model.Key{Source: p[1], Namespace: p[2], Name: p[3]}}
}

func fixedBy(f model.Filter) parts { return parts{string(f.Kind), f.Source, f.Namespace, f.Prefix} }

// lowest returns the lowest reference f could select: an open field is empty,
// and the lowest name that has the prefix is the prefix.
func lowest(f model.Filter) model.Ref { return fixedBy(f).ref() }

// leap returns the lowest reference above ref that f could select, and whether there
// can be one. f does not select ref.
func leap(f model.Filter, ref model.Ref) (next model.Ref, more bool) {
	fixed, at := fixedBy(f), partsOf(ref)
	wrong := 0 // the first field that keeps ref from being selected
	for wrong < 3 && (fixed[wrong] == "" || fixed[wrong] == at[wrong]) {
		wrong++
	}
	if at[wrong] > fixed[wrong] {
		// All matching values of that field lie before ref: go to the next value of the
		// nearest open field before it.
		open := wrong - 1
		for open >= 0 && fixed[open] != "" {
			open--
		}
		if open < 0 {
			return model.Ref{}, false
		}
		at[open] += "\x00" // the lowest string above the current value
		wrong = open + 1
	}
	copy(at[wrong:], fixed[wrong:])
	return at.ref(), true
}
