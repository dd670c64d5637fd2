package plan

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
)

// followed is a large service that is reconciled incrementally: its cost is the changes
// since the last reconciliation. It holds the placement of its endpoints, the objects that
// may be out of order, and the catalog's changes since. In any unclear case the whole
// service is compared, and followed anew from there.
type followed struct {
	placement *compose.Placement // nil before the first complete comparison has ended

	// The mutex of the memory guards the following fields.
	open  map[object.Ref]struct{} // objects not known to be in order
	since []step
	moved int // addresses in these steps
}

// step is a change of a service from one version to the next, with the addresses whose
// endpoints may differ.
type step struct {
	from, to  *catalog.Service
	addresses []string
}

// memory is the state of every large service at its last plan. A service in its form is
// followed. Of any other only the ingredients of its objects are kept.
type memory struct {
	mu    sync.Mutex
	all   map[object.Key]*followed
	parts map[object.Key]translate.Parts
}

// worthKnowing is the number of endpoints from which on the state of a service is kept. A
// smaller service is quickly planned anew.
const worthKnowing = 32

// partsOf returns the kept ingredients of a service.
func (m *memory) partsOf(key object.Key) translate.Parts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.parts[key]
}

// keep replaces the kept ingredients of a service.
func (m *memory) keep(key object.Key, now translate.Parts) {
	endpoints := now.Endpoints()
	m.mu.Lock()
	defer m.mu.Unlock()
	if endpoints < worthKnowing {
		delete(m.parts, key)
		return
	}
	if m.parts == nil {
		m.parts = map[object.Key]translate.Parts{}
	}
	m.parts[key] = now
}

// begin starts following a service, before its complete comparison.
func (m *memory) begin(key object.Key) *followed {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[object.Key]*followed{}
	}
	now := &followed{open: map[object.Ref]struct{}{}}
	m.all[key] = now
	return now
}

// forget stops following a service.
func (m *memory) forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// end forgets all services: without a term their changes are not tracked.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = nil
}

// of returns the followed service, if its complete comparison has ended.
func (m *memory) of(key object.Key) *followed {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[key]; one != nil && one.placement != nil {
		return one
	}
	return nil
}

// published records a change of the catalog. A service with too many changes before its
// next reconciliation is compared as a whole.
func (m *memory) published(change catalog.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return
	}
	for key, c := range change.Services {
		one := m.all[object.Key{Kind: object.ServiceEntry, Namespace: key.Namespace, Name: key.Host}]
		if one == nil || c.Old == nil || c.New == nil {
			continue
		}
		if n := len(one.since); n > 0 && one.since[n-1].to != c.Old || one.moved > translate.Registered(c.New) {
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
func (m *memory) seen(o *object.Observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[o.Key()]; one != nil {
		one.open[o.Ref] = struct{}{}
	}
}

// catchUp returns the changed addresses between two versions of a service. It reports false
// if the steps between them are unknown.
func (m *memory) catchUp(one *followed, from, to *catalog.Service) (map[string]struct{}, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
func (m *memory) take(one *followed) map[object.Ref]struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	open := one.open
	one.open = map[object.Ref]struct{}{}
	return open
}

// leave reopens the objects that are out of order.
func (m *memory) leave(one *followed, actions []Action) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range actions {
		if a := &actions[i]; a.Verb != Leave || a.Wait.Reason != "" {
			one.open[a.Ref] = struct{}{}
		}
	}
}

// settle ends the complete comparison with which a service begins to be followed. One cache
// is enough, so its ingredients are dropped.
func (m *memory) settle(key object.Key, one *followed, placement *compose.Placement, actions []Action) {
	m.leave(one, actions)
	m.mu.Lock()
	defer m.mu.Unlock()
	one.placement = placement
	delete(m.parts, key)
}
