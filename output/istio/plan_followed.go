package istio

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// followed is a large service that is reconciled incrementally: its cost is the changes
// since the last reconciliation. It holds the placement of its endpoints, the objects that
// may be out of order, and the catalog's changes since. In any unclear case the whole
// service is compared, and followed anew from there.
type followed struct {
	placement *compose.Placement // nil before the first complete comparison has ended

	// The mutex of followedServices guards the following fields.
	open  map[Ref]struct{} // objects not known to be in order
	since []step
	moved int // addresses in these steps
}

// step is a change of a service from one version to the next, with the addresses whose
// endpoints may differ.
type step struct {
	from, to  *catalog.Service
	addresses []string
}

// followedServices are all followed services of one term.
type followedServices struct {
	mu  sync.Mutex
	all map[Key]*followed
}

// begin starts following a service, before its complete comparison.
func (f *followedServices) begin(key Key) *followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[Key]*followed{}
	}
	now := &followed{open: map[Ref]struct{}{}}
	f.all[key] = now
	return now
}

// forget stops following a service.
func (f *followedServices) forget(key Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, key)
}

// end forgets all services: without a term their changes are not tracked.
func (f *followedServices) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = nil
}

// of returns the followed service, if its complete comparison has ended.
func (f *followedServices) of(key Key) *followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[key]; one != nil && one.placement != nil {
		return one
	}
	return nil
}

// published records a change of the catalog. A service with too many changes before its
// next reconciliation is compared as a whole.
func (f *followedServices) published(change catalog.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return
	}
	for key, c := range change.Services {
		one := f.all[Key{ServiceEntry, key.Namespace, key.Host}]
		if one == nil || c.Old == nil || c.New == nil {
			continue
		}
		if n := len(one.since); n > 0 && one.since[n-1].to != c.Old || one.moved > registered(c.New) {
			one.since, one.moved = nil, 0
		}
		next := step{from: c.Old, to: c.New, addresses: make([]string, 0, len(c.Endpoints))}
		for id := range c.Endpoints {
			next.addresses = append(next.addresses, id.Address)
		}
		one.since, one.moved = append(one.since, next), one.moved+len(next.addresses)
	}
}

// seen records that an object has changed in the API server.
func (f *followedServices) seen(o *Observed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[o.key()]; one != nil {
		one.open[o.Ref] = struct{}{}
	}
}

// catchUp returns the changed addresses between two versions of a service. It reports false
// if the steps between them are unknown.
func (f *followedServices) catchUp(one *followed, from, to *catalog.Service) (map[string]struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addresses := map[string]struct{}{}
	for from != to {
		if len(one.since) == 0 {
			return nil, false
		}
		next := one.since[0]
		one.since, one.moved = one.since[1:], one.moved-len(next.addresses)
		if next.from != from {
			continue // the step precedes the complete comparison
		}
		for _, address := range next.addresses {
			addresses[address] = struct{}{}
		}
		from = next.to
	}
	return addresses, true
}

// take returns the open objects and clears them. The caller reopens the ones that are out
// of order.
func (f *followedServices) take(one *followed) map[Ref]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := one.open
	one.open = map[Ref]struct{}{}
	return open
}

// leave reopens the objects that are out of order.
func (f *followedServices) leave(one *followed, actions []Action) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range actions {
		if a := &actions[i]; a.Verb != Leave || a.wait.reason != "" {
			one.open[a.Ref] = struct{}{}
		}
	}
}

// settle ends the complete comparison with which a service begins to be followed.
func (f *followedServices) settle(one *followed, placement *compose.Placement, actions []Action) {
	f.leave(one, actions)
	f.mu.Lock()
	defer f.mu.Unlock()
	one.placement = placement
}
