package kubernetes

import (
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// endpointsAt makes the records of an address. A new one is kept back while its pod is
// awaited, because it would have no labels and no account. That must not leave the Service
// without a ready endpoint, nor remove an existing one.
func (g *Group) endpointsAt(address string, before []endpoint) (list []endpoint) {
	keptBack := func(i *instance) bool {
		return i.awaits && g.known > 0 && !slices.ContainsFunc(before, func(e endpoint) bool { return e.name == i.name() && e.of == i.id.key })
	}
	for _, w := range g.winners(address, keptBack) {
		list = append(list, endpoint{w.name(), w.id.key, w.main.endpoint().hostname, g.specOf(w)})
	}
	return list
}

// specOf makes the endpoint of an instance.
func (g *Group) specOf(i winner) model.Endpoint {
	e := i.main.endpoint()
	spec := model.Endpoint{Address: i.address, Locality: localityOf(e, g.places), Network: g.cluster.Network, Node: e.node, Health: i.health}
	if i.also != "" {
		spec.Also = model.ListOf(i.also)
	}
	spec.Ports, spec.Exact = g.portsOf(i.ports)
	if i.health == model.Draining && g.ready == 0 {
		spec.Health = model.Healthy // no other endpoint serves
	}
	labels := model.Labels{}
	if pod, known := g.places.Pod(Name{g.name.Namespace, e.pod}); known && pod.UID == e.uid {
		labels, spec.ServiceAccount = pod.Labels, pod.Account
		if network, _ := labels.Get(networkLabel); network != "" {
			spec.Network = network
		}
	}
	spec.Labels = g.cluster.mark(labels)
	return spec
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

// portsOf returns the numbers at which an endpoint serves the Service's ports. Numbers
// equal to the Service's are left out, unless some ports are not served.
func (g *Group) portsOf(all map[string]uint32) (ports model.Map[uint32], exact bool) {
	other := map[string]uint32{}
	for port := range g.service.Spec.Ports.All() {
		number, has := all[port.Name]
		switch {
		case !has:
			return model.MapOf(all), true
		case number != target(port) || port.TargetName != "":
			other[port.Name] = number
		}
	}
	return model.MapOf(other), false
}

// serves reports whether an endpoint serves any port of the Service.
func (g *Group) serves(in *portList) bool {
	for port := range g.service.Spec.Ports.All() {
		if _, has := g.numberOf(in, port); has {
			return true
		}
	}
	return false
}

// numberOf returns the number at which an endpoint serves a port. Slices know ports by name
// alone: a port of another number is the same.
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

// An endpoint of a headless Service may have a host name, as the pods of a StatefulSet
// have. The cluster's DNS resolves it below the name of the Service. Each is therefore a
// host of its own, with the ports of the Service.

// rename records the host names of an address, and adds its old and new ones to hosts.
func (g *Group) rename(address string, hosts map[string]struct{}) {
	for _, host := range g.names[address] {
		hosts[host] = struct{}{}
		delete(g.named[host], address)
	}
	delete(g.names, address)
	if g.service == nil || !g.service.Spec.Traffic.Headless {
		return
	}
	for _, e := range g.records[address] {
		if e.host == "" {
			continue
		}
		if g.named[e.host] == nil {
			g.named[e.host] = map[string]struct{}{}
		}
		g.named[e.host][address] = struct{}{}
		g.names[address] = append(g.names[address], e.host)
		hosts[e.host] = struct{}{}
	}
}

// takeNamed takes the objects of some host names.
func (g *Group) takeNamed(hosts map[string]struct{}, change *Change) {
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if len(g.named[host]) == 0 {
			delete(g.named, host)
			change.Deletes = append(change.Deletes, g.hostRef(host))
			continue
		}
		change.Upserts = append(change.Upserts, g.hostObject(host))
	}
}

func (g *Group) hostRef(host string) model.Ref {
	ref := g.name.Ref()
	ref.Name += ":" + host
	return ref
}

func (g *Group) hostObject(host string) model.Object {
	spec := g.service.Spec
	spec.Hosts = model.ListOf(host + "." + g.cluster.Host(g.name))
	object := model.Object{Record: model.Record{Ref: g.hostRef(host), Place: Place, Spec: spec}}
	for _, address := range slices.Sorted(maps.Keys(g.named[host])) {
		for _, e := range g.records[address] {
			if e.host == host {
				object.Owned = append(object.Owned, record(g.hostRef(host), e))
			}
		}
	}
	return object
}

// Owner returns the name of the Service that a stored record belongs to. It is the name of
// no Service if the record belongs to none.
func Owner(r model.Record) Name {
	name, _ := strings.CutPrefix(r.Owner.Name, Name{}.Ref().Name)
	return Name{r.Owner.Namespace, name}
}

// Recall returns the pod and the node of a stored endpoint of the group, with the
// attributes stored in it. The pod has a UID, and the node a name, only if the same address
// serves the same ports on the same node as it did then.
func (g *Group) Recall(r model.Record) (pod Pod, node Node) {
	spec, is := r.Spec.(model.Endpoint)
	if !is {
		return pod, node
	}
	for _, i := range g.winners(spec.Address, func(*instance) bool { return false }) {
		e := i.main.endpoint()
		if r.Name != g.name.Ref().Name+"/"+i.name() || e.node != spec.Node {
			continue
		}
		node = Node{e.node, spec.Locality}
		if e.pod != "" {
			pod = Pod{Name{g.name.Namespace, e.pod}, e.uid, spec.ServiceAccount, spec.Labels}
		}
	}
	return pod, node
}
