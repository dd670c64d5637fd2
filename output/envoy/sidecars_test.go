package envoy

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/pushtest"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An endpoint changes of a service that one of 5,000 sidecars sees, by its Sidecar
// object. The others are in the same namespace, and are not looked at.
func TestOneOf5000SidecarsIsLookedAt(t *testing.T) {
	const sidecars = 5000
	builder := catalog.NewBuilder(nil)
	host := func(n int) string { return fmt.Sprintf("h%d.example", n) }
	app := func(n int) string { return fmt.Sprintf("web-%d", n) }
	endpoint := func(n int, address string) model.Event {
		return model.Upsert{Record: model.Record{
			Ref:   model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "s", Namespace: "shop", Name: host(n) + "/1"}},
			Owner: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "shop", Name: host(n)}},
			Spec:  model.Endpoint{Address: address},
		}}
	}
	var events []model.Event
	for n := range sidecars {
		service := model.Service{Hosts: model.ListOf(host(n)), Ports: model.ListOf(ports[1]), Resolution: model.ResolutionStatic}
		scope := model.Scope{WorkloadSelector: model.MapOf(map[string]string{"app": app(n)}), Hosts: model.ListOf("./" + host(n))}
		events = append(events,
			model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "shop", Name: host(n)}}, Spec: service}},
			model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindScope, Key: model.Key{Source: "s", Namespace: "shop", Name: app(n)}}, Spec: scope}},
			endpoint(n, "10.0.0.1"))
	}
	first := builder.Apply(1, events)
	begin := Step(builder.Snapshot(), first, true, "istio-system")
	second := builder.Apply(2, []model.Event{endpoint(7, "10.0.0.2")})
	pushtest.Flat(t, Types(nil), sidecars, pushtest.Step{
		Row: EndpointType, First: begin, Next: Step(builder.Snapshot(), second, true, "istio-system"),
		Client: func(n int) world.Client {
			return world.Client{Kind: reach.KindEnvoy, Namespace: "shop", Labels: model.MapOf(map[string]string{"app": app(n)}), Proxy: world.Proxy{Role: "sidecar"}}
		},
		Names:     func(n int) []string { return []string{fmt.Sprintf("outbound|%d||%s", ports[1].Number, host(n))} },
		Concerned: 7,
	})
}
