package istio_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// TestLargeServiceIsWrittenInParts has a service of more endpoints than one
// object should have. A change of one of them rewrites one object.
func TestLargeServiceIsWrittenInParts(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	var addresses []string
	for i := range 2500 {
		addresses = append(addresses, fmt.Sprintf("10.3.%d.%d:80", i/250, i%250+1))
	}
	registry.Add("large", addresses...)
	b := api.Bridge(registry, "large")
	serve(t, api, b)
	api.Settle(b)
	objects, err := api.client.List(t.Context(), cluster.ServiceEntries, b.namespace, managedBy)
	if err != nil || len(objects) < 3+1 {
		t.Errorf("2500 endpoints and a marker are in %d objects, %v", len(objects), err)
	}

	before := api.own(b.namespace)
	registry.Remove("large", addresses[1234])
	api.AwaitMirror(b)
	registry.Add("large", "10.4.0.1:80")
	api.Settle(b)
	if writes := api.own(b.namespace)[len(before):]; len(writes) != 2+1 {
		t.Errorf("2 changes and a marker led to %d writes: %v", len(writes), writes)
	}
	registry.Drop("large")
	api.Settle(b)
}

// TestInstancesOfOneServiceServeTheirOwnPorts has two instances, of which one
// listens on a port that the other does not. Istio would send calls to both.
func TestInstancesOfOneServiceServeTheirOwnPorts(t *testing.T) {
	t.Parallel()
	common, special := freePort(t), freePort(t)
	one := startBackend(t, "one", "127.0.0.1:"+common)
	two := startBackend(t, "two", "127.0.0.2:"+common)
	both := startBackend(t, "two-special", "127.0.0.2:"+special)
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "ports")
	id := registry.Register(servicecenter.Service{App: "shop", Name: "reviews"})
	for _, endpoints := range [][]string{{"grpc://" + one.Addr.String()}, {"grpc://" + two.Addr.String(), "grpc://" + both.Addr.String()}} {
		registry.RegisterInstance(id, servicecenter.Instance{HostName: "host", Endpoints: endpoints})
	}
	serve(t, api, b)
	dial(t, istiod, b.namespace, b.host("reviews")+":"+common).AwaitAnswers("one", "two")
	client := dial(t, istiod, b.namespace, b.host("reviews")+":"+special)
	client.AwaitAnswers("two-special")
	traffic := client.KeepCalling()
	client.AwaitAnswers("two-special")
	traffic.MustNotHaveFailed()
}
