package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// headless is a headless service with endpoints at some addresses.
func headless(host string, port model.Port, addresses ...string) []model.Event {
	key := model.Key{Source: "first", Namespace: "a", Name: host}
	s := model.Service{
		Meta: model.Meta{Created: time.Unix(1e9, 0)}, Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
		Ports: model.ListOf(port), Traffic: model.Traffic{Headless: true},
	}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Spec: s}}}
	for _, address := range addresses {
		at := key
		at.Name += "/" + address
		e := model.Endpoint{Address: address}
		if strings.HasSuffix(address, ".2") {
			e.Also = model.ListOf("fd00::2")
		}
		events = append(events, model.Upsert{Record: owned(model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: at}, Spec: e})})
	}
	return events
}

var (
	database  = model.Port{Number: 5432, Name: "tcp", Protocol: "TCP"}
	unspoken  = model.Port{Number: 5432, Name: "any"}
	requested = model.Port{Number: 5432, Name: "http", Protocol: "HTTP"}
)

// leading is where the outbound listeners of a client lead, by their names.
func leading(t *testing.T, w *World, c world.Client) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name := range w.Names(w.View(ListenerType, c), ListenerType) {
		m := &listenerv3.Listener{}
		if !readInto(t, w, ListenerType, c, name, m) {
			t.Fatalf("%s is named and not found", name)
		}
		if name != names.VirtualOutbound && name != names.VirtualInbound {
			found[name] = strings.Join(append(reachedThrough(m, wire.RouteURL), reachedThrough(m, wire.ClusterURL)...), " ")
		}
	}
	return found
}

func mustLead(t *testing.T, w *World, c world.Client, want map[string]string) {
	t.Helper()
	if diff := gocmp.Diff(want, leading(t, w, c)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each pod has a listener, at its own address and port, which leads to the service and not to those
// of its pods, nor to another one of that port. There is none for all other addresses.
func TestPodsOfHeadlessServicesHaveListeners(t *testing.T) {
	t.Parallel()
	w := worldOf([]string{"first"}, slices.Concat(
		headless("zk-0.zk.example", database, "10.0.0.1"), headless("zk.example", database, "10.0.0.1", "10.0.0.2"), headless("db.example", unspoken, "10.0.0.3"),
	)...)
	zk, db := "outbound|5432||zk.example", "outbound|5432||db.example"
	mustLead(t, w, sidecarAt("10.9.9.9"), map[string]string{
		"10.0.0.1_5432": zk, "10.0.0.2_5432": zk, "10.0.0.3_5432": db,
	})
	mustLead(t, w, sidecarAt("fd00::9"), map[string]string{"fd00::2_5432": zk})
	mustLead(t, worldOf([]string{"first"}, headless("web.example", requested, "10.0.0.1")...), sidecarAt("10.9.9.9"),
		map[string]string{"0.0.0.0_5432": "5432 " + names.Passthrough})
	alone := sidecarAt("10.9.9.9")
	alone.Proxy.Interception, alone.Proxy.Outbound = "NONE", world.AllPorts()
	mustLead(t, w, alone, map[string]string{"127.0.0.1_5432": "5432 " + db})
}

// A service that has the address of an endpoint as its own has the connections there.
func TestAddressesOfServicesGoBeforeThoseOfPods(t *testing.T) {
	t.Parallel()
	of := headless("vip.example", database)
	up, _ := of[0].(model.Upsert)
	spec, _ := up.Record.Spec.(model.Service)
	spec.Addresses, spec.Traffic = model.ListOf("10.0.0.1"), model.Traffic{}
	up.Record.Spec = spec
	w := worldOf([]string{"first"}, append(headless("zk.example", database, "10.0.0.1"), up)...)
	mustLead(t, w, sidecarAt("10.9.9.9"), map[string]string{"10.0.0.1_5432": "outbound|5432||vip.example"})
}

// The cluster of a headless service leads sidecars to where a connection was going. All
// others, and requests, choose among the endpoints.
func TestClustersOfHeadlessServicesFollowConnections(t *testing.T) {
	t.Parallel()
	alone, transparent := sidecarAt("10.9.9.9"), sidecarAt("10.9.9.9")
	alone.Proxy.Interception, transparent.Proxy.Interception = "NONE", "TPROXY"
	for name, test := range map[string]struct {
		port   model.Port
		client world.Client
		want   clusterv3.Cluster_DiscoveryType
	}{
		"TCP of a sidecar":        {database, sidecarAt("10.9.9.9"), clusterv3.Cluster_ORIGINAL_DST},
		"TCP with TPROXY":         {database, transparent, clusterv3.Cluster_ORIGINAL_DST},
		"no protocol":             {unspoken, sidecarAt("10.9.9.9"), clusterv3.Cluster_ORIGINAL_DST},
		"TLS":                     {model.Port{Number: 5432, Name: "tls", Protocol: "TLS"}, sidecarAt("10.9.9.9"), clusterv3.Cluster_ORIGINAL_DST},
		"HTTP":                    {requested, sidecarAt("10.9.9.9"), clusterv3.Cluster_EDS},
		"TCP without redirection": {database, alone, clusterv3.Cluster_EDS},
		"TCP of an edge":          {database, world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "router"}}, clusterv3.Cluster_EDS},
		"TCP of any other Envoy":  {database, world.Client{Kind: reach.KindEnvoy, Namespace: "a"}, clusterv3.Cluster_EDS},
		"TCP of a client of gRPC": {database, world.Client{Kind: reach.KindGRPC, Namespace: "a"}, clusterv3.Cluster_EDS},
		"TCP with a target port":  {model.Port{Number: 5432, Name: "tcp", Protocol: "TCP", TargetPort: 6000}, sidecarAt("10.9.9.9"), clusterv3.Cluster_ORIGINAL_DST},
	} {
		for _, n := range []int{0, 2, catalog.MostInstances + 1} { // which does not matter
			w := worldOf([]string{"first"}, headless("zk.example", test.port, manyAddresses(n)...)...)
			m := &clusterv3.Cluster{}
			if !readInto(t, w, ClusterType, test.client, "outbound|5432||zk.example", m) {
				t.Fatalf("%s: there is no cluster", name)
			}
			if m.GetType() != test.want {
				t.Errorf("%s, with %d endpoints: the cluster is %s", name, n, m.GetType())
			}
			if at := m.GetOriginalDstLbConfig().GetUpstreamPortOverride(); at != nil {
				t.Errorf("%s: connections go to port %d, and not where they were made to", name, at.GetValue())
			}
		}
	}
}

