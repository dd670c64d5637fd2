// Package rank numbers sources, and the records that came from them, in the order in which
// the catalog merges them.
package rank

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Places are the merge order of sources, as one number for each source. A number stays while
// other sources are inserted, removed or moved, because the numbers have gaps. Claims and
// definitions, which carry the number, therefore stay valid. Places are immutable.
type Places struct{ places map[string]int }

const (
	// lastPlace is the place of every source that the order does not name.
	lastPlace = 1<<24 - 1
	// spacing is the usual distance of two places. Places run out after about a thousand
	// appended sources, or after 14 inserted one after the other before the same source.
	spacing = 1 << 14
	// longestPath is the length from which on paths count as equally long. A rank of this
	// length still fits into 31 bits.
	longestPath = 127
)

// Of returns the rank of a record: records that came through fewer Isthmuses come first,
// then sources by their order. A record that came through this Isthmus on its way is
// therefore never preferred to its original.
func (r Places) Of(source string, path model.Path) int {
	return min(path.Len(), longestPath)*(lastPlace+1) + r.place(source)
}

func (r Places) place(source string) int {
	if at, ok := r.places[source]; ok {
		return at
	}
	return lastPlace
}

// Arrange returns the ranks of another order, and the sources with another place than
// before. These are as few as possible, except when there is no room left: then all places
// are assigned anew.
func (r Places) Arrange(order []string) (next Places, moved map[string]struct{}) {
	next, ok := r.around(order, r.unmoved(order))
	if !ok {
		next, _ = r.around(order, nil)
	}
	moved = map[string]struct{}{}
	for _, sources := range []map[string]int{r.places, next.places} {
		for source := range sources {
			if r.place(source) != next.place(source) {
				moved[source] = struct{}{}
			}
		}
	}
	return next, moved
}

// around gives each source of an order a place, between the sources that keep theirs. It
// reports false if there is no room.
func (r Places) around(order []string, keep map[string]struct{}) (next Places, ok bool) {
	next = Places{make(map[string]int, len(order))}
	before, run := 0, []string(nil) // the last place given, and the following sources without a place
	fill := func(limit int) bool {
		step := min(spacing, (limit-before)/(len(run)+1))
		for i, source := range run {
			next.places[source] = before + (i+1)*step
		}
		run = nil
		return step > 0
	}
	for _, source := range order {
		if _, stays := keep[source]; !stays {
			run = append(run, source)
			continue
		}
		at := r.places[source]
		if !fill(at) {
			return Places{}, false
		}
		next.places[source], before = at, at
	}
	return next, fill(lastPlace)
}

// unmoved returns the largest set of sources that already stand in an order: a longest
// ascending run of their places.
func (r Places) unmoved(order []string) map[string]struct{} {
	type link struct {
		source string
		place  int
		before *link
	}
	var ends []*link // for each length, the ascending run that ends lowest
	for _, source := range order {
		at, ok := r.places[source]
		if !ok {
			continue
		}
		n, _ := slices.BinarySearchFunc(ends, at, func(l *link, place int) int { return l.place - place })
		one := &link{source: source, place: at}
		if n > 0 {
			one.before = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, one)
		} else {
			ends[n] = one
		}
	}
	keep := map[string]struct{}{}
	if len(ends) > 0 {
		for l := ends[len(ends)-1]; l != nil; l = l.before {
			keep[l.source] = struct{}{}
		}
	}
	return keep
}
