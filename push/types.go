package push

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// typeInfo is a type in the engine. It is immutable but for counts.
type typeInfo struct {
	*world.Info
	producer *Producer  // nil for a type without a producer
	admitted *admission // nil for a type of a producer

	counts *typeCounters
	lanes  [modes]*lane   // nil for modes without a debounce
	apart  [][modes]*lane // likewise, of the resources with a debounce of their own
}

// lane returns the debounce class of a resource; nil if its changes do not wait.
func (i *typeInfo) lane(m Mode, name string) *lane {
	for n, of := range i.Apart {
		if of.Is(name) {
			return i.apart[n][m]
		}
	}
	return i.lanes[m]
}

// replaces reports whether the changes of a debounce class may replace removed resources.
func (i *typeInfo) replaces(m Mode, l *lane) bool {
	for n, of := range i.Apart {
		if of.Replace && i.apart[n][m] == l {
			return true
		}
	}
	return false
}

// lanesOf yields all debounce classes of a mode.
func (i *typeInfo) lanesOf(m Mode) iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
		if l := i.lanes[m]; l != nil && !yield(l) {
			return
		}
		for _, of := range i.apart {
			if l := of[m]; l != nil && !yield(l) {
				return
			}
		}
	}
}

// table is all types of an engine. It is replaced and never written to.
type table struct {
	*world.Types
	types []*typeInfo
}

// tableOf returns a table of types with the engine's part of each.
func tableOf(types *world.Types, parts []*typeInfo) *table {
	next := &table{Types: types}
	for t, info := range types.All {
		own := *parts[t]
		own.Info = info
		next.types = append(next.types, &own)
	}
	return next
}
