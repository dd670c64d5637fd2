package envoy

import (
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// singleChanges notes the single hosts that a step may change.
type singleChanges struct {
	settings  *policy.Prepared
	now       *catalog.Snapshot
	hosts     *stepHosts
	audiences audiences
	touched   map[uint32]int                         // by port: how many services may have come or gone
	before    map[string][]catalog.ServiceDefinition // of each host, its changed services
}

func newSingleChanges(s *policy.Prepared, hosts *stepHosts, noted audiences) *singleChanges {
	return &singleChanges{s, hosts.now, hosts, noted, map[uint32]int{}, map[string][]catalog.ServiceDefinition{}}
}

// count notes how many services of a host may have come or gone. It comes for all changes
// before [singleChanges.take] does for any.
func (n *singleChanges) count(host string, c catalog.ServiceChange) {
	if c.Old != nil && c.New != nil && reach.SameOffer(c.Old, c.New) {
		return
	}
	if c.Old != nil {
		n.before[host] = append(n.before[host], c.Old.ServiceDefinition)
	}
	services := 2 + n.hosts.of(host).services
	for _, port := range concernedPorts(n.hosts, host, c) {
		n.touched[port] += services
	}
}

// take notes the single hosts of a host's services that a change may alter. Those that
// ask for the same domains are left to [singleChanges.findConflicts].
func (n *singleChanges) take(host string, c catalog.ServiceChange, namespaces []string) {
	for _, port := range concernedPorts(n.hosts, host, c) {
		n.note(RouteType, names.HostRoutes(port), namespaces)
		n.note(VirtualHostType, names.VirtualHost(host, port), namespaces)
	}
}

// findConflicts notes the single hosts that ask for a domain of a host that changed, as its
// services are now and were before the step. It looks at each domain once, however many
// of the hosts ask for it. It adds nothing to audiences, but joins them; see [audiences.join].
func (n *singleChanges) findConflicts() {
	searches := map[uint32]*conflictSearch{}
	for host, h := range n.hosts.hosts {
		for port, namespaces := range h.concerned {
			search := searches[port]
			if search == nil {
				index := n.now.Port(port)
				if index == nil {
					continue
				}
				search = newConflictSearch(vhost.Of(index, n.hostsIn()))
				searches[port] = search
			}
			for s := range n.now.ByHost(host) {
				search.of(s.ServiceDefinition, namespaces)
			}
			for _, s := range n.before[host] {
				search.of(s, namespaces)
			}
		}
	}
	for port, search := range searches {
		for host, namespaces := range search.found() {
			n.audiences.join(sharedName{VirtualHostType, names.VirtualHost(host, port)}, namespaces)
		}
	}
}

func (n *singleChanges) note(r world.Row, name string, namespaces []string) {
	n.audiences.add(sharedName{r, name}, namespaces)
}

// hostsIn is the key under which virtual hosts are made.
func (n *singleChanges) hostsIn() vhost.Key {
	in := vhost.Key{Domain: n.settings.Domain}
	if n.settings != policy.Istio {
		in.Settings = n.settings
	}
	return in
}

// crossed notes the listeners of ports that may have become large, or ceased to be.
func (n *singleChanges) crossed() {
	for port, moved := range n.touched {
		if is := n.now.Port(port).Len(); is < n.settings.LargePort-moved || is-moved > n.settings.LargePort {
			continue
		}
		for _, address := range []string{names.AnyIPv4, names.AnyIPv6, names.LocalIPv4, names.LocalIPv6} {
			n.note(ListenerType, names.Socket(address, port), nil)
		}
	}
}

// conflictSearch finds the hosts of services that ask for the same domain as a changed host,
// for clients of any cluster.
type conflictSearch struct {
	*vhost.Port

	domains   map[vhost.LocalDomain]*changedHosts
	addresses map[string]*changedHosts
}

// changedHosts are the changed hosts that ask for one domain or address, and the namespaces
// that may see one of them.
type changedHosts struct {
	host string // the only changed host; empty if there are several
	by   *namespaceSet
}

// mostNamed bounds the listed namespaces that may see a change of conflicting hosts. If there
// are more, all clients are compared.
const mostNamed = 64

func newConflictSearch(all *vhost.Port) *conflictSearch {
	return &conflictSearch{all, map[vhost.LocalDomain]*changedHosts{}, map[string]*changedHosts{}}
}

// of enters the domains and addresses of a service. The namespaces may see that its host has
// changed.
func (r *conflictSearch) of(s catalog.ServiceDefinition, by *namespaceSet) {
	for c := range vhost.NewHost(s, r.Index.Number, r.In).Candidates() {
		enter(r.domains, vhost.LocalDomain{Domain: c.Domain, Home: c.Home}, s.Key.Host, by)
	}
	for address := range s.EveryAddress() {
		enter(r.domains, vhost.LocalDomain{Domain: vhost.Authority(address)}, s.Key.Host, by) // a service may have the address as its host
		enter(r.addresses, address, s.Key.Host, by)
	}
	enter(r.addresses, strings.Trim(s.Key.Host, "[]"), s.Key.Host, by)
}

func enter[K comparable](all map[K]*changedHosts, key K, host string, by *namespaceSet) {
	is := all[key]
	if is == nil {
		all[key] = &changedHosts{host, by}
		return
	}
	if is.host != host {
		is.host = ""
	}
	if is.by == by {
		return
	}
	if !is.by.own {
		own := &namespaceSet{own: true}
		own.join(is.by)
		is.by = own
	}
	if is.by.join(by); len(is.by.names) > mostNamed {
		is.by.add(nil)
	}
}

// found yields the conflicting hosts, with the namespaces that may see the change. A host may
// come several times. Domains that only one host asks for are noted already.
func (r *conflictSearch) found() iter.Seq2[string, *namespaceSet] {
	return func(yield func(string, *namespaceSet) bool) {
		for key, is := range r.domains {
			is.by.own = false // several names share it from here on
			for c := range vhost.Conflicting(r.Candidates, vhost.Candidate{Domain: key.Domain, Own: key.Home != "", Home: key.Home}) {
				if c.By.Key.Host != is.host && !yield(c.By.Key.Host, is.by) {
					return
				}
			}
		}
		for address, is := range r.addresses {
			is.by.own = false
			for s := range r.Index.At(address) {
				if s.Key.Host != is.host && !yield(s.Key.Host, is.by) {
					return
				}
			}
		}
	}
}
