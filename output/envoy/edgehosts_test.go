package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// edgeIn is an edge of a namespace that takes hosts one by one, or not.
func edgeIn(namespace string, single bool) world.Client {
	c := world.Client{Kind: reach.KindEnvoy, Namespace: namespace, Proxy: world.Proxy{Role: "router"}, Increments: single}
	c.Release = [2]uint32{node.HostsFromMajor, node.HostsFromMinor}
	return c
}

// Whatever services come, go and change, an edge that applies the single hosts that a step
// names ends with the domains and clusters of the whole route configuration.
func TestSingleHostsOfTheEdgeFoldToItsRoutes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := NewTranslator()
		s.VHDS.From = 3
		s.Edge.Ports = []policy.EdgePort{
			{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}},
			{Number: 8443, Protocol: policy.EdgeTLS, Hosts: []string{"*"}},
			{Number: 80, Protocol: policy.EdgeHTTP, Hosts: []string{"a.com", "*.c.com"}}, // and not b.com
		}
		begin, builder := s.Begin(nil), catalog.NewBuilder([]string{"first", "second"})
		edges := map[string]map[string]world.Version{"a": {}, "b": {}, "c": {}}
		var leads string
		for n := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			var events []model.Event
			for range rapid.IntRange(1, 3).Draw(rt, "events") {
				events = append(events, drawAtEdge(rt))
			}
			change := builder.Apply(uint64(n+1), events)
			u := begin(builder.Snapshot(), change, true, "root")
			for namespace, held := range edges {
				applyHosts(u, edgeIn(namespace, true), held)
				if diff := gocmp.Diff(allHosts(u.World, edgeIn(namespace, true)), held); diff != "" {
					rt.Fatalf("after step %d an edge of %s holds (- should, + does):\n%s", n, namespace, diff)
				}
				for _, port := range []string{"8080", "80"} {
					whole, single := domainsOfRoutes(t, u.World, edgeIn(namespace, false), port), domainsOfHosts(t, u.World, edgeIn(namespace, true), port, held)
					if diff := gocmp.Diff(whole, single); diff != "" {
						rt.Fatalf("at port %s an edge of %s reaches (- whole, + one by one):\n%s", port, namespace, diff)
					}
				}
			}
			listener, ok := u.World.Find(u.World.View(ListenerType, edgeIn("a", true)), ListenerType, "0.0.0.0_8080")
			if !ok {
				rt.Fatal("the edge has no listener")
			}
			now := reachedThrough(message(t, listener.Encode().Joined().Body).(*listenerv3.Listener), wire.RouteURL)[0]
			moved := slices.ContainsFunc(u.Changed, func(c world.Changed) bool { return c.Row == ListenerType && c.Name == "0.0.0.0_8080" })
			if leads != "" && now != leads && !moved {
				rt.Fatalf("the listener leads to %s and no longer to %s, and the step does not name it", now, leads)
			}
			leads = now
		}
	})
}

func drawAtEdge(rt *rapid.T) model.Event {
	host := rapid.SampledFrom([]string{"a.com", "A.com", "a.com.", "b.com", "*.c.com"}).Draw(rt, "host")
	key := model.Key{
		Source: rapid.SampledFrom([]string{"first", "second"}).Draw(rt, "source"), Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"), Name: host,
	}
	ref := model.Ref{Kind: model.KindService, Key: key}
	if rapid.IntRange(0, 3).Draw(rt, "goes") == 0 {
		return model.Delete{Record: model.Record{Ref: ref}}
	}
	spec := model.Service{
		Hosts: model.ListOf(host), Resolution: rapid.SampledFrom([]model.Resolution{model.ResolutionStatic, model.ResolutionStatic, model.ResolutionNone}).Draw(rt, "resolution"),
		Meta: model.Meta{Created: time.Unix(1e9+rapid.Int64Range(0, 3).Draw(rt, "age"), 0)},
	}
	if to := rapid.SampledFrom([]string{"", "", ".", "*", "c", "~"}).Draw(rt, "exported"); to != "" {
		spec.ExportTo = model.ListOf(to)
	}
	var ports []model.Port
	for _, number := range []uint32{80, 8080, 9000} {
		if protocol := rapid.SampledFrom([]string{"no", "HTTP", "TCP", "", "TLS"}).Draw(rt, "protocol"); protocol != "no" {
			ports = append(ports, model.Port{Number: number, Name: fmt.Sprint("p", number), Protocol: protocol})
		}
	}
	spec.Ports = model.ListOf(ports...)
	return model.Upsert{Record: model.Record{Ref: ref, Spec: spec}}
}

// applyHosts looks up the single hosts that a step names to an edge.
func applyHosts(u world.Update, c world.Client, held map[string]world.Version) {
	for _, changed := range u.Changed {
		if changed.Row != VirtualHostType || changed.Audience != nil && !slices.Contains(changed.Audience, c.Namespace) {
			continue
		}
		delete(held, changed.Name)
		if subject, ok := u.World.Find(u.World.View(VirtualHostType, c), VirtualHostType, changed.Name); ok {
			held[changed.Name] = subject.Encode().Version
		}
	}
}

func allHosts(w world.World, c world.Client) map[string]world.Version {
	all, view := map[string]world.Version{}, w.View(VirtualHostType, c)
	for name := range w.Names(view, VirtualHostType) {
		subject, _ := w.Find(view, VirtualHostType, name)
		all[name] = subject.Encode().Version
	}
	return all
}

func domainsOfRoutes(t *testing.T, w world.World, c world.Client, port string) map[string]string {
	t.Helper()
	subject, ok := w.Find(w.View(RouteType, c), RouteType, "http."+port)
	if !ok {
		t.Fatalf("there are no routes of port %s", port)
	}
	domains := map[string]string{}
	for _, host := range message(t, subject.Encode().Joined().Body).(*routev3.RouteConfiguration).GetVirtualHosts() {
		addDomains(domains, host)
	}
	return domains
}

func domainsOfHosts(t *testing.T, w world.World, c world.Client, port string, held map[string]world.Version) map[string]string {
	t.Helper()
	domains := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if !strings.HasPrefix(name, "http."+port+".hosts/") {
			continue
		}
		subject, _ := w.Find(w.View(VirtualHostType, c), VirtualHostType, name)
		host := message(t, subject.Encode().Joined().Body).(*routev3.VirtualHost)
		if host.GetName() != name {
			t.Errorf("%s is named %s", name, host.GetName())
		}
		addDomains(domains, host)
	}
	return domains
}

func addDomains(to map[string]string, host *routev3.VirtualHost) {
	for _, domain := range host.GetDomains() {
		to[strings.ToLower(domain)] += host.GetRoutes()[0].GetRoute().GetCluster() + " "
	}
}
