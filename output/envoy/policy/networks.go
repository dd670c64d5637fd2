package policy

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
)

// Network is a network with gateways, through which clients of other networks reach its endpoints.
// Without gateways they reach the endpoints directly.
type Network struct {
	Name     string    `json:"name"`
	Gateways []Gateway `json:"gateways"`
}

// Gateway forwards TLS to the endpoints of its network, by the name in the handshake.
type Gateway struct {
	Address string `json:"address"` // an IP address
	Port    int    `json:"port"`
}

// SetDefaults sets the default port.
func (g *Gateway) SetDefaults() { g.Port = gatewayPort }

// gatewayPort is the port of Istio's gateways between networks.
const gatewayPort = 15443

func validateNetworks(f *faults, list []Network) {
	first := map[string]int{}
	for i, n := range list {
		at := fmt.Sprintf("networks[%d]", i)
		earlier, twice := first[n.Name]
		switch {
		case n.Name == "":
			f.add(at+".name", "missing; give the network of the endpoints, as in the node metadata NETWORK of clients, such as network1")
		case twice:
			f.add(at+".name", "%q is also the name of networks[%d]; merge the two entries", n.Name, earlier)
		default:
			first[n.Name] = i
		}
		n.validateGateways(f, at)
	}
}

func (n *Network) validateGateways(f *faults, at string) {
	first := map[netip.AddrPort]int{}
	for i, g := range n.Gateways {
		field := fmt.Sprintf("%s.gateways[%d]", at, i)
		f.within(field+".port", g.Port, 1, highestPort, "a number such as 15443")
		ip, err := netip.ParseAddr(g.Address)
		if err != nil || ip.Zone() != "" {
			f.add(field+".address", "%q is not an IP address; give the address of the gateway, such as 192.0.2.1", g.Address)
			continue
		}
		earlier, twice := first[g.at(ip)]
		if twice {
			f.add(field, "equals gateways[%d]; remove one of them", earlier)
			continue
		}
		first[g.at(ip)] = i
	}
}

func (g Gateway) at(ip netip.Addr) netip.AddrPort {
	return netip.AddrPortFrom(ip.Unmap(), uint16(g.Port)) //nolint:gosec // it is validated
}

// Networks are the networks that have gateways, prepared for lookups.
type Networks struct {
	gateways map[string][]netip.AddrPort
	remote   map[clientKey]*RemoteGateways
}

// clientKey identifies clients that use the same gateways.
type clientKey struct {
	network string // of the client; empty for every network without gateways
	of      families
}

// families are the IP families that a client can reach.
type families uint8

const (
	allFamilies families = iota // or the client does not say
	onlyIPv4
	onlyIPv6
)

// RemoteGateways are the gateways through which a client reaches endpoints of other
// networks; nil if no network has gateways. Clients of one network have the same pointer
// for as long as the process runs.
type RemoteGateways struct {
	// Scale is the factor by which weights are multiplied, so that gateways can share them.
	Scale uint64
	// Closed are the same networks without gateways, for endpoints that gateways do not
	// lead to; nil if it is that itself.
	Closed *RemoteGateways

	own string // the network of the clients; empty if it has no gateways
	// gateways are those of each other network that has any. A network is there without
	// gateways if the client can reach none of them.
	gateways map[string][]netip.AddrPort
}

// LeadTo reports whether endpoints of a network are not reached directly.
func (r *RemoteGateways) LeadTo(network string) bool {
	if r == nil || network == "" {
		return false
	}
	_, ok := r.gateways[network]
	return ok
}

// IsOwn reports whether a network is that of the clients, and has gateways for others.
func (r *RemoteGateways) IsOwn(network string) bool {
	return r != nil && r.own != "" && r.own == network
}

// To lists the gateways of a network that the client can reach, in order.
func (r *RemoteGateways) To(network string) []netip.AddrPort { return r.gateways[network] }

// networksOf prepares networks; nil if no network has gateways.
func networksOf(list []Network) *Networks {
	all := &Networks{gateways: map[string][]netip.AddrPort{}, remote: map[clientKey]*RemoteGateways{}}
	for _, n := range list {
		for _, g := range n.Gateways {
			if ip, err := netip.ParseAddr(g.Address); err == nil {
				all.gateways[n.Name] = append(all.gateways[n.Name], g.at(ip))
			}
		}
		slices.SortFunc(all.gateways[n.Name], netip.AddrPort.Compare)
	}
	if len(all.gateways) == 0 {
		return nil
	}
	all.enter("")
	for name := range all.gateways {
		all.enter(name)
	}
	return all
}

// enter prepares the gateways for clients of a network. Where all of the gateways suit a
// client, it has the same pointer as clients of all families.
func (n *Networks) enter(own string) {
	for _, of := range []families{allFamilies, onlyIPv4, onlyIPv6} {
		r, same := &RemoteGateways{own: own, gateways: map[string][]netip.AddrPort{}, Scale: 1}, true
		for _, name := range slices.Sorted(maps.Keys(n.gateways)) {
			gateways := n.gateways[name]
			if name == own {
				continue
			}
			suited := slices.DeleteFunc(slices.Clone(gateways), func(g netip.AddrPort) bool { return !of.reaches(g.Addr()) })
			same = same && len(suited) == len(gateways)
			r.gateways[name] = suited
			if len(suited) > 0 {
				r.Scale = leastCommonMultiple(r.Scale, uint64(len(suited)))
			}
		}
		switch all := n.remote[clientKey{own, allFamilies}]; {
		case all == nil:
			r.Closed = &RemoteGateways{own: own, gateways: map[string][]netip.AddrPort{}}
			for name := range r.gateways {
				r.Closed.gateways[name] = nil
			}
		case same:
			r = all
		default:
			r.Closed = all.Closed
		}
		n.remote[clientKey{own, of}] = r
	}
}

// leastCommonMultiple returns at most the number by which weights can be multiplied.
func leastCommonMultiple(a, b uint64) uint64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return min(a/x*b, math.MaxUint32)
}

// HasGateways reports whether a network has gateways.
func (n *Networks) HasGateways(network string) bool {
	if n == nil {
		return false
	}
	_, ok := n.gateways[network]
	return ok
}

// RemoteTo returns the gateways to other networks for a client with a network and
// addresses; nil if no network has gateways. All networks without gateways are alike: they
// only differ from those that have some.
func (n *Networks) RemoteTo(network string, addresses []string) *RemoteGateways {
	if n == nil {
		return nil
	}
	if n.gateways[network] == nil {
		network = ""
	}
	return n.remote[clientKey{network, familiesOf(addresses)}]
}

func familiesOf(addresses []string) families {
	var four, six bool
	for _, text := range addresses {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return allFamilies
		}
		four, six = four || ip.Unmap().Is4(), six || !ip.Unmap().Is4()
	}
	switch {
	case four == six:
		return allFamilies
	case four:
		return onlyIPv4
	default:
		return onlyIPv6
	}
}

func (f families) reaches(ip netip.Addr) bool {
	return f == allFamilies || (f == onlyIPv4) == ip.Is4()
}
