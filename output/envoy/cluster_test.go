package envoy

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// What an Envoy says of itself changes the clusters of names that it resolves, and
// nothing else: all other resources are encoded once for all Envoys.
func TestOnlyClustersOfNamesDependOnTheResolver(t *testing.T) {
	t.Parallel()
	const name = "outbound|81||h"
	worldOf := func(r model.Resolution) *World {
		return worldOf(nil, record("a", "p", model.Service{Ports: model.ListOf(ports[3]), Resolution: r}), place1("a", "p", "10.0.0.1"))
	}
	w, named := worldOf(model.ResolutionStatic), worldOf(model.ResolutionDNS)
	clients := map[string]world.Client{
		"says nothing":  {},
		"IPv4":          {Addresses: []string{"10.1.0.1"}},
		"IPv6":          {Addresses: []string{"2001:db8::1"}},
		"both":          {Addresses: []string{"10.1.0.1", "2001:db8::1"}},
		"outdated IPv4": {Addresses: []string{"10.1.0.1"}},
	}
	views, slots := map[world.View]bool{}, map[any]bool{}
	for who, c := range clients {
		c.Kind, c.Namespace = reach.KindEnvoy, "a"
		if who != "outdated IPv4" {
			c.Extensions = []string{"some", names.DNSCluster}
		}
		v := w.View(ClusterType, c)
		views[v] = true
		common, _ := w.Find(v, ClusterType, name)
		if plain, _ := w.Find(View{Kind: reach.KindEnvoy, Namespace: "a"}, ClusterType, name); common == nil || common != plain {
			t.Errorf("%s: a cluster of addresses of its own: %v", who, common)
		}
		names, _ := named.Find(v, ClusterType, name)
		slots[names.Slot()] = true
		if v := w.View(EndpointType, c); v != (View{Kind: reach.KindEnvoy, Namespace: "a"}) {
			t.Errorf("%s: a view of assignments of its own: %v", who, v)
		}
	}
	if len(views) != len(clients) || len(slots) != len(clients) {
		t.Errorf("%d Envoys have %d views of clusters, with %d variants of one of names", len(clients), len(views), len(slots))
	}
	like := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Addresses: []string{"10.9.9.9", "10.8.8.8", "2001:db8::2"}, Extensions: []string{names.DNSCluster}}
	if !views[w.View(ClusterType, like)] {
		t.Error("an Envoy that resolves names as another does has a view of its own")
	}
}

// A change that concerns only Envoys changes no resource of gRPC.
func TestGRPCClustersDependOnWhatGRPCReads(t *testing.T) {
	t.Parallel()
	find := func(location model.Location, protocol string) world.Subject {
		port := ports[3]
		port.Protocol = protocol
		w := worldOf(nil, record("a", "p", model.Service{Ports: model.ListOf(port), Location: location}))
		subject, _ := w.Find(View{Kind: reach.KindGRPC, Namespace: "a"}, ClusterType, "outbound|81||h")
		return subject
	}
	if one, other := find(model.MeshInternal, "TCP"), find(model.MeshExternal, ""); one == nil || one != other {
		t.Errorf("%v and %v", one, other)
	}
}

// The metadata of a cluster says whether its service is in the mesh, so a service that
// leaves the mesh changes it.
func TestLocationIsAChangeOfTheCluster(t *testing.T) {
	t.Parallel()
	m := newMirror()
	put := func(location model.Location) world.Update {
		m.revision++
		change := m.builder.Apply(m.revision, []model.Event{record("a", "p", model.Service{
			Ports: model.ListOf(ports[3]), Location: location,
		})})
		return Step(m.builder.Snapshot(), change, true, "root")
	}
	put(model.MeshInternal)
	for _, changed := range put(model.MeshExternal).Changed {
		if changed.Row == ClusterType && changed.Name == "outbound|81||h" {
			return
		}
	}
	t.Error("the cluster is not among what changed")
}
