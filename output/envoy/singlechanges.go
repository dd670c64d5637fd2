package envoy

import (
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push"
)

// singleChanges notes what a step may alter of single hosts.
type singleChanges struct {
	settings  *policy.Prepared
	now       *catalog.Snapshot
	hosts     *stepHosts
	audiences audiences
	touched   map[uint32]int                         // by port: how many services may have come or gone
	before    map[string][]catalog.ServiceDefinition // of each host, what has changed
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
// claim the same domains are left to [singleChanges.contested].
func (n *singleChanges) take(host string, c catalog.ServiceChange, namespaces []string) {
	for _, port := range concernedPorts(n.hosts, host, c) {
		n.note(RouteType, names.HostRoutes(port), namespaces)
		n.note(VirtualHostType, names.VirtualHost(host, port), namespaces)
	}
}

// contested notes the single hosts that claim a domain of a host that changed, as its
// services are now and were before the step. It looks at each domain once, however many
// of the hosts claim it. It adds nothing to audiences, but joins them; see [audiences.join].
func (n *singleChanges) contested() {
	searches := map[uint32]*claimSearch{}
	for host, h := range n.hosts.hosts {
		for port, namespaces := range h.concerned {
			search := searches[port]
			if search == nil {
				index := n.now.Port(port)
				if index == nil {
					continue
				}
				search = newClaimSearch(vhost.Of(index, n.hostsIn()))
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

func (n *singleChanges) note(r push.Row, name string, namespaces []string) {
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

// claimSearch finds the hosts of services that claim a domain of some, for clients of
// whichever cluster.
type claimSearch struct {
	*vhost.Port

	domains   map[vhost.HomeDomain]*claimed
	addresses map[string]*claimed
}

// claimed is what the hosts that changed have in common, and who may see one of these.
type claimed struct {
	host string // the only one of them; empty if they are several
	by   *namespaceSet
}

// mostNamed bounds the namespaces that are listed of those who may see a change of
// hosts that have something in common. If there are more, all clients are looked at.
const mostNamed = 64

func newClaimSearch(all *vhost.Port) *claimSearch {
	return &claimSearch{all, map[vhost.HomeDomain]*claimed{}, map[string]*claimed{}}
}

// of enters what a service claims. The namespaces are those who may see that its host has
// changed.
func (r *claimSearch) of(s catalog.ServiceDefinition, by *namespaceSet) {
	for c := range vhost.NewHost(s, r.Index.Number, r.In).Claims() {
		enter(r.domains, vhost.HomeDomain{Domain: c.Domain, Home: c.Home}, s.Key.Host, by)
	}
	for address := range s.EveryAddress() {
		enter(r.domains, vhost.HomeDomain{Domain: vhost.Authority(address)}, s.Key.Host, by) // who has it for a host
		enter(r.addresses, address, s.Key.Host, by)
	}
	enter(r.addresses, strings.Trim(strings.ToLower(s.Key.Host), "[]"), s.Key.Host, by)
}

func enter[K comparable](all map[K]*claimed, key K, host string, by *namespaceSet) {
	is := all[key]
	if is == nil {
		all[key] = &claimed{host, by}
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

// found yields the hosts that claim something of it, with who may see the change. One may
// come several times. What a host alone has changed of is noted for it already.
func (r *claimSearch) found() iter.Seq2[string, *namespaceSet] {
	return func(yield func(string, *namespaceSet) bool) {
		for key, is := range r.domains {
			is.by.own = false // many names have it from here on
			for c := range vhost.Rivals(r.Claims, vhost.Claim{Domain: key.Domain, Own: key.Home != "", Home: key.Home}) {
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
