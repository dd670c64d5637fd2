package envoy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/push"
)

// singleChanges notes what a step may alter of single hosts.
type singleChanges struct {
	*settings

	now       *catalog.Snapshot
	audiences map[sharedName][]string
	touched   map[uint32]int // by port: how many services may have come or gone
}

// count notes how many services of a host may have come or gone.
func (n *singleChanges) count(host string, c catalog.ServiceChange) {
	if c.Old != nil && c.New != nil && sameOffer(c.Old, c.New) {
		return
	}
	services := 2
	for range n.now.ByHost(host) {
		services++
	}
	for _, port := range concernedPorts(n.now, host, c) {
		n.touched[port] += services
	}
}

// take notes the single hosts that a change of a host's services may alter: their own, and
// those that claim the same domains.
func (n *singleChanges) take(host string, c catalog.ServiceChange, namespaces []string) {
	if !n.hasHosts() {
		return
	}
	var services []catalog.ServiceDefinition
	add := func(s *catalog.Service) {
		if s != nil {
			services = append(services, s.ServiceDefinition)
		}
	}
	add(c.Old)
	add(c.New)
	for other := range n.now.ByHost(host) {
		add(other)
	}
	for _, port := range concernedPorts(n.now, host, c) {
		n.note(RouteType, hostRoutes(port), namespaces)
		n.note(VirtualHostType, hostName(host, port), namespaces)
		index := n.now.Port(port)
		if index == nil {
			continue
		}
		all := hostsOf(index, n.view())
		for _, s := range services {
			for _, rival := range all.rivalsOf(s) {
				n.note(VirtualHostType, hostName(rival, port), namespaces)
			}
		}
	}
}

func (n *singleChanges) note(r push.Row, name string, namespaces []string) {
	at := sharedName{r, name}
	n.audiences[at] = unite(n.audiences, at, namespaces)
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

// rivalsOf are the hosts of services that claim a domain of one, for clients of whichever
// cluster.
func (a *portHosts) rivalsOf(s catalog.ServiceDefinition) (hosts []string) {
	of := newPortHost(s, a.index.Number, a.in)
	against := func(c claim) {
		for rival := range rivals(a.claims, c) {
			hosts = append(hosts, rival.by.Key.Host)
		}
	}
	for c := range of.claims() {
		against(c)
	}
	for address := range s.EveryAddress() {
		against(claim{domain: authority(address)}) // who has it for a host
		for rival := range a.index.At(address) {
			hosts = append(hosts, rival.Key.Host)
		}
	}
	for rival := range a.index.At(strings.Trim(strings.ToLower(s.Key.Host), "[]")) {
		hosts = append(hosts, rival.Key.Host)
	}
	slices.SortFunc(hosts, cmp.Compare[string])
	return slices.Compact(hosts)
}
