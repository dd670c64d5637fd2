package mirror

import (
	"iter"
	"maps"
)

// Reading compares a new state of a part, or a part of it, with the held one. Nothing
// changes until [Reading.Apply]. A part has at most one reading at a time.
type Reading[K comparable, V any] struct {
	part    *Part[K, V]
	changed map[K]V
	gone    map[K]struct{}
}

// Read begins a reading of the part.
func (p *Part[K, V]) Read() *Reading[K, V] {
	p.reads++
	return &Reading[K, V]{part: p, changed: map[K]V{}, gone: map[K]struct{}{}}
}

// Same notes that the object of a key is as held. An earlier Put of the key is undone.
func (r *Reading[K, V]) Same(key K) {
	if c := r.part.cells[key]; c != nil {
		c.seen = r.part.reads
		delete(r.changed, key)
	}
}

// Put notes a new or different object of a key.
func (r *Reading[K, V]) Put(key K, value V) { r.changed[key] = value }

// Has reports whether the reading has an object of a key.
func (r *Reading[K, V]) Has(key K) bool {
	if _, is := r.changed[key]; is {
		return true
	}
	c := r.part.cells[key]
	return c != nil && c.seen == r.part.reads
}

// Delete notes that the registry reports a key as removed. It has no effect if the
// reading has an object of the key. The key need not be held.
func (r *Reading[K, V]) Delete(key K) {
	if !r.Has(key) {
		r.gone[key] = struct{}{}
	}
}

// Complete notes that the reading has everything: all other held objects are gone.
func (r *Reading[K, V]) Complete() {
	for key := range r.part.cells {
		r.Delete(key)
	}
}

// Changed returns the new and different objects. The reading owns the map.
func (r *Reading[K, V]) Changed() map[K]V { return r.changed }

// Gone yields the removed keys, held or not, in no order.
func (r *Reading[K, V]) Gone() iter.Seq[K] { return maps.Keys(r.gone) }

// IsEmpty reports whether nothing differs.
func (r *Reading[K, V]) IsEmpty() bool { return len(r.changed)+len(r.gone) == 0 }

// Apply applies the differences to the part.
func (r *Reading[K, V]) Apply() {
	for key, value := range r.changed {
		r.part.Put(key, value)
	}
	for key := range r.gone {
		r.part.Delete(key)
	}
}
