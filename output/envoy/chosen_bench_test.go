package envoy

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// BenchmarkOneInstanceMore is a service without an address that has one instance more, and one less,
// among so many of 9 instances each, all at one port: the step, and the look-up of the changed
// resources for one sidecar. It is to grow with the services only where a service asks for more listeners of a crowded
// port, which its 11th instance does.
func BenchmarkOneInstanceMore(b *testing.B) {
	for _, outbound := range []string{policy.New().Outbound, policy.RegistryOutbound} {
		for _, services := range []int{10, 100, 1000} {
			for _, instances := range []int{9, 10} {
				b.Run(fmt.Sprintf("%s/%d services/%d instances", outbound, services, instances), func(b *testing.B) {
					oneInstanceMore(b, outbound, services, instances)
				})
			}
		}
	}
}

func oneInstanceMore(b *testing.B, outbound string, services, instances int) {
	b.Helper()
	settings := policy.New()
	settings.Outbound = outbound
	prepared, builder := settings.Prepare(), catalog.NewBuilder(nil)
	builder.Apply(1, highways(services))
	for i := range instances {
		builder.Apply(1, []model.Event{model.Upsert{Record: highwayInstance(3, i)}})
	}
	client := world.Client{Kind: reach.KindEnvoy, Namespace: "n", Proxy: world.Proxy{Role: "sidecar"}, Addresses: []string{"10.250.0.1"}}
	b.ReportAllocs()
	for at := uint64(2); b.Loop(); at++ {
		var event model.Event = model.Upsert{Record: highwayInstance(3, instances)}
		if at%2 == 1 {
			event = model.Delete{Record: highwayInstance(3, instances)}
		}
		change := builder.Apply(at, []model.Event{event})
		step, views := stepOf(prepared, builder.Snapshot(), change, true, "root", nil), map[world.Row]world.View{}
		for _, c := range step.Changed {
			if views[c.Row] == nil {
				views[c.Row] = step.World.View(c.Row, client)
			}
			step.World.Find(views[c.Row], c.Row, c.Name)
		}
	}
}

// highways are services without addresses, with 9 instances each at one port.
func highways(n int) (events []model.Event) {
	for of := range n {
		events = append(events, model.Upsert{Record: model.Record{Ref: highwayInstance(of, 0).Owner, Spec: model.Service{
			Hosts: model.ListOf(fmt.Sprintf("s-%d.example", of)), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 7070, Name: "highway", Protocol: "TCP"}),
		}}})
		for i := range 9 {
			events = append(events, model.Upsert{Record: highwayInstance(of, i)})
		}
	}
	return events
}

func highwayInstance(service, n int) model.Record {
	return model.Record{
		Ref:   model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "s", Namespace: "n", Name: fmt.Sprint(service, "/", n)}},
		Owner: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "n", Name: strconv.Itoa(service)}},
		Spec:  model.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", service/250, service%250, 1+n)},
	}
}
