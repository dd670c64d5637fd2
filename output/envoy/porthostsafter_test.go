package envoy

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
)

// What is made of an index from the one before, of which only some runs are looked at, is
// what would be made of it anew.
func TestHostsOfAPortFollowTheirChanges(t *testing.T) {
	names := hostsOfSeveralRuns()
	rapid.Check(t, func(t *rapid.T) {
		builder, v := catalog.NewBuilderIn(ruled), View{proxy: node.Proxy{Domain: "cluster.local"}}
		for revision := range rapid.IntRange(1, 12).Draw(t, "steps") {
			var events []model.Event
			for range rapid.IntRange(1, 6).Draw(t, "events") {
				events = append(events, drawNeighbour(t, names))
			}
			builder.Apply(uint64(revision)+1, events)
			index := builder.Snapshot().Port(80)
			if index == nil || rapid.IntRange(0, 3).Draw(t, "not asked for") == 0 {
				continue
			}
			got, want := vhost.Of(index, v.hostsIn()), vhost.NewPort(index, vhost.Key{Domain: "cluster.local"}, nil)
			if got, want := shapeOf(got), shapeOf(want); !slices.Equal(got, want) {
				t.Fatalf("got\n%v\nwant\n%v", got, want)
			}
		}
	})
}

// hostsOfSeveralRuns are names, some of which begin a run.
func hostsOfSeveralRuns() (names []string) {
	for i, begin := 0, 0; begin < 5; i++ {
		name := fmt.Sprintf("host-%03d", i)
		if vhost.Begins(name + ".n.svc.cluster.local") {
			begin++
		} else if i%16 != 0 {
			continue
		}
		names = append(names, name)
	}
	return names
}

// drawNeighbour is a service that comes, changes or goes. Some share an address, and some
// the short name of another.
func drawNeighbour(t *rapid.T, names []string) model.Event {
	host := rapid.SampledFrom(names).Draw(t, "name")
	if rapid.IntRange(0, 3).Draw(t, "short") > 0 {
		host += ".n.svc.cluster.local"
	} else {
		host += ".n"
	}
	namespace := rapid.SampledFrom([]string{"n", "n", "m"}).Draw(t, "namespace")
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: host}}
	if rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
		return model.Delete{Record: model.Record{Ref: ref}}
	}
	return model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
		Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
		Addresses: model.ListOf(fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 200).Draw(t, "address")/20)),
		Ports:     model.ListOf(model.Port{Number: 80, Name: "it", Protocol: rapid.SampledFrom([]string{"HTTP", "HTTP", "TCP"}).Draw(t, "protocol")}),
	}}}
}

// shapeOf is the services of each run, with whether another service asks for a domain of
// theirs, and the requested domains.
func shapeOf(a *vhost.Port) (list []string) {
	for _, r := range a.Runs {
		list = append(list, fmt.Sprintf("run, plain %t, homes %d", r.Plain, len(r.Homes)))
		for _, m := range r.Members {
			list = append(list, fmt.Sprintf("%v at %p: host %t, contested %t", m.Key, m.Definition, m.Host != nil, m.Host != nil && m.Host.Contested))
		}
	}
	for c, h := range a.Claims.All() {
		list = append(list, fmt.Sprintf("%s %t %s by %v at %p: %t", c.Domain, c.Own, c.Home, c.By.Key, h.Definition, h.Contested))
	}
	return list
}
