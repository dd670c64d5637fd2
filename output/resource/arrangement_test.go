package resource_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	mcpapi "istio.io/api/mcp/v1alpha1"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// party is one of several Isthmuses that read each other: all of it but the network.
type party struct {
	name       string
	reads      []*party
	builder    *catalog.Builder
	translator *resource.Translator
	row        world.Row
	world      world.World
	stored     map[string]map[model.Ref]model.Record // by source
	registered map[string]offer                      // in its own registry, by host
	revision   uint64
}

// offer is what a registry says of a host.
type offer struct {
	ports     []uint32
	addresses []string
}

func newParty(t *rapid.T, name string, others int) *party {
	order := []string{"own"}
	for i := range others {
		order = append(order, fmt.Sprintf("p%d", i))
	}
	p := &party{
		name: name, stored: map[string]map[model.Ref]model.Record{}, registered: map[string]offer{},
		builder:    catalog.NewBuilder(rapid.Permutation(order).Draw(t, "order of "+name)),
		translator: resource.NewTranslator(resource.Collections(), resource.Options{Self: name}),
	}
	collection := rapid.SampledFrom([]string{entries, mcp.Synthetic}).Draw(t, "collection")
	p.row = world.Row(slices.IndexFunc(resource.Collections(), func(r resource.Type) bool { return r.Name == collection }))
	p.world = p.translator.Step(p.builder.Snapshot(), catalog.Change{}, true, "").World
	return p
}

// take stores the objects that a source lists, and reports whether that changes anything.
func (p *party) take(source string, objects []model.Record) (changed bool) {
	now := map[model.Ref]model.Record{}
	for _, r := range objects {
		r.Source, r.Owner.Source = source, source
		if r.Kind == model.KindService {
			r.Owner = model.Ref{}
		}
		now[r.Ref] = r
	}
	var events []model.Event
	for ref, was := range p.stored[source] {
		if _, stays := now[ref]; !stays {
			events = append(events, model.Delete{Record: was})
		}
	}
	for ref, is := range now {
		if was, known := p.stored[source][ref]; !known || !was.SameContent(is) {
			events = append(events, model.Upsert{Record: is})
		}
	}
	if len(events) == 0 {
		return false
	}
	p.stored[source] = now
	p.revision++
	change := p.builder.Apply(p.revision, events)
	p.world = p.translator.Step(p.builder.Snapshot(), change, true, "").World
	return true
}

// read takes all that another party serves.
func (p *party) read(t *rapid.T, from *party) (changed bool) {
	var objects []model.Record
	view := from.world.View(from.row, world.Client{})
	for name := range from.world.Names(view, from.row) {
		subject, ok := from.world.Find(view, from.row, name)
		if !ok {
			continue
		}
		var r mcpapi.Resource
		if err := proto.Unmarshal(subject.Encode().Body, &r); err != nil {
			t.Fatal(err)
		}
		row, _ := istio.ByName("ServiceEntry")
		reading := istio.FromResource(row, &r)
		reading.WithoutEchoes(p.name)
		switch {
		case reading.Echoed:
		case !reading.Valid():
			t.Fatalf("%s takes %s of %s for invalid: %v\n%v", p.name, name, from.name, reading.Problems, &r)
		default:
			listed := reading.Listed(name)
			objects = append(append(objects, listed.Record), listed.Owned...)
		}
	}
	return p.take(from.name, objects)
}

// register has the own registry say something else.
func (p *party) register() {
	var objects []model.Record
	for _, host := range slices.Sorted(maps.Keys(p.registered)) {
		o := p.registered[host]
		r := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: strings.TrimSuffix(host, ".example")}}}
		var ports []model.Port
		for _, number := range o.ports {
			ports = append(ports, model.Port{Number: number, Name: fmt.Sprintf("tcp-%d", number), Protocol: "TCP"})
		}
		r.Spec = model.Service{Hosts: model.ListOf(host), Ports: model.ListOf(ports...), Location: model.MeshInternal, Resolution: model.ResolutionStatic}
		objects = append(objects, r)
		for _, address := range o.addresses {
			e := model.Record{Ref: r.Ref, Owner: r.Ref, Spec: model.Endpoint{Address: address}}
			e.Kind, e.Name = model.KindEndpoint, r.Name+"/"+address
			objects = append(objects, e)
		}
	}
	p.take("own", objects)
}

// sees lists what a snapshot has: "x.example:80 10.0.0.1".
func (p *party) sees() (list []string) {
	for service := range p.builder.Snapshot().Services() {
		for _, port := range service.Ports {
			list = append(list, fmt.Sprintf("%s:%d", service.Key.Host, port.Number))
			for e := range service.Endpoints(port.Number).All() {
				list = append(list, fmt.Sprintf("%s:%d %s", service.Key.Host, port.Number, e.Address))
			}
		}
	}
	slices.Sort(list)
	return list
}

// should is what it sees if it has what the registries of all say that it reads, directly or not.
func (p *party) should() []string {
	all := map[string]bool{}
	reached := []*party{p}
	for i := 0; i < len(reached); i++ {
		for host, o := range reached[i].registered {
			for _, port := range o.ports {
				all[fmt.Sprintf("%s:%d", host, port)] = true
				for _, address := range o.addresses {
					all[fmt.Sprintf("%s:%d %s", host, port, address)] = true
				}
			}
		}
		for _, next := range reached[i].reads {
			if !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// In any arrangement of Isthmuses that read each other, whatever their registries do and in
// whatever order they learn of it, all come to rest, and then each has exactly what the
// registries say. A path has an end, so that is soon.
func TestAnyArrangementEndsWithWhatTheRegistriesSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(2, 4).Draw(t, "parties")
		var all []*party
		for i := range count {
			all = append(all, newParty(t, fmt.Sprintf("p%d", i), count))
		}
		for i, p := range all {
			for j, other := range all {
				if i != j && rapid.IntRange(0, 3).Draw(t, "reads") > 0 {
					p.reads = append(p.reads, other)
				}
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			changeSomething(t, all)
			for range rapid.IntRange(0, 4).Draw(t, "read before the next") {
				readSomething(t, all)
			}
		}
		rests := func() bool {
			for _, p := range all {
				for _, other := range p.reads {
					if p.read(t, other) {
						return false
					}
				}
			}
			return true
		}
		for rounds := 0; !rests(); rounds++ {
			if rounds > 500 {
				t.Fatal("they never come to rest")
			}
			readSomething(t, all)
		}
		for _, p := range all {
			if got, want := p.sees(), p.should(); !slices.Equal(got, want) {
				t.Fatalf("%s has\n%q\nand the registries say\n%q", p.name, got, want)
			}
		}
	})
}

func changeSomething(t *rapid.T, all []*party) {
	p := all[rapid.IntRange(0, len(all)-1).Draw(t, "whose registry")]
	host := rapid.SampledFrom([]string{"x.example", "y.example"}).Draw(t, "host")
	if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
		delete(p.registered, host)
	} else {
		p.registered[host] = offer{
			ports:     rapid.SampledFrom([][]uint32{{80}, {81}, {80, 81}}).Draw(t, "ports"),
			addresses: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}), 0, 2, rapid.ID).Draw(t, "addresses"),
		}
	}
	p.register()
}

func readSomething(t *rapid.T, all []*party) {
	p := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
	if len(p.reads) > 0 {
		p.read(t, p.reads[rapid.IntRange(0, len(p.reads)-1).Draw(t, "whom")])
	}
}
