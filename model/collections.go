package model

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
)

// List is an immutable sequence.
type List[T comparable] struct{ items []T }

// ListOf returns a list of a copy of items.
func ListOf[T comparable](items ...T) List[T] { return List[T]{slices.Clone(items)} }

// Len returns the number of items.
func (l List[T]) Len() int { return len(l.items) }

// At returns the item at index i; it panics when i is out of range, as a slice does.
func (l List[T]) At(i int) T { return l.items[i] }

// All yields the items in order.
func (l List[T]) All() iter.Seq[T] { return slices.Values(l.items) }

// Slice returns a copy of the items.
func (l List[T]) Slice() []T { return slices.Clone(l.items) }

// Contains reports whether item is in the list.
func (l List[T]) Contains(item T) bool { return slices.Contains(l.items, item) }

// Equal reports whether both lists hold the same items in the same order.
func (l List[T]) Equal(o List[T]) bool { return slices.Equal(l.items, o.items) }

// MarshalJSON encodes the list as an array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l.items == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(l.items)
}

// UnmarshalJSON decodes an array.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	var items []T // allocated anew, because copies of l share its items
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	l.items = items
	return nil
}

// IsZero reports whether the list is empty, for the omitzero option of encoding/json.
func (l List[T]) IsZero() bool { return len(l.items) == 0 }

// Map is an immutable map from names to values, kept in the order of the
// names. It is made for few entries, such as labels and ports: a lookup is a
// binary search, and an entry costs no more than its name and value.
type Map[V comparable] struct {
	names  []string
	values []V
}

// Labels are the key-value pairs of an object.
type Labels = Map[string]

// MapOf returns a map of a copy of m.
func MapOf[V comparable](m map[string]V) Map[V] {
	if len(m) == 0 {
		return Map[V]{}
	}
	out := Map[V]{names: slices.Sorted(maps.Keys(m)), values: make([]V, len(m))}
	for i, name := range out.names {
		out.values[i] = m[name]
	}
	return out
}

// Len returns the number of entries.
func (m Map[V]) Len() int { return len(m.names) }

// Get returns the value of name and whether there is one.
func (m Map[V]) Get(name string) (V, bool) {
	if i, ok := slices.BinarySearchFunc(m.names, name, cmp.Compare[string]); ok {
		return m.values[i], true
	}
	var none V
	return none, false
}

// All yields the entries in the order of their names.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i, name := range m.names {
			if !yield(name, m.values[i]) {
				return
			}
		}
	}
}

// Includes reports whether every entry of part is in m with the same value.
// Every map includes the empty one.
func (m Map[V]) Includes(part Map[V]) bool {
	for name, want := range part.All() {
		if got, ok := m.Get(name); !ok || got != want {
			return false
		}
	}
	return true
}

// Equal reports whether both maps hold the same entries.
func (m Map[V]) Equal(o Map[V]) bool {
	return slices.Equal(m.names, o.names) && slices.Equal(m.values, o.values)
}

// Map returns a copy as a Go map; nil if m is empty.
func (m Map[V]) Map() map[string]V {
	if len(m.names) == 0 {
		return nil
	}
	return maps.Collect(m.All())
}

// MarshalJSON encodes the map as an object.
func (m Map[V]) MarshalJSON() ([]byte, error) {
	if m.names == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(m.Map())
}

// UnmarshalJSON decodes an object.
func (m *Map[V]) UnmarshalJSON(data []byte) error {
	var plain map[string]V
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	*m = MapOf(plain)
	return nil
}

// IsZero reports whether the map is empty, for the omitzero option of encoding/json.
func (m Map[V]) IsZero() bool { return len(m.names) == 0 }
