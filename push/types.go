package push

import (
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// typeInfo is a type in the engine. It is immutable but for counts.
type typeInfo struct {
	*world.Info
	producer *Producer  // nil for a type without a producer
	admitted *admission // nil for a type of a producer

	counts *typeCounters
	// classes are the debounce classes by mode: the first is that of the type, the others are
	// those of [world.TypeSpec].NameDebounces. Nil for changes that do not wait.
	classes [world.Modes][]*class
}

// class returns the debounce class of a resource; nil if its changes do not wait.
func (i *typeInfo) class(m world.Mode, name string) *class {
	return i.classes[m][i.DebounceClass(name)]
}

// table is all types of an engine. It is replaced and never written to.
type table struct {
	*world.Types
	types   []*typeInfo
	classes []*class // of all types
}

// tableOf returns a table of types with the engine's part of each.
func tableOf(types *world.Types, parts []*typeInfo) *table {
	next := &table{Types: types}
	for t, info := range types.All {
		own := *parts[t]
		own.Info = info
		next.types = append(next.types, &own)
		for _, classes := range own.classes {
			for _, c := range classes {
				if c != nil {
					next.classes = append(next.classes, c)
				}
			}
		}
	}
	return next
}

// marked computes the step up to which the changes of each type were marked. It reports
// whether some changes still wait for a debounce. The engine's step is held.
func (b *table) marked(l *session.Look) (some bool) {
	l.Marked = l.Marked[:0]
	for range b.types {
		l.Marked = append(l.Marked, [world.Modes]uint64{l.Step, l.Step})
	}
	for _, c := range b.classes {
		if c.step > 0 {
			at := &l.Marked[c.t][c.mode]
			*at, some = min(*at, c.step-1), true
		}
	}
	return some
}
