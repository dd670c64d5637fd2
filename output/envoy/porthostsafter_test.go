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

// The virtual hosts of a port that follow from those before a change are those that are
// made anew, for viewers of any namespace.
func TestHostsOfAPortFollowTheirChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder, v := catalog.NewBuilderIn(ruled), View{proxy: node.Proxy{Domain: "cluster.local"}}
		for revision := range rapid.IntRange(1, 12).Draw(t, "steps") {
			var events []model.Event
			for range rapid.IntRange(1, 6).Draw(t, "events") {
				events = append(events, drawNeighbour(t))
			}
			builder.Apply(uint64(revision)+1, events)
			index := builder.Snapshot().Port(80)
			if index == nil || rapid.IntRange(0, 3).Draw(t, "not asked for") == 0 {
				continue
			}
			got, want := vhost.Of(index, v.hostsIn()), vhost.NewPort(index, vhost.Key{Domain: "cluster.local"})
			if got, want := candidatesOf(got), candidatesOf(want); !slices.Equal(got, want) {
				t.Fatalf("got\n%v\nwant\n%v", got, want)
			}
			for _, namespace := range rapid.SliceOf(rapid.SampledFrom([]string{"", "n", "m", "other"})).Draw(t, "viewers") {
				viewer := catalog.Viewer{Namespace: namespace}
				if got, want := contentOf(got.SeenBy(viewer)), contentOf(want.SeenBy(viewer)); !slices.Equal(got, want) {
					t.Fatalf("seen from %q, got\n%q\nwant\n%q", namespace, got, want)
				}
			}
		}
	})
}

// drawNeighbour is a service that comes, changes or goes. Some share an address, and some
// the short name of another.
func drawNeighbour(t *rapid.T) model.Event {
	host := fmt.Sprintf("host-%d", rapid.IntRange(0, 15).Draw(t, "name")) +
		rapid.SampledFrom([]string{".n.svc.cluster.local", ".n.svc.cluster.local", ".m.svc.cluster.local", ".n"}).Draw(t, "domain")
	namespace := rapid.SampledFrom([]string{"n", "n", "m"}).Draw(t, "namespace")
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: host}}
	if rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
		return model.Delete{Record: model.Record{Ref: ref}}
	}
	return model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
		Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
		Addresses: model.ListOf(fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 100).Draw(t, "address"))),
		Ports:     model.ListOf(model.Port{Number: 80, Name: "it", Protocol: rapid.SampledFrom([]string{"HTTP", "HTTP", "HTTP", "TCP"}).Draw(t, "protocol")}),
		ExportTo:  model.ListOf(rapid.SampledFrom([][]string{nil, nil, nil, nil, {"*"}, {"."}}).Draw(t, "exported")...),
	}}}
}

// candidatesOf lists the candidates for each domain, and whether they conflict.
func candidatesOf(a *vhost.Port) (list []string) {
	for c, h := range a.Candidates.All() {
		list = append(list, fmt.Sprintf("%s %t %s by %v at %p: %t", c.Domain, c.Own, c.Home, c.By.Key, h.Definition, h.InConflict))
	}
	return list
}

// contentOf lists the pieces of routes, their length and their version.
func contentOf(p *vhost.Pieces) (list []string) {
	size := 0
	for piece := range p.All() {
		list = append(list, string(piece))
		size += len(piece)
	}
	return append(list, fmt.Sprintf("%d of %d bytes, %v", size, p.Size(), p.Sum))
}
