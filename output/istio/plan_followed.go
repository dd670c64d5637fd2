package istio

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// followed is a large service that is kept up with, so that a look at it costs what may
// have changed since the last one: where its endpoints stand, which of its objects may
// not be as they should be, and what the catalog has said of it since. Whatever is not
// clear has the whole service looked at, and followed anew from there.
type followed struct {
	placement *convert.Placement // nil before the first whole look has ended

	// These are guarded by the mutex of all.
	open  map[Ref]struct{} // objects that are not known to be as they should be
	since []step
	moved int // addresses in these steps
}

// step is a change of a service from one version to the next: at which addresses it
// may have other endpoints.
type step struct {
	from, to  *catalog.Service
	addresses []string
}

// followedServices are all that are followed, in one term.
type followedServices struct {
	mu  sync.Mutex
	all map[Key]*followed
}

// begin has a service followed, from before it is looked at as a whole.
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

// forget ends it.
func (f *followedServices) forget(key Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, key)
}

// end forgets all of them: what there is of them is not followed without a term.
func (f *followedServices) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = nil
}

// of is the service that is followed since it was looked at as a whole, if it is.
func (f *followedServices) of(key Key) *followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[key]; one != nil && one.placement != nil {
		return one
	}
	return nil
}

// published notes a change of the catalog. A service that has moved on too far before it
// is looked at again is looked at as a whole.
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

// seen notes that an object has changed in the API server.
func (f *followedServices) seen(o *Observed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[o.key()]; one != nil {
		one.open[o.Ref] = struct{}{}
	}
}

// catchUp takes the steps from one version of a service to another. False means that they
// are not known.
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
			continue // it came before the look that was at the whole
		}
		for _, address := range next.addresses {
			addresses[address] = struct{}{}
		}
		from = next.to
	}
	return addresses, true
}

// take returns the objects that may not be as they should be. Those that turn out not to
// be have to be left open again.
func (f *followedServices) take(one *followed) map[Ref]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := one.open
	one.open = map[Ref]struct{}{}
	return open
}

// leave notes which objects are not as they should be, as it was found.
func (f *followedServices) leave(one *followed, actions []Action) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range actions {
		if a := &actions[i]; a.Verb != Leave || a.wait.reason != "" {
			one.open[a.Ref] = struct{}{}
		}
	}
}

// settle ends the whole look at a service by which it begins to be followed.
func (f *followedServices) settle(one *followed, placement *convert.Placement, actions []Action) {
	f.leave(one, actions)
	f.mu.Lock()
	defer f.mu.Unlock()
	one.placement = placement
}
