package feature_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// TestRegistryThatLiesTakesNothingAway has a Service Center, or what stands in
// front of it, claim in several ways that nothing is registered. The client
// calls all the time.
func TestRegistryThatLiesTakesNothingAway(t *testing.T) {
	t.Parallel()
	center, b := startCenter(t), startBackend(t, "one")
	id := center.Register(servicecenter.Service{App: "shop", Name: "cart", Version: "1.0.0"})
	center.RegisterInstance(id, servicecenter.Instance{ID: "c1", HostName: "h1", Endpoints: []string{"grpc://" + b.Addr.String()}})
	isthmus := startWith(t, fmt.Sprintf("sources:\n- name: legacy\n  localAddresses: allow\n  hold: {for: 1h}\n"+
		"  servicecenter: {addresses: [%q], poll: 100ms}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n",
		center.URL(), loopback, loopback))
	client := dial(t, isthmus, "cart:"+b.Port(), "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	for _, lie := range []struct {
		route        servicecenter.Route
		body, reason string
	}{
		{servicecenter.Any, `{}`, `has no field "services" (its fields: none)`},
		{servicecenter.Any, `{"error":"no healthy upstream"}`, `has no field "services" (its fields: error)`},
		{servicecenter.BatchFind, `{"foo":1}`, `has no field "services" (its fields: foo)`},
		{servicecenter.BatchFind, `{"services":{"updated":[{}]}}`, "no index or no rev"},
	} {
		center.Inject(lie.route, servicecenter.Answer(http.StatusOK, "application/json", lie.body), 0)
		isthmus.AwaitSource("legacy", "stale", lie.reason)
		client.AwaitAnswers("one")
		dial(t, isthmus, "cart:"+b.Port(), "shop").AwaitAnswers("one") // newcomers get it, too
		center.Repair()
		isthmus.AwaitSource("legacy", "live", "")
	}

	// A registry that has lost everything is none that lies, but few would know.
	center.Unregister(id)
	isthmus.AwaitSource("legacy", "held", "1 of 1 endpoints disappeared within ")
	client.AwaitAnswers("one")
	calls.MustNotHaveFailed()
}

// startCenter starts a stand-in for a Service Center, which ends with the test.
func startCenter(t *testing.T) *servicecenter.Server {
	t.Helper()
	listener, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	center := servicecenter.New(servicecenter.Config{Prompt: true, KeepAlive: true})
	center.Serve(listener)
	t.Cleanup(center.Close)
	return center
}
