package mirror

import (
	"iter"
	"maps"
	"slices"
)

// Mirror holds the objects of one kind by key. If several parts have a key, the first
// part counts.
type Mirror[K comparable, V any] struct {
	parts   []*Part[K, V]
	touched map[K]struct{} // keys that may differ since the last Take
}

// New returns a mirror with parts in their order, all empty.
func New[K comparable, V any](parts ...string) *Mirror[K, V] {
	m := &Mirror[K, V]{touched: map[K]struct{}{}}
	for _, name := range parts {
		m.Part(name)
	}
	return m
}

// Part returns the part of a name. A new one is empty and comes last.
func (m *Mirror[K, V]) Part(name string) *Part[K, V] {
	for _, p := range m.parts {
		if p.Name == name {
			return p
		}
	}
	p := &Part[K, V]{Name: name, of: m, cells: map[K]*cell[V]{}}
	m.parts = append(m.parts, p)
	return p
}

// Parts yields the parts in their order.
func (m *Mirror[K, V]) Parts() iter.Seq[*Part[K, V]] { return slices.Values(m.parts) }

// Drop removes a part whose objects need not be passed on as gone.
func (m *Mirror[K, V]) Drop(name string) {
	m.parts = slices.DeleteFunc(m.parts, func(p *Part[K, V]) bool { return p.Name == name })
}

// Get returns the object of a key, and the part that counts for the key; nil if no part
// has the key.
func (m *Mirror[K, V]) Get(key K) (value V, in *Part[K, V]) {
	for _, p := range m.parts {
		if c := p.cells[key]; c != nil {
			return c.value, p
		}
	}
	return value, nil
}

// Keys yields each key once, in no order.
func (m *Mirror[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i, p := range m.parts {
			for key := range p.cells {
				if !m.isIn(m.parts[:i], key) && !yield(key) {
					return
				}
			}
		}
	}
}

func (m *Mirror[K, V]) isIn(parts []*Part[K, V], key K) bool {
	return slices.ContainsFunc(parts, func(p *Part[K, V]) bool { return p.cells[key] != nil })
}

// Touch notes that a key may differ. The key need not be held.
func (m *Mirror[K, V]) Touch(key K) { m.touched[key] = struct{}{} }

// Take returns the keys that may differ since the last call, in no order. A key without
// an object is gone.
func (m *Mirror[K, V]) Take() []K {
	keys := slices.Collect(maps.Keys(m.touched))
	m.touched = map[K]struct{}{} // not cleared: a large map stays slow to read
	return keys
}

// Part holds the objects that a registry lists together, by key.
type Part[K comparable, V any] struct {
	Name string

	of    *Mirror[K, V]
	cells map[K]*cell[V]
	reads uint64 // number of readings that began
}

// cell holds an object of a part.
type cell[V any] struct {
	value V
	seen  uint64 // number of the last reading with the object
}

// Len returns the number of objects.
func (p *Part[K, V]) Len() int { return len(p.cells) }

// Get returns the object of a key in this part.
func (p *Part[K, V]) Get(key K) (value V, held bool) {
	if c := p.cells[key]; c != nil {
		return c.value, true
	}
	return value, false
}

// All yields the objects by key, in no order.
func (p *Part[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, c := range p.cells {
			if !yield(key, c.value) {
				return
			}
		}
	}
}

// Put stores the object of a key. The key is not touched while an earlier part has it.
func (p *Part[K, V]) Put(key K, value V) {
	p.cells[key] = &cell[V]{value: value}
	if _, in := p.of.Get(key); in == p {
		p.of.Touch(key)
	}
}

// Delete removes the object of a key, if there is one. The key is touched in either
// case: its record may still be stored, because a drop is held.
func (p *Part[K, V]) Delete(key K) {
	delete(p.cells, key)
	p.of.Touch(key)
}

// Forget removes the object of a key, without passing it on.
func (p *Part[K, V]) Forget(key K) { delete(p.cells, key) }
