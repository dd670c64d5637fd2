package vhost

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unique"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// Port is every virtual host of a port. It is made once for all views, from the
// one before: what did not change is taken over, with its bytes. It is immutable.
type Port struct {
	Index      *catalog.PortServices
	In         Key
	Candidates candidateIndex

	hosts  *hostIndex // pieces keep it, and nothing else of the port
	apart  apartIndex
	totals *totals
}

// Key is the key of what is made of an index: names are short in one domain, addresses
// are those in a cluster, and routes are as the settings have them.
type Key struct {
	Domain   string
	Cluster  string
	Settings *policy.Prepared // nil if nothing is said
}

type (
	hostIndex = immutable.Map[catalog.ServiceKey, *Host]
	// apartIndex lists plain hosts by the namespace that knows them by a bare name, and
	// all hosts that are not plain under the empty namespace.
	apartIndex = immutable.Map[apartKey, *Host]
)

type apartKey struct {
	home string
	catalog.ServiceKey
}

func (k apartKey) compare(o apartKey) int {
	return cmp.Or(strings.Compare(k.home, o.home), catalog.ServiceKey.Compare(k.ServiceKey, o.ServiceKey))
}

// apartOf returns the key of a host; ok is false if all namespaces see the same of it.
func apartOf(h *Host) (key apartKey, ok bool) {
	if !h.plain() {
		return apartKey{"", h.Key}, true
	}
	return apartKey{h.Home(), h.Key}, h.Home() != ""
}

// Of returns the virtual hosts of a port.
func Of(index *catalog.PortServices, key Key) *Port {
	made, _ := index.Derive(key, func(c derived.Change) (any, error) {
		was, _ := c.Before.(*Port)
		switch {
		case was == nil:
			return NewPort(index, key), nil
		case c.Many:
			return was.after(index, was.allHosts(index)), nil
		default:
			return was.after(index, c.Hosts), nil
		}
	})
	all, _ := made.(*Port)
	return all
}

// NewPort makes the virtual hosts of a port.
func NewPort(index *catalog.PortServices, in Key) *Port {
	hosts := immutable.New[catalog.ServiceKey, *Host](catalog.ServiceKey.Compare)
	none := &Port{
		In: in, Candidates: immutable.New[Candidate, *Host](Candidate.compare),
		hosts: &hosts, apart: immutable.New[apartKey, *Host](apartKey.compare), totals: &totals{},
	}
	return none.after(index, none.allHosts(index))
}

// allHosts lists the hosts of a port and those of an index. A host may be listed twice.
func (a *Port) allHosts(index *catalog.PortServices) (hosts []string) {
	for h := range a.all {
		hosts = append(hosts, h.Key.Host)
	}
	for s := range index.All() {
		hosts = append(hosts, s.Key.Host)
	}
	return hosts
}

// after returns the virtual hosts of an index in which services of some hosts have changed.
func (a *Port) after(index *catalog.PortServices, hosts []string) *Port {
	b := building{index: index, in: a.In, candidates: a.Candidates.Edit(), hosts: a.hosts.Edit(), apart: a.apart.Edit(), gone: map[*Host]struct{}{}, come: map[*Host]struct{}{}}
	for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		b.enter(host)
	}
	for _, h := range changedConflicts(b.candidates.View(), b.changed) {
		b.put(h)
	}
	all := b.hosts.Map()
	return &Port{Index: index, In: a.In, Candidates: b.candidates.Map(), hosts: &all, apart: b.apart.Map(), totals: a.totals.next(b.gone, b.come)}
}

// building is a [Port] in the making.
type building struct {
	index      *catalog.PortServices
	in         Key
	candidates *immutable.Editor[Candidate, *Host]
	hosts      *immutable.Editor[catalog.ServiceKey, *Host]
	apart      *immutable.Editor[apartKey, *Host]
	changed    []Candidate // that came or went

	gone, come map[*Host]struct{} // plain hosts
}

