package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

// A machine registered by a name that a service of addresses selects is healthy
// and gets no calls. The admin API says so and why, until it is put right.
func TestAnEndpointThatNoClientIsGivenSaysWhy(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{
		Host: reviews, Selector: "{app: reviews}",
		Ports: "[{number: 80, name: grpc, protocol: GRPC}, {number: 81, name: debug, protocol: GRPC}]", // one endpoint all the same
	})
	files.Write("one.yaml", workload{Name: "one", Spec: b[0].Endpoint("labels: {app: reviews}")})
	files.Write("two.yaml", workload{Name: "two", Spec: "{address: two.internal, labels: {app: reviews}, ports: {grpc: " + b[1].Port() + "}}"})
	isthmus := startWith(t, strings.Replace(configFor(loopback, []*registry{files}), "xds: {",
		"xds: {envoy: {networks: [{name: vpc-1, gateways: [{address: 192.0.2.9}]}]}, ", 1), files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	const reason = "it is a name, and the service's resolution is STATIC"
	isthmus.AwaitService(reviews, unserved(map[string]string{"two.internal": reason}))

	files.Write("two.yaml", workload{Name: "two", Spec: "{network: vpc-2, labels: {app: reviews}}"})
	isthmus.AwaitService(reviews, unserved(map[string]string{"": "it has no address, and its network needs a gateway: name one in networks of outputs.xds.envoy"}))
	files.Write("two.yaml", workload{Name: "two", Spec: "{network: vpc-1, labels: {app: reviews}}"})
	isthmus.AwaitService(reviews, unserved(map[string]string{}))

	files.Write("two.yaml", workload{Name: "two", Spec: b[1].Endpoint("labels: {app: reviews}")})
	client.AwaitAnswers("one", "two")
	isthmus.AwaitService(reviews, unserved(map[string]string{}))
}

// unserved demands that exactly these addresses are given to no client, and are
// counted.
func unserved(want map[string]string) func(admin.Service) error {
	return func(s admin.Service) error {
		got := map[string]string{}
		for _, e := range s.Instances {
			if e.Unserved != "" {
				got[e.Address] = e.Unserved
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || s.Endpoints.Unserved != len(want) {
			return fmt.Errorf("unserved are %v, and %+v are counted", got, s.Endpoints)
		}
		return nil
	}
}
