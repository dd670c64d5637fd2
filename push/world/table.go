package world

import "slices"

// Info is a type in the table of an engine. It is immutable.
type Info struct {
	TypeSpec
	Producer int // index of its producer; -1 for a type without one
	Row      Row

	NeedTypes, BringTypes []Type
	BroughtBy             []Type // types that bring this one
	// Referrers are the types that may refer to this one, directly or through others: a
	// removal waits for them.
	Referrers []Type
}

// Types is all types of an engine. It is replaced and never written to.
type Types struct {
	All    []*Info // by [Type]
	Order  []Type  // of delivery
	byName map[string]Type
}

// Named returns the type with a name.
func (b *Types) Named(name string) (t Type, ok bool) {
	t, ok = b.byName[name]
	return t, ok
}

// With returns a table with more types. Order names types in the order of delivery; types
// that it does not name follow in the order in which they were added.
func (b *Types) With(order []string, added ...Info) *Types {
	all := b.copies()
	for _, info := range added {
		all = append(all, &info)
	}
	return typesOf(order, all)
}

// Replacing returns a table with another type in the place of one.
func (b *Types) Replacing(order []string, t Type, by Info) *Types {
	all := b.copies()
	all[t] = &by
	return typesOf(order, all)
}

func (b *Types) copies() (all []*Info) {
	for _, info := range b.All {
		own := *info
		all = append(all, &own)
	}
	return all
}

func typesOf(order []string, all []*Info) *Types {
	next := &Types{All: all, byName: map[string]Type{}}
	for t, info := range all {
		next.byName[info.Name] = Type(t)
		next.Order = append(next.Order, Type(t))
	}
	place := func(t Type) int {
		if i := slices.Index(order, all[t].Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(next.Order, func(a, b Type) int { return place(a) - place(b) })
	next.relate()
	return next
}

// relate resolves the types that the rows name. It ignores names of types that the engine
// does not have: a producer may run without another.
func (b *Types) relate() {
	for _, info := range b.All {
		info.NeedTypes, info.BringTypes = b.named(info.Needs), b.named(info.Brings)
		info.BroughtBy, info.Referrers = nil, nil
	}
	for t, info := range b.All {
		for _, to := range info.BringTypes {
			b.All[to].BroughtBy = append(b.All[to].BroughtBy, Type(t))
		}
	}
	for t := range b.All {
		b.refer(Type(t), Type(t))
	}
}

// refer enters the types that refer to from, directly or through others, as referrers of
// to.
func (b *Types) refer(to, from Type) {
	for t, info := range b.All {
		direct := slices.Contains(info.NeedTypes, from) || slices.Contains(info.BringTypes, from)
		if !direct || Type(t) == to || slices.Contains(b.All[to].Referrers, Type(t)) {
			continue
		}
		b.All[to].Referrers = append(b.All[to].Referrers, Type(t))
		b.refer(to, Type(t))
	}
}

func (b *Types) named(names []string) (list []Type) {
	for _, name := range names {
		if t, ok := b.byName[name]; ok {
			list = append(list, t)
		}
	}
	return list
}