// enter makes the virtual hosts of the services of a host, but for those that did not change.
func (b *building) enter(host string) {
	services := slices.Collect(b.index.OfHost(host))
	var was []*Host
	for key, h := range b.hosts.View().From(catalog.ServiceKey{Host: host}) {
		if key.Host != host {
			break
		}
		was = append(was, h)
	}
	selective := func(s catalog.ServiceDefinition) bool {
		public := s.ExportTo.Len() == 0 || slices.Contains(slices.Collect(s.ExportTo.All()), "*")
		return len(services) > 1 || !public
	}
	for _, h := range was { // all go before any comes, whose candidates may equal theirs
		at, found := slices.BinarySearchFunc(services, h.Key, func(s catalog.ServiceDefinition, key catalog.ServiceKey) int {
			return catalog.ServiceKey.Compare(s.Key, key)
		})
		if !found || services[at].Definition != h.Definition || selective(h.ServiceDefinition) != h.selective {
			b.drop(h)
		}
	}
	for _, s := range services {
		if _, kept := b.hosts.View().Get(s.Key); kept {
			continue
		}
		h := NewHost(s, b.index.Number, b.in)
		h.selective, h.unrouted = selective(s), !b.isRouted(s)
		if len(services) > 1 || !h.unrouted {
			b.put(h)
		}
	}
}

// isRouted reports whether requests are routed to a service.
func (b *building) isRouted(s catalog.ServiceDefinition) bool {
	port, ok := s.Port(b.index.Number)
	kind := reach.TrafficOf(port)
	return ok && reach.HasCluster(s, b.index.Number) && (kind == reach.HTTP || kind == reach.Detected)
}

// put enters a virtual host, in the place of that of the same service.
func (b *building) put(h *Host) {
	if was, ok := b.hosts.View().Get(h.Key); ok {
		b.leave(was)
	}
	b.hosts.Set(h.Key, h)
	for c := range h.Candidates() {
		b.candidates.Set(c, h)
		b.changed = append(b.changed, c)
	}
	if key, ok := apartOf(h); ok {
		b.apart.Set(key, h)
	}
	if h.plain() {
		b.come[h] = struct{}{}
	}
}

func (b *building) drop(h *Host) {
	b.leave(h)
	b.hosts.Delete(h.Key)
	for c := range h.Candidates() {
		b.candidates.Delete(c)
		b.changed = append(b.changed, c)
	}
}

func (b *building) leave(h *Host) {
	if key, ok := apartOf(h); ok {
		b.apart.Delete(key)
	}
	if _, fresh := b.come[h]; fresh {
		delete(b.come, h)
	} else if h.plain() {
		b.gone[h] = struct{}{}
	}
}

// SeenBy puts together the routes of a viewer.
func (a *Port) SeenBy(v catalog.Viewer) *Pieces {
	p := &Pieces{}
	if v.Scope != nil {
		a.choose(p, v, a.all)
		return p
	}
	p.hosts, p.total = a.hosts, a.totals.seenFrom(v.Namespace, a)
	if v.Namespace != "" {
		p.home = unique.Make(v.Namespace)
	}
	a.choose(p, v, a.apartIn(""))
	return p
}

// choose adds those of some hosts that a viewer sees, with the domains that are left to them.
func (a *Port) choose(p *Pieces, v catalog.Viewer, hosts iter.Seq[*Host]) {
	for h := range catalog.Choose(v, hosts) {
		if h.unrouted {
			continue
		}
		if !h.InConflict {
			p.Add(h.fragmentFor(v.Namespace))
		} else if domains := a.Won(h, v); len(domains) > 0 {
			p.Add(h.FragmentOf(domains))
		}
	}
}

// Won lists the domains of a virtual host that no other one has for a viewer.
func (a *Port) Won(h *Host, v catalog.Viewer) []string {
	return h.WonBy(a.Candidates, v.Namespace, func(s catalog.ServiceDefinition) bool { return a.Index.Means(v, s) })
}

// Visible yields the virtual hosts of the services that a viewer sees, by host.
func (a *Port) Visible(v catalog.Viewer) iter.Seq[*Host] {
	return func(yield func(*Host) bool) {
		for h := range catalog.Choose(v, a.all) {
			if !h.unrouted && !yield(h) {
				return
			}
		}
	}
}

func (a *Port) all(yield func(*Host) bool) {
	for _, h := range a.hosts.All() {
		if !yield(h) {
			return
		}
	}
}

// apartIn yields the entries of a namespace in [Port.apart].
func (a *Port) apartIn(home string) iter.Seq[*Host] {
	return func(yield func(*Host) bool) {
		for key, h := range a.apart.From(apartKey{home: home}) {
			if key.home != home || !yield(h) {
				return
			}
		}
	}
}

// Find returns the virtual host of a service; nil if it has none.
func (a *Port) Find(s catalog.ServiceDefinition) *Host {
	h, ok := a.hosts.Get(s.Key)
	if !ok || h.unrouted {
		return nil
	}
	return h
}
