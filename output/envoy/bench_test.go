package envoy

import (
	"fmt"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

func manyEndpoints(n int) *catalog.Service {
	all := make([]model.Endpoint, n)
	for i := range all {
		all[i] = model.Endpoint{
			Address:  fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
			Locality: model.Locality{Region: "eu-west-1", Zone: "eu-west-1" + string(rune('a'+i%3))},
		}
	}
	return serviceOf(all...)
}

func BenchmarkAssignment(b *testing.B) {
	for _, n := range []int{50, 1000, 20000} {
		s := manyEndpoints(n)
		b.Run(strconv.Itoa(n)+"/by-hand", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				assignment{assignmentSlot: assignmentSlot{slot: slot{row: EndpointType, key: s.Key, port: 80}}, endpoints: s.Endpoints(80)}.Encode()
			}
		})
		b.Run(strconv.Itoa(n)+"/messages", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				encode("outbound|80||svc.n", wire.EndpointURL, ordinary("outbound|80||svc.n", s.Endpoints(80)))
			}
		})
		m := ordinary("outbound|80||svc.n", s.Endpoints(80))
		b.Run(strconv.Itoa(n)+"/marshal-alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := proto.Marshal(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// manyServices returns a world of n STATIC services with one endpoint each.
func manyServices(n int) *World {
	var events []model.Event
	for i := range n {
		owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "n", Name: strconv.Itoa(i)}}
		endpoint := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "s", Namespace: "n", Name: strconv.Itoa(i) + "/1"}}
		events = append(events,
			model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
				Hosts: model.ListOf(fmt.Sprintf("service-%d.shop.svc.cluster.local", i)), Resolution: model.ResolutionStatic,
				Ports: model.ListOf(model.Port{Number: 8080, Name: "http", Protocol: "HTTP"}),
			}}},
			model.Upsert{Record: model.Record{Ref: endpoint, Owner: owner, Spec: model.Endpoint{Address: "10.0.0.1"}}})
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	return NewWorld(builder.Snapshot(), true, "istio-system")
}

func BenchmarkWorld(b *testing.B) {
	w := manyServices(28000)
	for _, kind := range []string{reach.KindEnvoy, reach.KindGRPC} {
		v := View{Kind: kind, Namespace: "n"}
		b.Run("find/"+kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := w.Find(v, EndpointType, "outbound|8080||service-12345.shop.svc.cluster.local"); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run("names/"+kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range w.Names(v, ClusterType) { //nolint:revive // the walk is what is measured
				}
			}
		})
	}
	b.Run("encode-cluster", func(b *testing.B) {
		b.ReportAllocs()
		subject, _ := w.Find(View{Kind: reach.KindEnvoy}, ClusterType, "outbound|8080||service-1.shop.svc.cluster.local")
		for b.Loop() {
			subject.Encode()
		}
	})
}

// BenchmarkIdentities finds the names that certificates of a service's endpoints may
// have. All run under a few accounts.
func BenchmarkIdentities(b *testing.B) {
	for _, n := range []int{50, 1000, 20000} {
		all := make([]model.Endpoint, n)
		for i := range all {
			all[i] = model.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), ServiceAccount: fmt.Sprintf("web-%d", i%3)}
		}
		s := serviceOf(all...)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reach.Identities(&policy.UpstreamTLS{Mode: policy.SimpleTLS}, s, s.Endpoints(80), "cluster.local")
			}
		})
	}
}
