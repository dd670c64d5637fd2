package envoy

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

func drawLocality(t *rapid.T) model.Locality {
	part := func(name string) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, name) }
	return model.Locality{Region: part("region"), Zone: part("zone"), SubZone: part("subZone")}
}

// distanceOf is Istio's order, from the nearest to the farthest, written down anew.
func distanceOf(client, endpoint model.Locality) int {
	same := 0
	for _, part := range [][2]string{{client.Region, endpoint.Region}, {client.Zone, endpoint.Zone}, {client.SubZone, endpoint.SubZone}} {
		if part[0] != part[1] {
			break
		}
		same++
	}
	return 3 - same
}

// Whatever is nearer is used first, whatever is as near is used alike, nothing is
// lost, and clients of both kinds take the assignment.
func TestNearestEndpointsComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := weightedEndpoints().Draw(t, "of the service")
		for i := range all {
			all[i].Locality = drawLocality(t)
		}
		s, at := serviceOf(all...), drawLocality(t)
		for _, kind := range []string{reach.KindEnvoy, reach.KindGRPC} {
			plain, _ := served(t, kind, s)
			near := encoded(t, assignmentChosen(kind, choice{order: lb.ByLocality, from: lb.Location{Locality: at}}, nil, assignment{assignmentSlot: assignmentSlot{slot: slot{row: EndpointType, key: s.Key, port: 80}}, endpoints: s.Endpoints(80)}))
			if err := acceptable(near); err != nil {
				t.Fatalf("%s: %v: %v", kind, err, near)
			}
			if diff := gocmp.Diff(weightsOf(plain, kind == reach.KindEnvoy), weightsOf(near, kind == reach.KindEnvoy)); diff != "" {
				t.Fatalf("%s: -without +with priorities:\n%s", kind, diff)
			}
			if at == (model.Locality{}) {
				for _, g := range near.Endpoints {
					if g.Priority != 0 {
						t.Fatalf("%s: a client without a locality prefers something: %v", kind, near)
					}
				}
				continue
			}
			for _, g := range near.Endpoints {
				for _, o := range near.Endpoints {
					byDistance := cmp.Compare(distanceOf(at, unmarked(localityOf(g.Locality))), distanceOf(at, unmarked(localityOf(o.Locality))))
					if byDistance != cmp.Compare(g.Priority, o.Priority) {
						t.Fatalf("%s at %v: %v beside %v", kind, at, g, o)
					}
				}
			}
		}
	})
}

func encoded(t interface{ Fatal(...any) }, subject world.Subject) *endpointv3.ClusterLoadAssignment {
	cla, _ := message(t, subject.Encode().Joined().Body).(*endpointv3.ClusterLoadAssignment)
	return cla
}

// prioritiesAreWhole says why a client would reject the priorities of an assignment.
func prioritiesAreWhole(cla *endpointv3.ClusterLoadAssignment) bool {
	found := map[uint32]bool{}
	for _, g := range cla.Endpoints {
		found[g.Priority] = true
	}
	for i, p := range slices.Sorted(maps.Keys(found)) {
		if p != uint32(i) {
			return false
		}
	}
	return true
}

// A retry leaves the near endpoints while there is an attempt left, where they come first
// and nowhere else.
func TestRetriesLeaveNearEndpoints(t *testing.T) {
	off, detection := false, &policy.OutlierDetection{}
	detection.SetDefaults()
	for name, test := range map[string]struct {
		policy policy.Policy
		want   int32 // attempts near the client; 0 for all of them
	}{
		"no failover":      {policy.Policy{}, 0},
		"it is off":        {policy.Policy{OutlierDetection: detection, LocalityFailover: &off}, 0},
		"by default":       {policy.Policy{OutlierDetection: detection}, 2},
		"one retry":        {policy.Policy{OutlierDetection: detection, Retries: &policy.Retries{Attempts: 1, RetryOn: "5xx"}}, 1},
		"a lot of retries": {policy.Policy{OutlierDetection: detection, Retries: &policy.Retries{Attempts: 9, RetryOn: "5xx"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var config prioritiesv3.PreviousPrioritiesConfig
			host := wire.VirtualHost("h:80", nil, wire.Target{Cluster: "c", Policy: &test.policy})
			if packed := host.GetRoutes()[0].GetRoute().GetRetryPolicy().GetRetryPriority(); packed != nil {
				if err := packed.GetTypedConfig().UnmarshalTo(&config); err != nil {
					t.Fatal(err)
				}
			}
			if config.UpdateFrequency != test.want {
				t.Errorf("after %d attempts, want %d", config.UpdateFrequency, test.want)
			}
		})
	}
}
