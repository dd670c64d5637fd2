package feature_test

import (
	"fmt"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// One client NACKs everything and another one never reads. Both are shown as
// what they are, with an age and a reason, and nobody else notices.
func TestFaultyClientsHarmNobodyAndAreShown(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	nacker := xdsclient.NewDelta(t, channel(t, isthmus), xdsclient.Config{
		Node: xdsclient.Node("refuser", "shop", "envoy"),
		NACK: func(xdsclient.Resource) string { return "I do not like it" },
	})
	nacker.Subscribe(xdsclient.EDS, cluster(reviews))
	silent, err := discoveryv3.NewAggregatedDiscoveryServiceClient(channel(t, isthmus)).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: xdsclient.Node("silent", "shop", "envoy"), TypeUrl: xdsclient.EDS, ResourceNamesSubscribe: []string{cluster(reviews)},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[i%2])})
		client.AwaitAnswers([]string{"one", "two"}[i%2])
	}
	isthmus.awaitClient("refuser", xdsclient.EDS, "refused", cluster(reviews)+": I do not like it")
	isthmus.awaitClient("silent", xdsclient.EDS, "waiting", "the client has not answered")
	isthmus.awaitClient(client.Name, xdsclient.EDS, "accepted", "")
	calls.MustNotHaveFailed()
	nacker.Read(func(s *xdsclient.State) {
		if n := s.Responses(xdsclient.EDS); n > 11 {
			t.Errorf("the client that NACKs was sent %d responses to 10 changes", n)
		}
	})
	_, text, err := isthmus.get("/metrics")
	if err != nil || !strings.Contains(text, `isthmus_refusals_total{output="xds",type="`+xdsclient.EDS+`"} `) ||
		strings.Contains(text, `isthmus_refusals_total{output="xds",type="`+xdsclient.EDS+`"} 0`) {
		t.Errorf("NACKs are not counted: %v\n%s", err, text)
	}
}

// awaitClient waits until a client is shown to stand with a type as it does.
func (i *isthmus) awaitClient(id, typeURL, state, reason string) {
	i.t.Helper()
	await(i.t, fmt.Sprintf("%s to be %s", id, state), func() error {
		var seen admin.ClientType
		for _, c := range i.Clients() {
			if c.ID == id {
				seen = c.Types[typeURL]
			}
		}
		if seen.State != state || !strings.HasPrefix(seen.Reason, reason) || seen.Age == "" {
			return fmt.Errorf("it is shown as %+v", seen)
		}
		return nil
	})
}
