package envoy

import (
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/push"
)

// singleChanges notes what a step may alter of single hosts.
type singleChanges struct {
	*settings

	now       *catalog.Snapshot
	hosts     *stepHosts
	audiences audiences
	touched   map[uint32]int                         // by port: how many services may have come or gone
	before    map[string][]catalog.ServiceDefinition // of each host, what has changed
	rivals    map[hostPort]map[string]struct{}
}

// hostPort is a host at one of its ports.
type hostPort struct {
	host string
	port uint32
}

func newSingleChanges(s *settings, hosts *stepHosts, noted audiences) *singleChanges {
	return &singleChanges{s, hosts.now, hosts, noted, map[uint32]int{}, map[string][]catalog.ServiceDefinition{}, map[hostPort]map[string]struct{}{}}
}

// count notes how many services of a host may have come or gone. It comes for all changes
// before [singleChanges.take] does for any.
func (n *singleChanges) count(host string, c catalog.ServiceChange) {
	if c.Old != nil && c.New != nil && sameOffer(c.Old, c.New) {
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

// take notes the single hosts that a change of a host's services may alter: their own, and
// those that claim the same domains.
func (n *singleChanges) take(host string, c catalog.ServiceChange, namespaces []string) {
	if !n.hasHosts() {
		return
	}
	for _, port := range concernedPorts(n.hosts, host, c) {
		n.note(RouteType, hostRoutes(port), namespaces)
		n.note(VirtualHostType, hostName(host, port), namespaces)
		index := n.now.Port(port)
		if index == nil {
			continue
		}
		all := hostsOf(index, n.view())
		for rival := range n.rivalsOf(all, host) {
			n.note(VirtualHostType, hostName(rival, port), namespaces)
		}
	}
}

// rivalsOf are the hosts that claim a domain of one of a host's services at a port, as these
// are now and were before the step. Many namespaces may have services of their own of one
// host, all of which change at once, and each of which has all others for rivals.
func (n *singleChanges) rivalsOf(all *portHosts, host string) map[string]struct{} {
	at := hostPort{host, all.index.Number}
	if hosts, known := n.rivals[at]; known {
		return hosts
	}
	search := newRivalSearch(all)
	for s := range n.now.ByHost(host) {
		search.of(s.ServiceDefinition)
	}
	for _, s := range n.before[host] {
		search.of(s)
	}
	n.rivals[at] = search.hosts
	return search.hosts
}

func (n *singleChanges) note(r push.Row, name string, namespaces []string) {
	n.audiences.add(sharedName{r, name}, namespaces)
}

// view is one under which virtual hosts are made.
func (n *singleChanges) view() View {
	v := View{proxy: proxy{domain: n.domain}}
	if n.settings != asIstio {
		v.settings = n.settings
	}
	return v
}

// crossed notes the listeners of ports that may have become large, or ceased to be.
func (n *singleChanges) crossed() {
	for port, moved := range n.touched {
		if is := n.now.Port(port).Len(); is < n.large-moved || is-moved > n.large {
			continue
		}
		for _, address := range []string{anyIPv4, anyIPv6, localIPv4, localIPv6} {
			n.note(ListenerType, socketName(address, port), nil)
		}
	}
}

// rivalSearch finds the hosts of services that claim a domain of some, for clients of
// whichever cluster. It looks once for what several of them claim.
type rivalSearch struct {
	*portHosts
	hosts map[string]struct{}

	domains   map[homeDomain]struct{}
	addresses map[string]struct{}
}

// homeDomain is a domain, and the namespace of those who know a service by it if these are
// not all.
type homeDomain struct{ domain, home string }

func newRivalSearch(all *portHosts) *rivalSearch {
	return &rivalSearch{all, map[string]struct{}{}, map[homeDomain]struct{}{}, map[string]struct{}{}}
}

// of looks for those of a service.
func (r *rivalSearch) of(s catalog.ServiceDefinition) {
	for c := range newPortHost(s, r.index.Number, r.in).claims() {
		r.against(c)
	}
	for address := range s.EveryAddress() {
		r.against(claim{domain: authority(address)}) // who has it for a host
		r.at(address)
	}
	r.at(strings.Trim(strings.ToLower(s.Key.Host), "[]"))
}

func (r *rivalSearch) against(c claim) {
	key := homeDomain{c.domain, c.home}
	if _, done := r.domains[key]; done {
		return
	}
	r.domains[key] = struct{}{}
	for rival := range rivals(r.claims, c) {
		r.hosts[rival.by.Key.Host] = struct{}{}
	}
}

func (r *rivalSearch) at(address string) {
	if _, done := r.addresses[address]; done {
		return
	}
	r.addresses[address] = struct{}{}
	for rival := range r.index.At(address) {
		r.hosts[rival.Key.Host] = struct{}{}
	}
}
