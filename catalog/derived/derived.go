// Package derived keeps values that are derived from an immutable index, each built on the
// value of an earlier index.
package derived

import (
	"slices"
	"sync"
)

// Values are the values that outputs have derived from an index. All views of an output
// share a value. A nil pointer is the values of an index before the first.
type Values struct {
	mu     sync.Mutex
	values map[any]*derivation // of this index
	before map[any]Change      // the newest of the indices before it
}

// Change is the change of an index since a value was derived from its index.
type Change struct {
	Before any // the derived value; nil if there is none
	// Hosts are the hosts with services that may have changed since then. A host may be listed
	// twice.
	Hosts []string
	// Many means that there were too many to be listed.
	Many bool
}

// mostListed bounds the hosts that are listed for a key without further calls of Derive.
const mostListed = 1024

// with adds hosts that changed.
func (e Change) with(hosts []string) Change {
	if e.Many || len(e.Hosts)+len(hosts) > mostListed {
		return Change{Before: e.Before, Many: true}
	}
	return Change{Before: e.Before, Hosts: slices.Concat(e.Hosts, hosts)}
}

// derivation is one value derived from an index. Callers wait while it is derived, but the
// next index does not. If the derivation panics, the next caller repeats it.
type derivation struct {
	making sync.Mutex // held while it is made
	value  any
	made   bool // guarded by the lock of [Values], and by making
}

// Derive returns the value derived from the index for a key. If there is none, it calls derive
// with the value of an earlier index for that key. The result is shared, so it is immutable.
// It is kept for as long as there is an index. Keys must therefore be few, and must not depend
// on declarations of clients. After an error nothing is kept, and the next caller derives the
// value again.
func (d *Values) Derive(key any, derive func(before Change) (any, error)) (any, error) {
	one, before := d.of(key)
	one.making.Lock()
	defer one.making.Unlock()
	if !one.made {
		value, err := derive(before)
		if err != nil {
			return nil, err
		}
		one.value = value
		d.finish(key, one)
	}
	return one.value, nil
}

func (d *Values) of(key any) (one *derivation, before Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one = d.values[key]
	if one == nil {
		if d.values == nil {
			d.values = map[any]*derivation{}
		}
		one = &derivation{}
		d.values[key] = one
	}
	return one, d.before[key]
}

func (d *Values) finish(key any, one *derivation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.made = true
	delete(d.before, key)
}

// Next returns the values for the next index. Services of some hosts have changed
// in it.
func (d *Values) Next(hosts []string) *Values {
	n := &Values{before: map[any]Change{}}
	if d == nil {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, before := range d.before {
		n.before[key] = before.with(hosts)
	}
	for key, one := range d.values {
		if one.made {
			n.before[key] = Change{Before: one.value}.with(hosts)
		}
	}
	return n
}
