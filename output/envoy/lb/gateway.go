package lb

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// gatewayEndpoint is a gateway as an endpoint of an assignment.
type gatewayEndpoint struct {
	gateway netip.AddrPort
	zone    *zone
	weight  uint64
}

// gatewayEndpoints returns the gateways in place of endpoints of other networks. Each occurs
// once: an Envoy drops the second of two endpoints with one address. A gateway counts for the
// nearest zones behind it, and is put into the first of these.
func (d *Draft) gatewayEndpoints(scale uint64) (list []gatewayEndpoint) {
	at := map[netip.AddrPort]int{}
	for _, z := range d.zones {
		for _, foreign := range z.foreign {
			gateways := d.Via.To(foreign.network)
			for _, gateway := range gateways {
				next := gatewayEndpoint{gateway, z, foreign.weight * scale / uint64(len(gateways))}
				i, known := at[gateway]
				switch {
				case !known:
					at[gateway] = len(list)
					list = append(list, next)
				case z.distance < list[i].zone.distance:
					list[i] = next
				case z.distance == list[i].zone.distance:
					list[i].weight += next.weight
				}
			}
		}
	}
	return list
}

// foreign is the weight of the endpoints of another network in a zone.
type foreign struct {
	network string
	weight  uint64
}

// leave notes an endpoint behind gateways.
func (z *zone) leave(network string, weight uint32) {
	i, known := slices.BinarySearchFunc(z.foreign, network, func(f foreign, network string) int { return cmp.Compare(f.network, network) })
	if !known {
		z.foreign = slices.Insert(z.foreign, i, foreign{network: network})
	}
	z.foreign[i].weight += uint64(weight)
}

// scaleFor returns by how much weights are multiplied, and how many gateways there are
// at most. Where there are none, nothing is multiplied.
func (d *Draft) scaleFor(total uint64) (scale, gateways uint64) {
	for _, z := range d.zones {
		for _, foreign := range z.foreign {
			gateways += uint64(len(d.Via.To(foreign.network)))
		}
	}
	if gateways == 0 {
		return 1, 0
	}
	room := math.MaxUint32 - uint64(len(d.Endpoints)) - gateways
	return max(min(d.Via.Scale, room/total), 1), gateways
}

// enter adds the gateways to the places, in order.
func (d *Draft) enter(scale, divisor uint64) {
	for _, e := range d.gatewayEndpoints(scale) {
		p := wire.Endpoint{Address: e.gateway.Addr().String(), Port: e.gateway.Port(), Weight: uint32(max(e.weight/divisor, 1))} //nolint:gosec // all weights together fit
		i, taken := slices.BinarySearchFunc(d.Endpoints, p, compareEndpoints)
		if taken { // an endpoint has the gateway's address
			continue
		}
		p.Group = &e.zone.groupOf(p.Weight).Group
		p.Group.Weight += uint64(p.Weight)
		d.Endpoints = slices.Insert(d.Endpoints, i, p)
	}
}
