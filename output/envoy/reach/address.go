package reach

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

const (
	unixPrefix = "unix://"
	// longestSocket is how long a path Envoy accepts: sun_path less its end.
	longestSocket = 107
)

// Reasons why an endpoint is left out of a load assignment. Clients would reject the whole
// assignment for an endpoint that they cannot read.
const (
	notAnAddress = "it is a name, and the service's resolution is STATIC"
	zonedAddress = "its IPv6 address has a zone, which is valid on one machine only; register the address without it"
	badSocket    = "its socket path is empty, longer than 107 bytes or not plain text"
	socketByName = "it is a unix socket, and the service's resolution is DNS"
	badName      = "its name is empty or not valid UTF-8"
	badPort      = "its port is not between 1 and 65535"
	noGateway    = "it has no address, and its network needs a gateway: name one in networks of outputs.xds.envoy"
	socketTaken  = "another endpoint has its address and port"
	needsGateway = ", and its own network needs a gateway: name one in networks of outputs.xds.envoy"
	ipv6Alone    = "it is an IPv6 address, and the workload has IPv4 addresses alone"
)

// IPAddress returns an endpoint's address as a load assignment carries it: an
// IP address in canonical form, or the path of a unix socket. If there is none
// it returns the reason.
func IPAddress(e catalog.Endpoint) (address, left string) {
	if path, ok := strings.CutPrefix(e.Address, unixPrefix); ok {
		if path == "" || len(path) > longestSocket || !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0 {
			return "", badSocket
		}
		return path, ""
	}
	_, ok := ip.Canonical(e.Address)
	switch {
	case e.Address == "":
		return "", noGateway
	case !ok && strings.Contains(e.Address, "%"):
		return "", zonedAddress
	case !ok:
		return "", notAnAddress
	case e.Port == 0 || e.Port > names.HighestPort:
		return "", badPort
	}
	return e.Address, ""
}

// isTaken reports whether clients that could reach an endpoint are given another one at its address and
// port: the first that is healthy and to which no gateway leads. An assignment has both once.
func isTaken(endpoints *catalog.Endpoints, e catalog.Endpoint, networks *policy.Networks) bool {
	if endpoints.Counts().Shared == 0 || networks.HasGateways(e.Network) {
		return false
	}
	for _, o := range endpoints.AtPort(e.Address, e.Port) {
		if o.Health == model.Healthy && !networks.HasGateways(o.Network) {
			return o.Network != e.Network
		}
	}
	return false
}

// FurtherAddresses are those that clients can use of the other addresses of an endpoint,
// each once.
func FurtherAddresses(e catalog.Endpoint) (list []netip.Addr) {
	for text := range e.Also.All() {
		at, err := netip.ParseAddr(text)
		if at = at.Unmap(); err == nil && at.Zone() == "" && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// NameAddress is the same for services with DNS names as endpoints. A registry may give an IP address
// instead of a name.
func NameAddress(e catalog.Endpoint) (address, left string) {
	switch {
	case isSocket(e):
		return "", socketByName
	case e.Address == "" || !utf8.ValidString(e.Address):
		return "", badName
	case e.Port == 0 || e.Port > names.HighestPort:
		return "", badPort
	}
	return e.Address, ""
}

// NameAddressFor is the same for Envoys of a family. An Envoy with IPv4 alone (V4_ONLY) uses no IPv6
// address; one with IPv6 alone does use an IPv4 address.
func NameAddressFor(f node.Family) func(catalog.Endpoint) (address, left string) {
	return func(e catalog.Endpoint) (address, left string) {
		if _, ok := ip.Canonical(e.Address); ok && f == node.IPv4 && !f.Has(e.Address) {
			return "", ipv6Alone
		}
		return NameAddress(e)
	}
}

// Unserved yields the endpoints of a service that no client is given although
// they are healthy, and why, by port and address.
func Unserved(s *catalog.Service, networks *policy.Networks) iter.Seq2[catalog.EndpointID, string] {
	return UnservedTo(s, networks, node.AnyFamily)
}

// UnservedTo is the same for the Envoys of a family.
func UnservedTo(s *catalog.Service, networks *policy.Networks, of node.Family) iter.Seq2[catalog.EndpointID, string] {
	return func(yield func(catalog.EndpointID, string) bool) {
		for _, port := range s.Ports {
			address, taken, networks := IPAddress, socketTaken+needsGateway, networks
			switch s.ResolutionAt(port.Number) {
			case model.ResolutionStatic:
			case model.ResolutionDNS, model.ResolutionDNSRoundRobin:
				address, taken, networks = NameAddressFor(of), socketTaken, nil // names are not looked up behind gateways
			default:
				continue // no endpoint is served, and NotOffered says so
			}
			endpoints := s.Endpoints(port.Number)
			for e := range endpoints.All() {
				_, left := address(e)
				if left == "" && !s.Traffic.ClusterLocal && !s.Traffic.NodeLocal && isTaken(endpoints, e, networks) {
					left = taken
				}
				if left == "" || e.Health != model.Healthy || e.Address == "" && networks.HasGateways(e.Network) {
					continue
				}
				if !yield(e.ID(port.Number), left) {
					return
				}
			}
		}
	}
}