func manyAddresses(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.%d.%d", 1+i/200, 10+i%200))
	}
	return list
}

// A pod that comes or goes concerns its own listener and the assignments, and a pod that
// is not ready no listener at all.
func TestAPodChangesItsOwnListener(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"first"})
	builder.Apply(1, slices.Concat(headless("zk.example", database, "10.0.0.1", "10.0.0.3"), headless("db.example", database, "10.0.0.4")))
	pod := headless("zk.example", database, "10.0.0.5")[1]
	sick, _ := pod.(model.Upsert)
	sick.Record.Spec = model.Endpoint{Address: "10.0.0.5", Health: model.Unhealthy}
	for revision, step := range []struct {
		event model.Event
		want  []string
	}{
		{pod, []string{"10.0.0.5_5432", "outbound|5432||zk.example"}},
		{sick, []string{"outbound|5432||zk.example"}},
		{model.Delete{Record: sick.Record}, []string{"10.0.0.5_5432", "outbound|5432||zk.example"}},
	} {
		change := builder.Apply(uint64(revision+2), []model.Event{step.event})
		var got []string
		for _, c := range Changes(builder.Snapshot(), change) {
			got = append(got, c.Name)
		}
		slices.Sort(got)
		if diff := gocmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: -want +got:\n%s", revision, diff)
		}
	}
}

// An Envoy listens at so many instances of a port at most: at those of the services that come first
// and fit. Whatever differs when a service is crowded out is among the changes.
func TestCrowdedPortsHaveTheListenersOfTheFirst(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"first"})
	builder.Apply(1, slices.Concat(
		headless("zk.example", database, manyAddresses(200)...), headless("db.example", database, "10.9.0.1", "10.9.0.3"), headless("a.example", database, manyAddresses(40)...),
	))
	client := sidecarAt("10.9.9.9")
	before := leading(t, NewWorld(builder.Snapshot(), true, "root"), client)
	if len(before) != 202 { // 40 are instances of two services
		t.Fatalf("there are %d listeners", len(before))
	}
	more := headless("db.example", database, at("10.8.0.", 1, 9)...)[1:]
	change := builder.Apply(2, more)
	after := leading(t, NewWorld(builder.Snapshot(), true, "root"), client)
	if len(after) != 40+2+9 {
		t.Errorf("there are %d listeners at a crowded port, want those of a.example and db.example", len(after))
	}
	mustName(t, Changes(builder.Snapshot(), change), before, after)
	up, _ := more[0].(model.Upsert)
	back := builder.Apply(3, []model.Event{model.Delete{Record: up.Record}})
	mustName(t, Changes(builder.Snapshot(), back), after, before)
}

// at lists addresses with a prefix.
func at(prefix string, from, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, from+i))
	}
	return list
}

// mustName has the changes be those in which listeners differ, and more if need be.
func mustName(t *testing.T, changes []world.Changed, before, after map[string]string) {
	t.Helper()
	named := map[string]bool{}
	for _, c := range changes {
		named[c.Name] = named[c.Name] || c.Row == ListenerType
	}
	for name := range maps.Keys(before) {
		if after[name] != before[name] && !named[name] {
			t.Errorf("%s goes, and no change says so", name)
		}
	}
	for name := range maps.Keys(after) {
		if after[name] != before[name] && !named[name] {
			t.Errorf("%s comes, and no change says so", name)
		}
	}
}

// A name whose connections go to chosen pods is for the nameservers to answer.
func TestLookupsOfHeadlessServicesAreLeftToNameservers(t *testing.T) {
	t.Parallel()
	builder, step := catalog.NewBuilder([]string{"first"}), answeringSettings().Begin(nil)
	other := requested
	other.Number = 80
	change := builder.Apply(1, slices.Concat(
		headless("zk.example", database, "10.0.0.1"), headless("all.example", model.Port{Number: 9000, Name: "tcp", Protocol: "TCP"}, manyAddresses(catalog.MostInstances+1)...),
		headless("web.example", other, "10.0.0.2"),
	))
	got, _ := answersTo(t, step(builder.Snapshot(), change, true, "root").World, sidecarAt("10.9.9.9"))
	if _, answered := got["web.example"]; len(got) == 0 || !answered || got["zk.example"] != nil || got["all.example"] != nil {
		t.Errorf("lookups are answered %v", got)
	}
}

// Headless services of one port take nothing from each other.
func TestHeadlessServicesDoNotConflict(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"first"})
	builder.Apply(1, slices.Concat(headless("zk.example", database, "10.0.0.1"), headless("db.example", database, "10.0.0.2"), headless("any.example", unspoken, "10.0.0.3")))
	if said := conflictsSaid(builder.Snapshot(), NewTranslator()); len(said) > 0 {
		t.Errorf("there are conflicts:\n%s", strings.Join(said, "\n"))
	}
}
