package envoy

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// Network is one that clients of other networks enter through its gateways. Without
// gateways it is entered directly.
type Network struct {
	Name     string    `json:"name"`
	Gateways []Gateway `json:"gateways"`
}

// Gateway leads TLS on to the endpoints of its network, by the name in the handshake.
type Gateway struct {
	Address string `json:"address"` // an IP address
	Port    int    `json:"port"`
}

// SetDefaults gives it what it has if nothing is said.
func (g *Gateway) SetDefaults() { g.Port = gatewayPort }

// gatewayPort is that of Istio's gateways between networks.
const gatewayPort = 15443

func validateNetworks(f *faults, list []Network) {
	first := map[string]int{}
	for i, n := range list {
		at := fmt.Sprintf("networks[%d]", i)
		earlier, twice := first[n.Name]
		switch {
		case n.Name == "":
			f.add(at+".name", "missing; give what endpoints and the metadata NETWORK of clients say, such as network1")
		case twice:
			f.add(at+".name", "%q is that of networks[%d] already; make one entry of both", n.Name, earlier)
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
		f.within(field+".port", g.Port, 1, highestPort, "such as 15443")
		ip, err := netip.ParseAddr(g.Address)
		if err != nil || ip.Zone() != "" {
			f.add(field+".address", "%q is no IP address; give that of the gateway, such as 192.0.2.1", g.Address)
			continue
		}
		earlier, twice := first[g.at(ip)]
		if twice {
			f.add(field, "is gateways[%d] already; remove one of them", earlier)
			continue
		}
		first[g.at(ip)] = i
	}
}

func (g Gateway) at(ip netip.Addr) netip.AddrPort {
	return netip.AddrPortFrom(ip.Unmap(), uint16(g.Port)) //nolint:gosec // it is validated
}

// networks are those that have gateways, ready to be asked.
type networks struct {
	gateways  map[string][]netip.AddrPort
	crossings map[crossingKey]*crossing
}

// crossingKey tells clients apart that get to other networks in different ways.
type crossingKey struct {
	own string // the network; empty for every one that has no gateways
	of  families
}

// families are the addresses that a client can reach.
type families uint8

const (
	allFamilies families = iota // or it does not say
	onlyIPv4
	onlyIPv6
)

// crossing is how clients get to endpoints of other networks. Clients of one network
// have the same pointer for as long as the process runs.
type crossing struct {
	// gateways are those of each other network that has any. A network of which
	// the client can reach none of the gateways is there, too: without any.
	gateways map[string][]netip.AddrPort
	scale    uint64    // by which weights are multiplied, so that gateways can share them
	closed   *crossing // for endpoints that gateways do not lead to
}

// networksOf prepares what the configuration has; nil if no network has gateways.
func networksOf(list []Network) *networks {
	all := &networks{gateways: map[string][]netip.AddrPort{}, crossings: map[crossingKey]*crossing{}}
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

// enter prepares the crossings of clients of a network. Where all of its gateways suit a
// client, it has the crossing of the others.
func (n *networks) enter(own string) {
	for _, of := range []families{allFamilies, onlyIPv4, onlyIPv6} {
		c, same := &crossing{gateways: map[string][]netip.AddrPort{}, scale: 1}, true
		for _, name := range slices.Sorted(maps.Keys(n.gateways)) {
			gateways := n.gateways[name]
			if name == own {
				continue
			}
			suited := slices.DeleteFunc(slices.Clone(gateways), func(g netip.AddrPort) bool { return !of.reaches(g.Addr()) })
			same = same && len(suited) == len(gateways)
			c.gateways[name] = suited
			if len(suited) > 0 {
				c.scale = leastCommonMultiple(c.scale, uint64(len(suited)))
			}
		}
		switch all := n.crossings[crossingKey{own, allFamilies}]; {
		case all == nil:
			c.closed = &crossing{gateways: map[string][]netip.AddrPort{}}
			for name := range c.gateways {
				c.closed.gateways[name] = nil
			}
		case same:
			c = all
		default:
			c.closed = all.closed
		}
		n.crossings[crossingKey{own, of}] = c
	}
}

// leastCommonMultiple stops where it would be more than weights can be multiplied by.
func leastCommonMultiple(a, b uint64) uint64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return min(a/x*b, math.MaxUint32)
}

// crossing returns that of a client; nil if no network has gateways. A network that has
// none is the same as none at all: it only differs from those that have some.
func (n *networks) crossing(c push.Client) *crossing {
	if n == nil {
		return nil
	}
	own := c.Network
	if n.gateways[own] == nil {
		own = ""
	}
	return n.crossings[crossingKey{own, familiesOf(c.Addresses)}]
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

// crossingTo is how clients of a view get to the endpoints of a port in other networks;
// nil if no endpoint is said to be in one. Gateways lead on by the name in the handshake
// that Envoys give in the mode ISTIO_MUTUAL alone, and to services inside of the mesh: all
// others are not given what is behind them.
func (v View) crossingTo(s *catalog.Service, port uint32, of *subset, p *Policy) *crossing {
	if v.via == nil || s.Endpoints(port).Counts().Networked == 0 {
		return nil
	}
	_, named := meshName(s.Key.Host, port, of)
	if v.Kind != KindEnvoy || !p.TLS.ofMesh() || !named || s.Location == model.MeshExternal || s.Traffic.ClusterLocal {
		return v.via.closed
	}
	return v.via
}
