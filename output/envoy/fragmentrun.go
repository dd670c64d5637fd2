package envoy

import (
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// run is services of a port that follow each other. Viewers who see the same of a run
// share its fragments.
type run struct {
	members []member // by host
	// plain says that all viewers without a scope see the same: each host is one
	// service, which is exported to all, and no domain is contested.
	plain bool
	homes map[string]struct{} // namespaces in which some have a bare name

	mu    sync.Mutex
	usual *fragments            // of viewers of other namespaces; nil until it is asked for
	own   map[string]*fragments // of viewers of each of homes, likewise
}

func newRun(members []member) *run {
	r := &run{members: members, plain: true, homes: map[string]struct{}{}}
	for i, m := range members {
		alone := i == 0 || members[i-1].Key.Host != m.Key.Host
		public := m.ExportTo.Len() == 0 || slices.Contains(slices.Collect(m.ExportTo.All()), "*")
		r.plain = r.plain && alone && public && (m.host == nil || !m.host.contested)
		if m.host != nil && m.host.home != "" {
			r.homes[m.host.home] = struct{}{}
		}
	}
	return r
}

func (r *run) first() string { return r.members[0].Key.Host }
func (r *run) last() string  { return r.members[len(r.members)-1].Key.Host }

// seenBy returns what a viewer sees of the run.
func (r *run) seenBy(all *portHosts, v View) *fragments {
	if v.scope != nil || !r.plain {
		return r.chosenBy(all, v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, own := r.homes[v.Namespace]; !own {
		if r.usual == nil {
			r.usual = r.allFor(v.Namespace)
		}
		return r.usual
	}
	f := r.own[v.Namespace]
	if f == nil {
		if r.own == nil {
			r.own = map[string]*fragments{}
		}
		f = r.allFor(v.Namespace)
		r.own[v.Namespace] = f
	}
	return f
}

// allFor is all of the run, for viewers of a namespace.
func (r *run) allFor(namespace string) *fragments {
	f := &fragments{list: make([]*fragment, 0, len(r.members))}
	for _, m := range r.members {
		if m.host != nil {
			f.add(m.host.fragmentFor(namespace))
		}
	}
	return f
}

// chosenBy is what one viewer sees, service by service.
func (r *run) chosenBy(all *portHosts, v View) *fragments {
	f := &fragments{}
	sees := func(s catalog.ServiceDefinition) bool { return all.index.Means(v.viewer(), s) }
	for s := range all.index.VisibleFrom(v.viewer(), r.first()) {
		if s.Key.Host > r.last() {
			break
		}
		switch h := r.find(s); {
		case h == nil:
		case !h.contested:
			f.add(h.fragmentFor(v.Namespace))
		default:
			if domains := h.wonBy(all.claims, v.Namespace, sees); len(domains) > 0 {
				f.add(h.fragmentOf(domains))
			}
		}
	}
	return f
}

// find returns the virtual host of a service; nil if it has none.
func (r *run) find(s catalog.ServiceDefinition) *portHost {
	at, found := slices.BinarySearchFunc(r.members, s.Key, func(m member, key catalog.ServiceKey) int { return compareKeys(m.Key, key) })
	if !found {
		return nil
	}
	return r.members[at].host
}
