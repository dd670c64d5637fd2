package envoy

import (
	"context"
	"slices"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// An endpoint of a new account comes behind the cluster that accepts its name, and with a
// cluster that accepts fewer names come the endpoints again: an Envoy uses the cluster from
// then on, and calls by the cluster before until then.
func TestAcceptedNamesComeBeforeTheirEndpoints(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]world.Mode{"delta": world.Delta, "state of the world": world.WholeState} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
			engine := push.New(push.Config{Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
			var running sync.WaitGroup
			running.Go(func() { engine.Run(ctx) })
			t.Cleanup(running.Wait)
			t.Cleanup(cancel)
			producer := engine.Produce(Types(nil))

			settings := NewTranslator()
			settings.MTLS.Mode = policy.StrictMTLS
			step, builder, revision := settings.Begin(nil), catalog.NewBuilder(nil), uint64(0)
			owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: "p"}}
			endpoint := func(address, account string) model.Record {
				ref := owner
				ref.Kind, ref.Name = model.KindEndpoint, "p/"+address
				return model.Record{Ref: ref, Owner: owner, Spec: model.Endpoint{Address: address, ServiceAccount: account, Labels: meshLabels}}
			}
			publish := func(events ...model.Event) {
				revision++
				change := builder.Apply(revision, events)
				producer.Publish(step(builder.Snapshot(), change, true, "root"))
			}
			publish(model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
				Hosts: model.ListOf("api.example"), Ports: model.ListOf(ports[2]), Resolution: model.ResolutionStatic,
			}}}, model.Upsert{Record: endpoint("10.0.0.1", "web")})

			s := engine.Connect(push.Info{ID: "1"}, provenAt("10.0.0.9"))
			at := names.Cluster("api.example", 80)
			for _, ask := range []session.Request{
				{Type: producer.Type(ClusterType), Mode: mode, Wildcard: session.WildcardOn}, {Type: producer.Type(EndpointType), Mode: mode, Subscribe: []string{at}},
			} {
				if err := s.Request(ask); err != nil {
					t.Fatal(err)
				}
			}
			next := func(want string) []string {
				t.Helper()
				return nextContents(ctx, t, s, at, want)
			}
			next("cluster")
			next("endpoints")
			expect := func(what string, got, want []string) {
				t.Helper()
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			web, db := "spiffe://cluster.local/ns/n/sa/web", "spiffe://cluster.local/ns/n/sa/db"
			publish(model.Upsert{Record: endpoint("10.0.0.2", "db")})
			expect("another account is accepted", next("cluster"), []string{db, web})
			expect("and called", next("endpoints"), []string{"10.0.0.1", "10.0.0.2"})
			publish(model.Delete{Record: endpoint("10.0.0.1", "web")})
			expect("the first account goes", next("cluster"), []string{db})
			expect("with its endpoint", next("endpoints"), []string{"10.0.0.2"})
		})
	}
}

// nextContents takes the next response, which must be of clusters or of endpoints, and ACKs it.
// It returns the accepted identities of a cluster, or its addresses.
func nextContents(ctx context.Context, t *testing.T, s *push.Subscriber, name, want string) (list []string) {
	t.Helper()
	select {
	case r := <-s.Out():
		s.Sent(r)
		if err := s.Request(session.Request{Type: r.Type, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}}); err != nil {
			t.Fatal(err)
		}
		for _, resource := range r.Resources {
			if resource.Name != name {
				continue
			}
			switch m := message(t, resource.Joined().Body).(type) {
			case *clusterv3.Cluster:
				if want != "cluster" {
					t.Fatalf("a cluster is sent, and not %s", want)
				}
				tls := &tlsv3.UpstreamTlsContext{}
				if err := m.GetTransportSocketMatches()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
					t.Fatal(err)
				}
				for _, n := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
					list = append(list, n.GetMatcher().GetExact())
				}
			case *endpointv3.ClusterLoadAssignment:
				if want != "endpoints" {
					t.Fatalf("endpoints are sent, and not a %s", want)
				}
				for _, group := range m.GetEndpoints() {
					for _, e := range group.GetLbEndpoints() {
						list = append(list, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
					}
				}
			}
		}
		return list
	case <-ctx.Done():
		t.Fatal("nothing was sent")
		return nil
	}
}
