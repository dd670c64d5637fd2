package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/pushtest"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// served returns the load assignment that a kind of client is given of a service.
func served(t interface{ Fatal(...any) }, kind string, s *catalog.Service) (*endpointv3.ClusterLoadAssignment, world.Subject) {
	at := assignmentSlot{slot: slot{row: EndpointType, key: s.Key, port: 80}}
	subject := assignmentChosen(kind, choice{}, nil, assignment{at, s.Endpoints(80), lb.Alike})
	cla, _ := message(t, subject.Encode().Joined().Body).(*endpointv3.ClusterLoadAssignment)
	return cla, subject
}

// weightsOf returns what each endpoint weighs of each real locality: what a
// client makes of it that obeys weights of endpoints, or of localities alone.
func weightsOf(cla *endpointv3.ClusterLoadAssignment, obeysEndpoints bool) map[model.Locality]map[string]float64 {
	all := map[model.Locality]map[string]float64{}
	for _, g := range cla.Endpoints {
		l := localityOf(g.Locality)
		if !obeysEndpoints {
			l = unmarked(l)
		}
		if all[l] == nil {
			all[l] = map[string]float64{}
		}
		for _, e := range g.LbEndpoints {
			weight := float64(e.LoadBalancingWeight.Value)
			if !obeysEndpoints {
				weight = float64(g.LoadBalancingWeight.Value) / float64(len(g.LbEndpoints))
			}
			all[l][e.GetEndpoint().GetAddress().String()] = weight
		}
	}
	return all
}

// unmarked is the real locality of a group.
func unmarked(l model.Locality) model.Locality {
	if at := strings.LastIndex(l.SubZone, lb.ClassMark); at >= 0 {
		l.SubZone = l.SubZone[:at]
	}
	return l
}

// weightedEndpoints draws endpoints of a few weights, so that many have the same.
func weightedEndpoints() *rapid.Generator[[]model.Endpoint] {
	weight := rapid.SampledFrom([]uint32{0, 1, 2, 7, 7, 1000, 1 << 31})
	return rapid.Custom(func(t *rapid.T) []model.Endpoint {
		all := rapid.SliceOfN(endpoints(), 0, 40).Draw(t, "endpoints")
		for i := range all {
			all[i].Weight = weight.Draw(t, "weight")
		}
		return all
	})
}

// Whoever obeys the weights of localities alone gives each endpoint of a real
// locality what others give it, and each real locality its sum.
func TestWeightsOfLocalitiesSayWhatThoseOfEndpointsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := serviceOf(weightedEndpoints().Draw(t, "of the service")...)
		envoy, ofEnvoy := served(t, reach.KindEnvoy, s)
		grpc, ofGRPC := served(t, reach.KindGRPC, s)
		if err := acceptable(grpc); err != nil {
			t.Fatalf("%v: %v", err, grpc)
		}
		if diff := gocmp.Diff(weightsOf(envoy, true), weightsOf(grpc, false)); diff != "" {
			t.Fatalf("-by endpoint +by locality:\n%s", diff)
		}
		if s.Endpoints(80).Uneven() == (ofEnvoy == ofGRPC) {
			t.Fatalf("uneven: %t; for Envoy %v, for gRPC %v", s.Endpoints(80).Uneven(), ofEnvoy, ofGRPC)
		}
	})
}

// Between any two weightings every endpoint stays in the assignment, once.
func TestMovesBetweenWeightsLoseNoEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]model.Endpoint, rapid.IntRange(1, 100).Draw(t, "endpoints"))
		for step := range 3 {
			for i := range all {
				all[i] = model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", i), Weight: rapid.Uint32().Draw(t, "weight")}
			}
			grpc, _ := served(t, reach.KindGRPC, serviceOf(all...))
			if err := acceptable(grpc); err != nil {
				t.Fatal(err)
			}
			if got := len(weightsOf(grpc, false)[model.Locality{}]); got != len(all) {
				t.Fatalf("step %d: %d endpoints of %d", step, got, len(all))
			}
		}
	})
}

func TestEndpointsWithoutWeightKeepTheirLocality(t *testing.T) {
	here := model.Locality{Region: "eu", Zone: "a"}
	plain, heavy := model.Endpoint{Address: "10.0.0.1", Locality: here}, model.Endpoint{Address: "10.0.0.2", Locality: here, Weight: 9}
	ill := heavy
	ill.Health = model.Unhealthy
	for name, all := range map[string][]model.Endpoint{"alone": {plain}, "beside a heavy one": {plain, heavy}, "beside one that is ill": {plain, ill}} {
		grpc, _ := served(t, reach.KindGRPC, serviceOf(all...))
		if got := localityOf(grpc.Endpoints[0].Locality); got != here || len(grpc.Endpoints[0].LbEndpoints) != 1 {
			t.Errorf("%s it is in %v", name, grpc.Endpoints[0])
		}
	}
}

