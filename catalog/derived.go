package catalog

import (
	"maps"
	"sync"
)

// derived is what outputs have made of an index, so that they make it once for all of
// their views, and each from the one before.
type derived struct {
	mu     sync.Mutex
	values map[any]any // of this index
	before map[any]any // the newest of the indices before it
}

// Derive returns what was made of the index for a key. If nothing was, it calls derive
// with what was made of an earlier index of the port for that key, or with nil. What is
// returned is shared, so it is immutable.
func (p *PortServices) Derive(key any, derive func(before any) any) any {
	d := p.derived
	d.mu.Lock()
	defer d.mu.Unlock()
	if value, ok := d.values[key]; ok {
		return value
	}
	value := derive(d.before[key])
	if d.values == nil {
		d.values = map[any]any{}
	}
	d.values[key] = value
	delete(d.before, key)
	return value
}

// next is that of the index which follows.
func (d *derived) next() *derived {
	n := &derived{before: map[any]any{}}
	if d == nil {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.Copy(n.before, d.before)
	maps.Copy(n.before, d.values)
	return n
}
