package kubernetes

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

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

func (g *Group) hostObject(host string) source.Object {
	spec := g.service.Spec
	spec.Hosts = model.ListOf(host + "." + g.cluster.Host(g.name))
	object := source.Object{Record: model.Record{Ref: g.hostRef(host), Place: Place, Spec: spec}}
	for _, address := range slices.Sorted(maps.Keys(g.named[host])) {
		for _, e := range g.records[address] {
			if e.host == host {
				object.Owned = append(object.Owned, record(g.hostRef(host), e))
			}
		}
	}
	return object
}
