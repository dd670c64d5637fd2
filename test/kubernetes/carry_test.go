package kubernetes_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// needed are the specifications of kinds of which an API server admits no empty one.
var needed = map[string]string{
	"DestinationRule":  `{host: reviews, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user, ringHash: {minimumRingSize: 2048}}}}}`,
	"EnvoyFilter":      `{configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 2s, empty: {}}}}]}`,
	"TrafficExtension": `{lua: {inlineCode: "function envoy_on_request(h) end"}}`,
	"WasmPlugin":       `{url: "oci://registry/plugin:1", pluginConfig: {a: [1, two]}}`,
}

// Each kind that can be carried is, of an API server with Istio's definitions, and in any
// version that it has.
func TestEachKindIsCarriedOfACluster(t *testing.T) {
	t.Parallel()
	client := connect(t, shared)
	if err := client.Namespace(t.Context(), "carried"); err != nil {
		t.Fatal(err)
	}
	m := mirror(t, kubeconfig(t, shared.API, cluster.Admin), func(c *kubernetes.Config) { c.Carry = istio.Carry{istio.Everything} })
	m.awaitState(source.StateLive)
	kinds := istio.Carry{istio.Everything}.Definitions()
	at := func(d istio.Definition) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: d.Group, Version: d.Version, Resource: d.Resource()}
	}
	for _, d := range kinds {
		spec := needed[d.Name]
		if spec == "" {
			spec = "{}"
		}
		o := object(t, "{apiVersion: %s/%s, kind: %s, metadata: {namespace: carried, name: a}, spec: %s}", d.Group, d.Version, d.Name, spec)
		if err := client.Apply(t.Context(), at(d), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range kinds {
		await(t, d.Name, func() error {
			if r := m.records("carried"); r[d.Name+" a"] == "" {
				return fmt.Errorf("there is %v, and %v are rejected", r, m.supervisor.Status().Rejected)
			}
			return nil
		})
	}
	for r := range m.store.List(model.Filter{Source: "k8s", Kind: "DestinationRule"}) {
		spec, opaque := &networking.DestinationRule{}, r.Spec.(model.Opaque)
		if err := proto.Unmarshal([]byte(opaque.Content), spec); err != nil || spec.GetTrafficPolicy().GetLoadBalancer().GetConsistentHash().GetRingHash().GetMinimumRingSize() != 2048 {
			t.Errorf("the rule is %v, %v", spec, err)
		}
	}
	if rejected := m.supervisor.Status().Rejected; len(rejected) > 0 {
		t.Errorf("rejected: %v", rejected)
	}
	for _, d := range kinds {
		if err := client.Delete(t.Context(), at(d), "carried", "a"); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "everything is gone", func() error {
		if r := m.records("carried"); len(r) > 0 {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
}
