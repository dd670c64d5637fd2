package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// drawService draws the records of one service, of up to two sources, with
// whatever ports and endpoints registries come up with.
func drawService(t *rapid.T) []model.Event {
	var events []model.Event
	resolution := rapid.SampledFrom([]model.Resolution{model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS, model.ResolutionDNSRoundRobin}).Draw(t, "resolution")
	for _, source := range []string{"first", "second"}[:rapid.IntRange(1, 2).Draw(t, "sources")] {
		ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: "x"}}
		var ports []model.Port
		for _, number := range rapid.SliceOfNDistinct(rapid.Uint32Range(80, 84), 1, 4, rapid.ID).Draw(t, "ports") {
			p := model.Port{Number: number, Name: fmt.Sprintf("%c", 'a'+number%3), Protocol: "TCP"}
			if slices.ContainsFunc(ports, func(o model.Port) bool { return o.Name == p.Name }) {
				p.Name = fmt.Sprintf("p%d", number) // unique within a record
			}
			if rapid.Bool().Draw(t, "has target") {
				p.TargetPort = 8000 + number
			}
			ports = append(ports, p)
		}
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
			Hosts: model.ListOf("x.example.com"), Ports: model.ListOf(ports...), Location: model.MeshInternal, Resolution: resolution,
		}}})
		for i := range rapid.IntRange(0, 12).Draw(t, "endpoints") {
			owned := ref
			owned.Kind, owned.Name = model.KindEndpoint, fmt.Sprintf("x/%d", i)
			events = append(events, model.Upsert{Record: model.Record{Ref: owned, Owner: ref, Spec: drawEndpoint(t, ports)}})
		}
	}
	return events
}

func drawEndpoint(t *rapid.T, ports []model.Port) model.Endpoint {
	e := model.Endpoint{
		Address: rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "fd00::1", "a.example.com", "unix:///run/x"}).Draw(t, "address"),
		Exact:   rapid.Bool().Draw(t, "exact"),
		Health:  rapid.SampledFrom([]model.Health{model.Healthy, model.Healthy, model.Healthy, model.Unhealthy}).Draw(t, "health"),
		Weight:  rapid.Uint32Range(0, 2).Draw(t, "weight"),
		Labels:  model.MapOf(map[string]string{"app": rapid.SampledFrom([]string{"x", "a b", ""}).Draw(t, "label")}),
	}
	own := map[string]uint32{}
	for _, p := range ports {
		if rapid.Bool().Draw(t, "own port") {
			own[p.Name] = rapid.Uint32Range(9000, 9002).Draw(t, "port")
		}
	}
	e.Ports = model.MapOf(own)
	return e
}

// serving tells who serves which port of a service, as far as it can be written.
func serving(s *catalog.Service, of *catalog.Service) map[string]string {
	who := map[string]string{}
	if s == nil {
		return who
	}
	for _, port := range s.Ports {
		for e := range s.Endpoints(port.Number).All() {
			if unfit(of, e) == "" {
				who[fmt.Sprintf("%d → %s:%d", port.Number, e.Address, e.Port)] = fmt.Sprint(e.Weight)
			}
		}
	}
	return who
}

// What is written says of every port just who serves it: Istio takes all of it,
// and whoever reads it back finds the same endpoints, at the same ports, with
// the same weight. So it is for any number of objects a service has had before, in
// either form.
func TestNothingIsLostInWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := drawLayout(t)
		builder := catalog.NewBuilder([]string{"first", "second"})
		builder.Apply(1, drawService(t))
		key := catalog.ServiceKey{Namespace: "shop", Host: "x.example.com"}
		service, _ := builder.Snapshot().Service(key)
		existing := rapid.IntRange(0, 5).Draw(t, "existing")
		layout.Exists = func(string) bool { existing--; return existing >= 0 }
		written := FromService(service, layout)
		manifests, events := readBack(t, written)
		again := catalog.NewBuilder([]string{"back"})
		again.Apply(1, events)
		back, _ := again.Snapshot().Service(key)
		want, got := serving(service, service), serving(back, service)
		if service.Resolution == model.ResolutionDNSRoundRobin {
			checkRobin(t, want, got)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("who serves what (-catalog +written):\n%s\n%s", diff, manifests)
		}
	})
}

// checkRobin: of each port one endpoint is written, and none that is not there.
func checkRobin(t *rapid.T, want, got map[string]string) {
	perPort := map[string]int{}
	for who := range maps.Keys(got) {
		if _, ok := want[who]; !ok {
			t.Fatalf("%s is written and nobody said so", who)
		}
		port, _, _ := strings.Cut(who, " ")
		if perPort[port]++; perPort[port] > 1 {
			t.Fatalf("port %s has several endpoints", port)
		}
	}
	if len(want) > 0 && len(got) == 0 {
		t.Fatal("nothing is written")
	}
}
