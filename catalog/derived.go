package catalog

import (
	"slices"
	"sync"
)

// derived is what outputs have made of an index, so that they make it once for all of
// their views, and each from the one before.
type derived struct {
	mu     sync.Mutex
	values map[any]*derivation // of this index
	before map[any]PortChange  // the newest of the indices before it
}

// PortChange is what has happened to a port since something was made of its index.
type PortChange struct {
	Before any // what was made; nil if nothing was
	// Hosts are those of which some service may have changed since then. Some may be
	// there twice.
	Hosts []string
	// Many says that they were too many to be listed.
	Many bool
}

// mostListed bounds the hosts that are listed for who does not ask.
const mostListed = 1024

// with adds hosts that changed.
func (e PortChange) with(hosts []string) PortChange {
	if e.Many || len(e.Hosts)+len(hosts) > mostListed {
		return PortChange{Before: e.Before, Many: true}
	}
	return PortChange{Before: e.Before, Hosts: slices.Concat(e.Hosts, hosts)}
}

// derivation is one thing that is made of an index. Whoever comes while it is made
// waits for it, but the next index does not. If making it ends in a panic, the next who
// comes makes it anew.
type derivation struct {
	making sync.Mutex // held while it is made
	value  any
	made   bool // guarded by the lock of [derived], and by making
}

// Derive returns what was made of the index for a key. If nothing was, it calls derive
// with what was made of an earlier index of the port for that key. What is
// returned is shared, so it is immutable. It is kept for as long as the port has
// services, so keys are few, and none is of what clients say.
func (p *PortServices) Derive(key any, derive func(before PortChange) any) any {
	made, _ := p.DeriveOr(key, func(before PortChange) (any, error) { return derive(before), nil })
	return made
}

// DeriveOr is [PortServices.Derive] that may fail. Then nothing is kept, and the next who
// comes makes it anew.
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

// next is that of the index which follows, in which services of some hosts have changed.
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
