package envoy

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// registered is the endpoints of a service in two registries, by source. A machine may be in
// both.
type registered map[string][]model.Endpoint

func drawRegistered(t *rapid.T) registered {
	r, machine := registered{}, 0
	for _, source := range []string{"old", "new"} {
		for range rapid.SampledFrom([]int{0, 1, 2, 10, 60}).Draw(t, "endpoints") {
			machine++
			r[source] = append(r[source], model.Endpoint{
				Address:  fmt.Sprintf("10.0.%d.%d", machine/250, machine%250),
				Weight:   rapid.SampledFrom([]uint32{0, 1, 1, 5}).Draw(t, "weight"),
				Health:   rapid.SampledFrom([]model.Health{model.Healthy, model.Healthy, model.Healthy, model.Unhealthy}).Draw(t, "health"),
				Locality: model.Locality{Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")},
			})
		}
	}
	for _, e := range r["old"] {
		if rapid.IntRange(0, 3).Draw(t, "twice") == 0 {
			r["new"] = append(r["new"], e)
		}
	}
	return r
}

// divided returns the service of the registries, divided by shares of each.
func (r registered) divided(shares map[string]uint32) *catalog.Service {
	key := catalog.ServiceKey{Namespace: "n", Host: "svc.n"}
	s := &split.Split{}
	var events []model.Event
	for _, source := range []string{"old", "new"} {
		owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "n", Name: "svc"}}
		events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
			Hosts: model.ListOf(key.Host), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		}}})
		for i, e := range r[source] {
			ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
			ref.Name += fmt.Sprint("/", i)
			events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
		}
		s.Backends = append(s.Backends, model.Backend{Source: source, Weight: shares[source]})
	}
	b := catalog.NewBuilderIn(catalog.Order{Sources: []string{"old", "new"}, Splits: map[catalog.ServiceKey]*split.Split{key: s}})
	b.Apply(1, events)
	service, _ := b.Snapshot().Service(key)
	return service
}

// expected returns the part of the calls of each healthy machine, of 1; nil if no backend
// with a share has one.
func (r registered) expected(shares map[string]uint32) map[string]float64 {
	weight := func(e model.Endpoint) float64 {
		if e.Health != model.Healthy {
			return 0
		}
		return float64(max(e.Weight, 1))
	}
	sums, whole := map[string]float64{}, 0.0
	for source, all := range r {
		for _, e := range all {
			sums[source] += weight(e)
		}
		if sums[source] > 0 {
			whole += float64(shares[source])
		}
	}
	if whole == 0 {
		return nil
	}
	parts := map[string]float64{}
	for source, all := range r {
		for _, e := range all {
			if weight(e) > 0 && shares[source] > 0 {
				parts[e.Address] += float64(shares[source]) / whole * weight(e) / sums[source]
			}
		}
	}
	return parts
}

// The weights that Envoys and gRPC clients are sent are the shares that were asked for, in all
// localities together.
func TestAssignmentsHaveTheSharesAskedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRegistered(t)
		weight := rapid.SampledFrom([]uint32{0, 1, 10, 50, 99})
		shares := map[string]uint32{"old": weight.Draw(t, "share of old"), "new": weight.Draw(t, "share of new")}
		want := r.expected(shares)
		if want == nil {
			return
		}
		for _, kind := range []string{reach.KindEnvoy, reach.KindGRPC} {
			cla, _ := served(t, kind, r.divided(shares))
			got, total := map[string]float64{}, 0.0
			for _, g := range cla.Endpoints {
				within := 0.0
				for _, e := range g.LbEndpoints {
					within += float64(e.LoadBalancingWeight.GetValue())
				}
				for _, e := range g.LbEndpoints {
					part := float64(e.LoadBalancingWeight.GetValue())
					if kind == reach.KindGRPC { // obeys weights of localities alone
						part = float64(g.LoadBalancingWeight.GetValue()) / float64(len(g.LbEndpoints))
					} else if math.Abs(within-float64(g.LoadBalancingWeight.GetValue())) > within/1e6 {
						t.Fatalf("the locality %v weighs %d, its endpoints %g", g.Locality, g.LoadBalancingWeight.GetValue(), within)
					}
					got[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()] += part
					total += part
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s clients get %d endpoints, want %d", kind, len(got), len(want))
			}
			for address, part := range want {
				if is := got[address] / total; math.Abs(is-part) > 0.02*part {
					t.Fatalf("%s clients give %s %.5f of the calls, want %.5f", kind, address, is, part)
				}
			}
		}
	})
}
