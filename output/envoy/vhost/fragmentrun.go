package vhost

import (
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// run is services of a port that follow each other. Viewers who see the same of a run
// share its fragments.
type run struct {
	Members []member // by host
	// plain says that all viewers without a scope see the same: each host is one
	// service, which is exported to all, and no domain is contested.
	Plain bool
	Homes map[string]struct{} // namespaces in which some have a bare name

	mu    sync.Mutex
	usual *Fragments            // of viewers of other namespaces; nil until it is asked for
	own   map[string]*Fragments // of viewers of each of homes, likewise
}

func newRun(members []member) *run {
	r := &run{Members: members, Plain: true, Homes: map[string]struct{}{}}
	for i, m := range members {
		alone := i == 0 || members[i-1].Key.Host != m.Key.Host
		public := m.ExportTo.Len() == 0 || slices.Contains(slices.Collect(m.ExportTo.All()), "*")
		r.Plain = r.Plain && alone && public && (m.Host == nil || !m.Host.Contested)
		if m.Host != nil && m.Host.Home != "" {
			r.Homes[m.Host.Home] = struct{}{}
		}
	}
	return r
}

func (r *run) first() string { return r.Members[0].Key.Host }
func (r *run) last() string  { return r.Members[len(r.Members)-1].Key.Host }

// seenBy returns what a viewer sees of the run.
func (r *run) seenBy(all *Port, v catalog.Viewer) *Fragments {
	if v.Scope != nil || !r.Plain {
		return r.chosenBy(all, v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, own := r.Homes[v.Namespace]; !own {
		if r.usual == nil {
			r.usual = r.allFor(v.Namespace)
		}
		return r.usual
	}
	f := r.own[v.Namespace]
	if f == nil {
		if r.own == nil {
			r.own = map[string]*Fragments{}
		}
		f = r.allFor(v.Namespace)
		r.own[v.Namespace] = f
	}
	return f
}

// allFor is all of the run, for viewers of a namespace.
func (r *run) allFor(namespace string) *Fragments {
	f := &Fragments{list: make([]*Fragment, 0, len(r.Members))}
	for _, m := range r.Members {
		if m.Host != nil {
			f.Add(m.Host.fragmentFor(namespace))
		}
	}
	return f
}

// chosenBy is what one viewer sees, service by service.
func (r *run) chosenBy(all *Port, v catalog.Viewer) *Fragments {
	f := &Fragments{}
	sees := func(s catalog.ServiceDefinition) bool { return all.Index.Means(v, s) }
	for s := range all.Index.VisibleFrom(v, r.first()) {
		if s.Key.Host > r.last() {
			break
		}
		switch h := r.find(s); {
		case h == nil:
		case !h.Contested:
			f.Add(h.fragmentFor(v.Namespace))
		default:
			if domains := h.WonBy(all.Claims, v.Namespace, sees); len(domains) > 0 {
				f.Add(h.FragmentOf(domains))
			}
		}
	}
	return f
}

// find returns the virtual host of a service; nil if it has none.
func (r *run) find(s catalog.ServiceDefinition) *Host {
	at, found := slices.BinarySearchFunc(r.Members, s.Key, func(m member, key catalog.ServiceKey) int { return reach.CompareKeys(m.Key, key) })
	if !found {
		return nil
	}
	return r.Members[at].Host
}
