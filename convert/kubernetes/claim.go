package kubernetes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// claim is where an instance wants to be served, and by which right.
type claim struct {
	address string
	also    string // the address of the other family; empty for most
	main    position
	health  model.Health
	ready   bool
}

// name is that of the endpoint, below its Service.
func (c *claim) name() string { return c.address + "/" + signature(c.main.slice.ports) }

// claimOf is what the newest states of an instance say. With addresses of both
// families it is one endpoint, at the address of the family that the Service has first,
// and its other address reaches the same if it has the same ports.
func (g *Group) claimOf(i *instance) claim {
	if g.service == nil || len(i.has) == 0 {
		return claim{}
	}
	first, ok := i.newest(g.service.IPv6)
	second, other := i.newest(!g.service.IPv6)
	if !ok {
		first, other = second, false
	}
	c := claim{address: first.endpoint().address, main: first}
	if other && signature(second.slice.ports) == signature(first.slice.ports) {
		c.also = second.endpoint().address
	}
	c.health = first.endpoint().health(g.service)
	c.ready = c.health == model.Healthy
	return c
}

// winners are the instances that are served at an address: of those that share ports
// the one that serves, then the newest.
func (g *Group) winners(address string) []*instance {
	claims := slices.Clone(g.claims[address])
	slices.SortFunc(claims, func(a, b *instance) int {
		return cmp.Or(
			cmp.Compare(signature(a.main.slice.ports), signature(b.main.slice.ports)),
			cmp.Compare(preference(a.health), preference(b.health)),
			b.main.slice.newer(a.main.slice),
			cmp.Compare(a.id, b.id),
		)
	})
	return slices.CompactFunc(claims, func(a, b *instance) bool {
		return signature(a.main.slice.ports) == signature(b.main.slice.ports)
	})
}

func preference(h model.Health) int {
	switch h {
	case model.Healthy:
		return 0
	case model.Draining:
		return 1
	default:
		return 2
	}
}

// signature tells the ports of slices apart. Few slices have many ports.
func signature(ports []slicePort) string {
	if len(ports) == 1 {
		return ports[0].String()
	}
	list := make([]string, 0, len(ports))
	for _, p := range ports {
		list = append(list, p.String())
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

func (p slicePort) String() string {
	return p.name + "=" + strconv.FormatUint(uint64(p.number), 10)
}
