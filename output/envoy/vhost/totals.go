package vhost

import (
	"maps"
	"sync"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// total is the length of fragments, and the sum of their versions in any order.
type total struct {
	size int
	Sum  world.Version
}

func (t *total) add(f *Fragment) {
	t.size += len(f.text)
	t.Sum = t.Sum.Plus(f.version)
}

func (t *total) remove(f *Fragment) {
	t.size -= len(f.text)
	t.Sum = t.Sum.Minus(f.version)
}

// totals are those of the plain hosts of a port, by the namespace that sees them. Each is
// made when it is first asked for, from the one of the port before if that has it.
type totals struct {
	mu         sync.Mutex
	made       map[string]total
	before     map[string]total // of the port before; not written again
	gone, come map[*Host]struct{}
}

// mostCarried bounds the changed hosts by which totals follow from those before.
const mostCarried = 64

// next returns the totals after some hosts went and some came.
func (t *totals) next(gone, come map[*Host]struct{}) *totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &totals{made: make(map[string]total, len(t.made))}
	if len(gone)+len(come) <= mostCarried {
		next.before, next.gone, next.come = maps.Clone(t.made), gone, come
	}
	return next
}

// seenFrom returns the total of the plain hosts as viewers of a namespace see them.
func (t *totals) seenFrom(namespace string, a *Port) total {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(namespace, a)
}

func (t *totals) of(namespace string, a *Port) total {
	sum, ok := t.made[namespace]
	if ok {
		return sum
	}
	sum, ok = t.before[namespace]
	switch {
	case ok:
		for h := range t.gone {
			sum.remove(h.fragmentFor(namespace))
		}
		for h := range t.come {
			sum.add(h.fragmentFor(namespace))
		}
	case namespace == "" || len(t.made)+len(t.before) == 0:
		for h := range a.all {
			if h.plain() {
				sum.add(h.fragmentFor(namespace))
			}
		}
	default:
		sum = t.of("", a)
		home := false
		for h := range a.apartIn(namespace) {
			home = true
			sum.remove(h.fragmentFor(""))
			sum.add(h.fragmentFor(namespace))
		}
		if !home {
			return sum // clients can make up namespaces, so none is kept that has no host
		}
	}
	t.made[namespace] = sum
	return sum
}
