package envoy

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// zonesOf are three endpoints, each in a zone of its own.
func zonesOf(host string) []model.Event {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: host}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf(host), Ports: model.ListOf(ports[1]), Resolution: model.ResolutionStatic,
	}}}}
	for i, zone := range []string{"a", "b", "c"} {
		events = append(events, inZone(host, fmt.Sprintf("10.0.0.%d", i+1), zone))
	}
	return events
}

func inZone(host, address, zone string) model.Event {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: host}}
	ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
	ref.Name += "/" + address
	return model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: model.Endpoint{
		Address: address, Locality: model.Locality{Region: "eu", Zone: zone},
	}}}
}

// failingOver are settings under which near.example is used by locality.
func failingOver() *policy.Prepared {
	s := NewTranslator()
	s.Hosts = []policy.HostPolicy{{Host: "near.example", Policy: policy.Policy{OutlierDetection: &policy.OutlierDetection{}}}}
	return s.Prepare()
}

// Clients of one locality share the bytes of a service that is used by locality, and
// all clients those of any other.
func TestBytesAreSharedByLocality(t *testing.T) {
	const clients, localities = 40, 4
	synctest.Test(t, func(t *testing.T) {
		var encodings atomic.Int64
		e := push.New(push.Config{Workers: 1, Frame: func(world.Encoded) (heads [2][]byte) {
			encodings.Add(1)
			return heads
		}})
		p := e.Produce(Types(nil))
		ctx, end := context.WithCancel(t.Context())
		go e.Run(ctx)
		defer synctest.Wait()
		defer end()
		s, builder := failingOver(), catalog.NewBuilder(nil)
		publish := func(revision uint64, events []model.Event) {
			change := builder.Apply(revision, events)
			p.Publish(stepOf(s, builder.Snapshot(), change, true, "istio-system", nil))
			synctest.Wait()
		}
		publish(1, append(zonesOf("near.example"), zonesOf("plain.example")...))
		var all []*push.Subscriber
		for n := range clients {
			client := world.Client{Kind: reach.KindEnvoy, Locality: model.Locality{Region: "eu", Zone: string(rune('a' + n%localities))}}
			all = append(all, e.Connect(push.Info{}, client))
			names := []string{"outbound|80||near.example", "outbound|80||plain.example"}
			if err := all[n].Request(session.Request{Type: p.Type(EndpointType), Mode: world.Delta, Subscribe: names}); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			for _, client := range all {
				answerAll(client)
			}
			synctest.Wait()
			for _, client := range all {
				answerAll(client)
			}
			if got := encodings.Swap(0); got != want {
				t.Errorf("%s is encoded %d times for %d clients, want %d", what, got, clients, want)
			}
		}
		expect("what there is", localities+1)
		publish(2, []model.Event{inZone("near.example", "10.0.0.9", "a")})
		expect("an endpoint of a service that is used by locality", localities)
		publish(3, []model.Event{inZone("plain.example", "10.0.0.9", "a")})
		expect("an endpoint of another", 1)
	})
}

// A client's locality is part of its view only where something differs by it.
func TestViewsHoldTheLocalityWhereItMatters(t *testing.T) {
	client := world.Client{Kind: reach.KindEnvoy, Locality: model.Locality{Region: "eu"}}
	snapshot := catalog.NewBuilder(nil).Snapshot()
	for name, s := range map[string]*policy.Prepared{"failover": failingOver(), "none": policy.Istio} {
		for r := range resourceTypes() {
			w := worldUnder(s, snapshot, true, "istio-system", nil)
			differs := w.View(world.Row(r), client) != w.View(world.Row(r), world.Client{Kind: reach.KindEnvoy})
			if want := name == "failover" && (world.Row(r) == EndpointType || world.Row(r) == ClusterType); differs != want {
				t.Errorf("with %s, the view of %s differs by locality: %t", name, resourceTypes()[r].Name, differs)
			}
		}
	}
}

// Of names that clients resolve the cluster holds the priorities.
func TestNamesAreUsedByLocality(t *testing.T) {
	events := zonesOf("near.example")
	for i, event := range events {
		r := event.(model.Upsert).Record
		if spec, ok := r.Spec.(model.Service); ok {
			spec.Resolution = model.ResolutionDNS
			r.Spec = spec
		}
		events[i] = model.Upsert{Record: r}
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	w := worldUnder(failingOver(), builder.Snapshot(), true, "istio-system", nil)
	for zone, want := range map[string][]uint32{"b": {0, 1, 1}, "x": {0, 0, 0}} {
		client := world.Client{Kind: reach.KindEnvoy, Locality: model.Locality{Region: "eu", Zone: zone}}
		subject, ok := w.Find(w.View(ClusterType, client), ClusterType, "outbound|80||near.example")
		if !ok {
			t.Fatal("there is no cluster")
		}
		var got []uint32
		for _, g := range clusterIn(t, subject).GetLoadAssignment().GetEndpoints() {
			got = append(got, g.Priority)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in zone %s the priorities are %v, want %v", zone, got, want)
		}
	}
}

// BenchmarkAssignmentByLocality is what a change of an endpoint costs for the clients
// of one locality, without failover and with it.
func BenchmarkAssignmentByLocality(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		s := manyEndpoints(n)
		at := assignmentSlot{slot: slot{row: EndpointType, key: s.Key, port: 80}}
		for name, from := range map[string]model.Locality{"without": {}, "with": {Region: "eu-west-1", Zone: "eu-west-1a"}} {
			at.from = lb.Location{Locality: from}
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					assignment{at, s.Endpoints(80), lb.ByLocality}.Encode()
				}
			})
		}
	}
}

// answerAll ACKs what a client was sent.
func answerAll(s *push.Subscriber) {
	for {
		select {
		case r := <-s.Out():
			s.Sent(r)
			_ = s.Request(session.Request{Type: r.Type, Mode: r.Mode, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}})
		default:
			return
		}
	}
}

func clusterIn(t interface{ Fatal(...any) }, subject world.Subject) *clusterv3.Cluster {
	c, _ := message(t, subject.Encode().Joined().Body).(*clusterv3.Cluster)
	return c
}
