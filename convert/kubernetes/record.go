package kubernetes

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// endpointsAt makes the records of an address. A new one is kept back while its pod is
// awaited: it would have no labels and no account. That must not leave the Service without
// an endpoint that is ready, nor take one away that was there already.
func (g *Group) endpointsAt(address string, before []endpoint) (list []endpoint) {
	for _, i := range g.winners(address) {
		if i.awaits && g.known > 0 && !slices.ContainsFunc(before, func(e endpoint) bool { return e.name == i.name() }) {
			continue
		}
		if spec, served := g.specOf(i); served {
			list = append(list, endpoint{i.name(), i.main.endpoint().hostname, spec})
		}
	}
	return list
}

// specOf makes the endpoint of an instance. One that serves no port of the Service is
// none.
func (g *Group) specOf(i *instance) (spec model.Endpoint, served bool) {
	e := i.main.endpoint()
	spec = model.Endpoint{Address: i.address, Locality: localityOf(e, g.places), Network: g.cluster.Network, Node: e.node, Health: i.health}
	if i.also != "" {
		spec.Also = model.ListOf(i.also)
	}
	if spec.Ports, spec.Exact, served = g.portsOf(i.ports); !served {
		return spec, false
	}
	if i.health == model.Draining && g.ready == 0 {
		spec.Health = model.Healthy // nothing else serves
	}
	labels := model.Labels{}
	if pod, known := g.places.Pod(Name{g.name.Namespace, e.pod}); known && pod.UID == e.uid {
		labels, spec.ServiceAccount = pod.Labels, pod.Account
		if network, _ := labels.Get(networkLabel); network != "" {
			spec.Network = network
		}
	}
	spec.Labels = g.cluster.mark(labels)
	return spec, true
}

// mark adds the cluster to the labels of an endpoint.
func (c Cluster) mark(labels model.Labels) model.Labels {
	if c.Name == "" {
		return labels
	}
	all := labels.Map()
	if all == nil {
		all = map[string]string{}
	}
	all[ClusterLabel] = c.Name
	return model.MapOf(all)
}

// portsOf are the ports at which an endpoint serves those of the Service.
// They are left out where the Service says the same, unless some are not served.
func (g *Group) portsOf(in *portList) (ports model.Map[uint32], exact, served bool) {
	all, other := map[string]uint32{}, map[string]uint32{}
	for port := range g.service.Spec.Ports.All() {
		number, has := g.numberOf(in, port)
		if !has {
			exact = true
			continue
		}
		all[port.Name] = number
		if number != target(port) || port.TargetName != "" {
			other[port.Name] = number
		}
	}
	if exact {
		return model.MapOf(all), true, len(all) > 0
	}
	return model.MapOf(other), false, len(all) > 0
}

// serves reports whether any port of the Service is among those of an endpoint.
func (g *Group) serves(in *portList) bool {
	for port := range g.service.Spec.Ports.All() {
		if _, has := g.numberOf(in, port); has {
			return true
		}
	}
	return false
}

// numberOf is where an endpoint serves a port. Slices know ports by name alone: one of
// another number is the same.
func (g *Group) numberOf(in *portList, port model.Port) (number uint32, has bool) {
	for _, p := range in.list {
		switch {
		case g.service.portName(p.name) != port.Name:
		case p.number == 0:
			return target(port), true
		default:
			return p.number, true
		}
	}
	return 0, false
}

func target(port model.Port) uint32 {
	if port.TargetPort != 0 {
		return port.TargetPort
	}
	return port.Number
}
