package kubernetes

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// claim is the address that an instance claims, and its precedence there.
type claim struct {
	address string
	also    string // the address of the other family; empty for most
	main    position
	ports   *portList
	health  model.Health
	ready   bool // healthy, and serves a port of the Service
	awaits  bool // its pod is not known yet
}

// name returns the name of the endpoint, below its Service.
func (c *claim) name() string { return c.address + "/" + c.ports.signature }

// claimOf returns the claim of an instance by its newest states. With addresses of both
// families it is one endpoint, at the address of the Service's first family. The other
// address belongs to the endpoint if it has the same ports.
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

// winner is an instance that is served, at its ports that no other instance takes.
type winner struct {
	*instance
	ports map[string]uint32 // by the names of the Service's ports
}

// portAt is a port of the Service at a number, which one instance of an address serves.
type portAt struct {
	name   string
	number uint32
}

// winners returns the instances that are served at an address. If several share a port, the
// first in the order of [instance.before] gets it, port by port: pods of a node that share
// one port may differ in another. Two winners never have all ports in common. Instances
// that are kept back take nothing from others.
func (g *Group) winners(address string, keptBack func(*instance) bool) (list []winner) {
	claims := slices.SortedFunc(slices.Values(g.claims[address]), (*instance).before)
	taken := map[portAt]bool{}
	for _, i := range claims {
		if keptBack(i) {
			continue
		}
		w := winner{i, map[string]uint32{}}
		for port := range g.service.Spec.Ports.All() {
			number, has := g.numberOf(i.ports, port)
			if at := (portAt{port.Name, number}); has && !taken[at] {
				w.ports[port.Name], taken[at] = number, true
			}
		}
		if len(w.ports) > 0 {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b winner) int { return cmp.Compare(a.name(), b.name()) })
	return list
}

// before orders instances of an address that share a port: a serving instance is first,
// then a living one, then the newest. With publishNotReadyAddresses all of them are
// healthy, even an ended pod with an address that another pod has by now.
func (i *instance) before(o *instance) int {
	a, b := i.main.endpoint(), o.main.endpoint()
	return cmp.Or(
		cmp.Compare(preference(i.health), preference(o.health)),
		falseFirst(a.terminating, b.terminating),
		falseFirst(!a.serving, !b.serving),
		o.main.slice.newer(i.main.slice),
		i.id.compare(o.id),
	)
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
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
