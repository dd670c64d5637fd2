package storetest

import (
	"iter"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// sameSets compares a list, a snapshot and a delta for every filter of a small world.
// The expected records are the records that the filter matches one by one.
func sameSets(t *testing.T, s Store) {
	t.Helper()
	var first, second []model.Record
	for ref := range allRefs() {
		first, second = append(first, saying(ref, 1)), append(second, saying(ref, 2))
	}
	put(t, s, first...)
	readers := map[model.Filter]*reader{}
	for f := range allFilters() {
		want := selected(s, f)
		mustEqual(t, "list", listed(t, s, f), want)
		readers[f] = watch(t, s, f).prime()
		mustEqual(t, "snapshot", readers[f].held, want)
	}
	revision := put(t, s, second...)
	for f, r := range readers {
		want := selected(s, f)
		if len(want) == 0 {
			continue
		}
		if b := r.read(); len(b.Events) != len(want) || r.revision != revision {
			t.Errorf("%+v: given %d events of revision %d, want %d of %d", f, len(b.Events), r.revision, len(want), revision)
		}
		mustEqual(t, "watch", r.held, want)
	}
}

// selected matches each record by itself.
func selected(s Store, f model.Filter) set {
	out := set{}
	for ref := range allRefs() {
		if r, ok := s.Get(ref); ok && f.Matches(ref) {
			out[ref] = r
		}
	}
	return out
}

func allRefs() iter.Seq[model.Ref] {
	return func(yield func(model.Ref) bool) {
		for c := range product(texts(kinds), sources, namespaces, names) {
			if !yield(ref(model.Kind(c[0]), c[1], c[2], c[3])) {
				return
			}
		}
	}
}

// allFilters sets each field to each existing value, to an absent one, and to nothing.
func allFilters() iter.Seq[model.Filter] {
	return func(yield func(model.Filter) bool) {
		for c := range product(and(texts(kinds)), and(sources), and(namespaces), and(names)) {
			if !yield(model.Filter{Kind: model.Kind(c[0]), Source: c[1], Namespace: c[2], Prefix: c[3]}) {
				return
			}
		}
	}
}

// product yields every way to choose one value of each list.
func product(choices ...[]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		total := 1
		for _, c := range choices {
			total *= len(c)
		}
		for n := range total {
			chosen := make([]string, len(choices))
			for i, c := range choices {
				chosen[i] = c[n%len(c)]
				n /= len(c)
			}
			if !yield(chosen) {
				return
			}
		}
	}
}

// and adds the empty and an absent value to values.
func and(values []string) []string {
	return slices.Compact(append([]string{"absent", ""}, values...))
}

func texts(kinds []model.Kind) []string {
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		out[i] = string(kind)
	}
	return out
}
