// Package immutable holds a persistent ordered map. Changing a map yields another map and
// leaves the first unchanged, at the cost of the nodes on the way to the change. One
// endpoint of a service of 20,000 is three small nodes.
//
// It is a thin, read-safe face on a copy-on-write B-tree: no reader of a store revision or
// of a catalog snapshot ever takes a lock. It sits on the lowest floor, beside model; store
// and catalog are built on it.
package immutable

import (
	"iter"

	"github.com/tidwall/btree"
)

// Map is an immutable ordered map. It may be used by any number of goroutines.
// Make one with [New].
type Map[K, V any] struct{ tree *btree.BTreeG[entry[K, V]] }

type entry[K, V any] struct {
	key   K
	value V
}

// New returns an empty map ordered by compare. Its result is a negative number, zero or a
// positive number, as from cmp.Compare.
func New[K, V any](compare func(a, b K) int) Map[K, V] {
	less := func(a, b entry[K, V]) bool { return compare(a.key, b.key) < 0 }
	return Map[K, V]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: 16})}
}

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.tree.Len() }

// Get returns the value of key and whether there is one.
func (m Map[K, V]) Get(key K) (V, bool) {
	e, ok := m.tree.Get(entry[K, V]{key: key})
	return e.value, ok
}

// All yields the entries in order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.tree.Scan(func(e entry[K, V]) bool { return yield(e.key, e.value) })
	}
}

// From yields the entries from the first that is not below key, in order.
func (m Map[K, V]) From(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.tree.Ascend(entry[K, V]{key: key}, func(e entry[K, V]) bool { return yield(e.key, e.value) })
	}
}

// Before returns the last entry below key, and whether there is one.
func (m Map[K, V]) Before(key K) (K, V, bool) {
	var found entry[K, V]
	ok := false
	pivot := entry[K, V]{key: key}
	m.tree.Descend(pivot, func(e entry[K, V]) bool {
		if !m.tree.Less(e, pivot) {
			return true // the entry of key itself
		}
		found, ok = e, true
		return false
	})
	return found.key, found.value, ok
}

// Edit starts a change of the map. The editor must stay with one goroutine;
// any number of editors may start from one map.
func (m Map[K, V]) Edit() *Editor[K, V] {
	// No node of a finished map carries the tree's own mark. A plain copy of the root is
	// therefore enough: every node is copied before it is written. IsoCopy would give the
	// shared tree a new mark, which is a write.
	tree := *m.tree
	return &Editor[K, V]{&tree}
}

// Editor is a map in the making.
type Editor[K, V any] struct{ tree *btree.BTreeG[entry[K, V]] }

// Set gives key a value.
func (e *Editor[K, V]) Set(key K, value V) { e.tree.Set(entry[K, V]{key, value}) }

// Delete removes key and reports whether it was there.
func (e *Editor[K, V]) Delete(key K) bool {
	_, ok := e.tree.Delete(entry[K, V]{key: key})
	return ok
}

// View reads the editor's current entries. The view must not be kept past the next change;
// [Editor.Map] is for keeping.
func (e *Editor[K, V]) View() Map[K, V] { return Map[K, V](*e) }

// Map returns the editor's current entries. The editor can be used further without changing
// the map returned.
func (e *Editor[K, V]) Map() Map[K, V] { return Map[K, V]{e.tree.IsoCopy()} }
