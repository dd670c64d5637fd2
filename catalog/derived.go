package catalog

import (
	"slices"
	"sync"
)

// derived is the values that outputs have derived from an index. All views of an output
// share a value, and each value is built on the previous one.
type derived struct {
	mu     sync.Mutex
	values map[any]*derivation // of this index
	before map[any]PortChange  // the newest of the indices before it
}

// PortChange is the change of a port since a value was derived from its index.
type PortChange struct {
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
func (e PortChange) with(hosts []string) PortChange {
	if e.Many || len(e.Hosts)+len(hosts) > mostListed {
		return PortChange{Before: e.Before, Many: true}
	}
	return PortChange{Before: e.Before, Hosts: slices.Concat(e.Hosts, hosts)}
}

// derivation is one value derived from an index. Callers wait while it is derived, but the
// next index does not. If the derivation panics, the next caller repeats it.
type derivation struct {
	making sync.Mutex // held while it is made
	value  any
	made   bool // guarded by the lock of [derived], and by making
}

// Derive returns the value derived from the index for a key. If there is none, it calls
// derive with the value of an earlier index of the port for that key. The result is shared,
// so it is immutable. It is kept for as long as the port has services. Keys must therefore
// be few, and must not depend on declarations of clients.
func (p *PortServices) Derive(key any, derive func(before PortChange) any) any {
	made, _ := p.DeriveOr(key, func(before PortChange) (any, error) { return derive(before), nil })
	return made
}

// DeriveOr is [PortServices.Derive] with an error. After an error nothing is kept, and the
// next caller derives the value again.
func (p *PortServices) DeriveOr(key any, derive func(before PortChange) (any, error)) (any, error) {
	one, before := p.derived.of(key)
	one.making.Lock()
	defer one.making.Unlock()
	if !one.made {
		value, err := derive(before)
		if err != nil {
			return nil, err
		}
		one.value = value
		p.derived.finish(key, one)
	}
	return one.value, nil
}

func (d *derived) of(key any) (one *derivation, before PortChange) {
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

func (d *derived) finish(key any, one *derivation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.made = true
	delete(d.before, key)
}

// next returns the derived values for the next index. Services of some hosts have changed
// in it.
func (d *derived) next(hosts []string) *derived {
	n := &derived{before: map[any]PortChange{}}
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
			n.before[key] = PortChange{Before: one.value}.with(hosts)
		}
	}
	return n
}
