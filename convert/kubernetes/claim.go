package kubernetes

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// claim is where an instance wants to be served, and by which right.
type claim struct {
	address string
	also    string // the address of the other family; empty for most
	main    position
	ports   *portList
	health  model.Health
	ready   bool // and serves a port of the Service
	awaits  bool // its pod is not known yet
}

// name is that of the endpoint, below its Service.
func (c *claim) name() string { return c.address + "/" + c.ports.signature }

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
	c := claim{address: first.endpoint().address, main: first, ports: i.portsAt(first)}
	if other && i.portsAt(second).signature == c.ports.signature {
		c.also = second.endpoint().address
	}
	c.health = first.endpoint().health(g.service)
	c.ready = c.health == model.Healthy && g.serves(c.ports)
	c.awaits = first.endpoint().pod != "" && g.places.Awaits(first.endpoint().uid)
	return c
}

// winners are the instances that are served at an address: of those that share ports
// the one that serves, then the newest.
func (g *Group) winners(address string) []*instance {
	claims := slices.Clone(g.claims[address])
	slices.SortFunc(claims, func(a, b *instance) int {
		return cmp.Or(
			cmp.Compare(a.ports.signature, b.ports.signature),
			cmp.Compare(preference(a.health), preference(b.health)),
			b.main.slice.newer(a.main.slice),
			a.id.compare(b.id),
		)
	})
	return slices.CompactFunc(claims, func(a, b *instance) bool {
		return a.ports.signature == b.ports.signature
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