// A locality may be named as if it stood for a weight.
func TestNamesOfWeightsCollideWithNoLocality(t *testing.T) {
	var all []model.Endpoint
	for i, subZone := range []string{"", "", "", "~weight=7", "~weight=7", "~weight=2~weight=7", "~weight=2"} {
		all = append(all, model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", i), Weight: []uint32{1, 2, 7}[i%3], Locality: model.Locality{SubZone: subZone}})
	}
	s := serviceOf(all...)
	envoy, _ := served(t, reach.KindEnvoy, s)
	grpc, _ := served(t, reach.KindGRPC, s)
	if err := acceptable(grpc); err != nil {
		t.Error(err)
	}
	if diff := gocmp.Diff(weightsOf(envoy, true), weightsOf(grpc, false)); diff != "" {
		t.Errorf("-by endpoint +by locality:\n%s", diff)
	}
}

// Of 5,000 different weights a client makes no 5,000 balancers, and each endpoint
// has its share but for an eighth of it.
func TestThereAreOnlySoManyClassesOfWeights(t *testing.T) {
	var all []model.Endpoint
	for i := range 5000 {
		all = append(all, model.Endpoint{Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Weight: uint32(i + 1)})
	}
	s := serviceOf(all...)
	envoy, _ := served(t, reach.KindEnvoy, s)
	grpc, _ := served(t, reach.KindGRPC, s)
	if err := acceptable(grpc); err != nil {
		t.Error(err)
	}
	if n := len(grpc.Endpoints); n > lb.MostClasses || n < lb.MostClasses/2 {
		t.Errorf("there are %d localities", n)
	}
	want, got := weightsOf(envoy, true)[model.Locality{}], weightsOf(grpc, false)[model.Locality{}]
	if len(want) != 5000 || len(got) != 5000 {
		t.Fatalf("%d endpoints for Envoy, %d for gRPC", len(want), len(got))
	}
	for address, weight := range want {
		if off := got[address]/weight - 1; off > 0.125 || off < -0.125 {
			t.Errorf("an endpoint of the weight %.0f weighs %.1f", weight, got[address])
		}
	}
}

// Whatever the weights are, one digit leaves few enough classes.
func TestAnyWeightsFitIntoTheClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Min(1), 2, 500).Draw(t, "weights")
		slices.Sort(weights)
		weights = slices.Compact(weights)
		found := map[uint32]bool{}
		digits := lb.DigitsFor(weights)
		for _, w := range weights {
			if digits > 0 {
				found[lb.ClassOf(w, digits)] = true
			}
		}
		if len(found) > lb.MostClasses || len(weights) <= lb.MostClasses && digits > 0 && len(found) != len(weights) {
			t.Fatalf("%d classes of %d weights: %v", len(found), len(weights), slices.Sorted(maps.Keys(found)))
		}
	})
}

// A weight that changes is a change of the load assignment, and costs look-ups for
// those clients alone who see it.
func TestAWeightThatChangesIsFlat(t *testing.T) {
	builder := catalog.NewBuilder(nil)
	endpoint := func(ns, address string, weight uint32) model.Event {
		e := place1(ns, "p", address).(model.Upsert)
		e.Record.Name = "p/" + address
		e.Record.Spec = model.Endpoint{Address: address, Weight: weight}
		return e
	}
	var events []model.Event
	for n := range 500 {
		ns := fmt.Sprintf("n%d", n)
		private := model.Service{Ports: model.ListOf(ports[3]), ExportTo: model.ListOf(".")}
		events = append(events, record(ns, "p", private), endpoint(ns, "10.0.0.1", 1), endpoint(ns, "10.0.0.2", 2))
	}
	first := builder.Apply(1, events)
	begin := Step(builder.Snapshot(), first, true, "istio-system")
	second := builder.Apply(2, []model.Event{endpoint("n7", "10.0.0.1", 2)})
	pushtest.Flat(t, Types(nil), 500, pushtest.Step{
		Row: EndpointType, First: begin, Next: Step(builder.Snapshot(), second, true, "istio-system"),
		Client:    func(n int) world.Client { return world.Client{Kind: reach.KindGRPC, Namespace: fmt.Sprintf("n%d", n)} },
		Concerned: 7,
	})
}
