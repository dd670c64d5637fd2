package feature_test

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// A control plane is sent the shares of a split as weights of endpoints, in one ServiceEntry
// of all backends.
func TestControlPlanesGetSharesAsWeights(t *testing.T) {
	t.Parallel()
	legacy, east := newRegistry(t, "legacy"), newRegistry(t, "east")
	legacy.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}", "{address: 10.0.0.2}", "{address: 10.0.0.3, weight: 7}"}})
	east.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.1.1, weight: 100}"}})
	text := fmt.Sprintf("sources:\n- name: legacy\n  file: {path: %q}\n- name: east\n  file: {path: %q}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n"+
		"splits:\n- {host: %s, namespace: shop, backends: [{source: legacy, weight: 90}, {source: east, weight: 10}]}\n", legacy.path, east.path, loopback, loopback, reviews)
	next := istiodOf(t, startWith(t, text, legacy, east), entryType)
	entry := &networking.ServiceEntry{}
	got := next()
	if err := proto.Unmarshal(got["shop/reviews"].GetBody().GetValue(), entry); err != nil || len(entry.GetEndpoints()) != 4 {
		t.Fatalf("there is %v, %v", got, err)
	}
	whole := 0.0
	for _, e := range entry.GetEndpoints() {
		whole += float64(e.GetWeight())
	}
	for _, e := range entry.GetEndpoints() {
		want := map[string]float64{"10.0.0.1": 0.1, "10.0.0.2": 0.1, "10.0.0.3": 0.7, "10.0.1.1": 0.1}[e.GetAddress()]
		if share := float64(e.GetWeight()) / whole; math.Abs(share-want) > 0.01*want {
			t.Errorf("%s has %.4f of the calls, want %g", e.GetAddress(), share, want)
		}
	}
}
