package reach

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// A service port is reached through the listener of an address and a port. Both
// depend only on the service. So a new service changes only the listeners through which it is
// reached.

// ListensAt yields the addresses on which Envoys listen for a port of a service, but for
// those of its instances.
func ListensAt(c Client, s catalog.ServiceDefinition, index *catalog.PortServices) iter.Seq[string] {
	return func(yield func(string) bool) {
		port, _ := s.Port(index.Number)
		kind, p := TrafficOf(port), c.Proxy
		switch {
		case kind == NotTCP, p.Reserved(port.Number), Follows(p, s.Definition, port):
			return
		case p.Mode == node.None, kind == HTTP:
			if p.Opens(port.Number) {
				yield(p.Shared())
			}
			return
		}
		shares := kind != TCP || takesRest(c, s, port.Number)
		for address := range s.OwnAddressesIn(p.Cluster) {
			shares = false
			if p.Family.Has(address) && !yield(address) {
				return
			}
		}
		for range s.BlocksIn(p.Cluster) {
			shares = true
			break
		}
		for address := range Allotted(c, s) {
			if !yield(address) {
				return
			}
		}
		if shares && p.Opens(port.Number) {
			yield(p.Shared())
		}
	}
}

// SharesListener reports whether a service is reached through the listener that services of
// a port share.
func SharesListener(c Client, s catalog.ServiceDefinition, index *catalog.PortServices) bool {
	for at := range ListensAt(c, s, index) {
		if at == c.Proxy.Shared() {
			return true
		}
	}
	return false
}

// Client is a workload that calls services through its Envoy.
type Client struct {
	catalog.Viewer
	Proxy    node.Proxy
	Settings *policy.Prepared // nil for the default
}

// Members yields the services that a viewer reaches through a listener: by host through the
// one that services share, by ownership through that of an address.
func Members(c Client, index *catalog.PortServices, address string) iter.Seq[catalog.ServiceDefinition] {
	if address != c.Proxy.Shared() {
		return slices.Values(CallableAt(c, index, address).Listened())
	}
	return func(yield func(catalog.ServiceDefinition) bool) {
		for s := range index.Visible(c.Viewer) {
			if HasCluster(s, index.Number) && SharesListener(c, s, index) && !yield(s) {
				return
			}
		}
	}
}

// AtAddress are the services that ask for an address and a port, the owner first.
type AtAddress struct {
	port uint32
	list []catalog.ServiceDefinition
}

// CallableAt returns the services that a viewer calls at an address.
func CallableAt(c Client, index *catalog.PortServices, address string) AtAddress {
	if index == nil || c.Proxy.Mode == node.None || c.Proxy.Reserved(index.Number) || !c.Proxy.Family.Has(address) {
		return AtAddress{}
	}
	all := AtAddress{port: index.Number}
	for _, s := range append(index.CalledAt(c.Viewer, c.Proxy.Cluster, address), allottedAt(c, index, address)...) {
		if port, _ := s.Port(index.Number); TrafficOf(port) != NotTCP && HasCluster(s, index.Number) && !Follows(c.Proxy, s.Definition, port) {
			all.list = append(all.list, s)
		}
	}
	slices.SortFunc(all.list, func(a, b catalog.ServiceDefinition) int {
		return catalog.At(c.Proxy.Cluster, address).Owner(c.Namespace, a, b)
	})
	return all
}

// Owner returns the service that owns the address; ok is false if none asks for it.
func (a AtAddress) Owner() (s catalog.ServiceDefinition, ok bool) {
	if len(a.list) == 0 {
		return s, false
	}
	return a.list[0], true
}

// requests reports whether the port of a service carries only requests. They are routed by
// the listener that services share, so one of the address would take them from their owner.
func (a AtAddress) requests(s catalog.ServiceDefinition) bool {
	port, _ := s.Port(a.port)
	return TrafficOf(port) == HTTP
}

// Listened lists the services that are reached through a listener of the address: none
// if the owner takes requests.
func (a AtAddress) Listened() []catalog.ServiceDefinition {
	if owner, some := a.Owner(); !some || a.requests(owner) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a.list), a.requests)
}

// HasCluster reports whether Envoys have a cluster for a port of the service.
func HasCluster(s catalog.ServiceDefinition, number uint32) bool {
	port, _ := s.Port(number)
	f, _ := offer(KindEnvoy, &catalog.Service{ServiceDefinition: s}, port)
	return f != NoForm
}

// Losses lists the conflicts that services lose at an address.
func (a AtAddress) Losses(v Client) (lost []Loss) {
	if len(a.list) == 0 {
		return nil
	}
	services := a.Listened()
	owner, kind := a.list[0], LostConnections
	if port, _ := owner.Port(a.port); TrafficOf(port) == TLS && handshakes(services, a.port) > 1 {
		kind = LostToHandshakes
	}
	for _, s := range a.list[1:] {
		if a.requests(owner) != a.requests(s) {
			lost = append(lost, Loss{Loser: s, Winner: owner, Kind: kind})
		}
	}
	Arrange(v, services, a.port, false, &lost)
	return lost
}
