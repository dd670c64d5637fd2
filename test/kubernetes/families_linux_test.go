package kubernetes_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

const dualService = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: dual}
spec: {ipFamilyPolicy: PreferDualStack, ports: [{name: http, port: 80, targetPort: 8080}]}
`

// dualSlice is one family of the only pod of the service.
func dualSlice(t *testing.T, family, address string) *unstructured.Unstructured {
	return object(t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: %[1]s, metadata: {namespace: shop, name: %[2]s, labels: {kubernetes.io/service-name: dual}},
ports: [{name: http, port: 8080}], endpoints: [{addresses: [%[3]q], targetRef: {kind: Pod, namespace: shop, name: pod, uid: u-1}}]}`,
		family, "dual-"+strings.ToLower(family), address)
}

// A pod with addresses of both families is called at the one that answers. This holds for
// assignments, in both variants of the protocol, and for collections.
func TestPodIsCalledAtTheAddressThatAnswers(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	c := own(t)
	client := connect(t, c)
	if err := client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	apply := func(family, address string) {
		t.Helper()
		if err := client.Apply(t.Context(), slicesOf, dualSlice(t, family, address)); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Apply(t.Context(), services, object(t, dualService)); err != nil {
		t.Fatal(err)
	}
	// Nobody listens at the first address, which is the one of IPv4.
	if err := netns.AddAddress(netip.MustParseAddr("10.77.2.1")); err != nil {
		t.Fatal(err)
	}
	listen(t, "pod", "[fd77::1]:8080")
	apply("IPv4", "10.77.2.1")
	apply("IPv6", "fd77::1")

	var callers []*caller
	for name, more := range map[string]string{"assignments": "", "collections": ", envoy: {leds: {above: 1}}"} {
		i := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources: [{name: here, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: "127.0.0.1:0"%s}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, c.API, cluster.Admin), more))
		for _, delta := range []bool{true, false} {
			p := connectEnvoy(t, i, proxy.Config{Delta: delta, Workload: fmt.Sprintf("%s-%t", name, delta)})
			callers = append(callers, keepCalling(t, p, "outbound|80||dual.shop.svc.cluster.local"))
		}
	}
	for _, c := range callers {
		c.mustBeAnsweredBy("pod")
	}
	for _, c := range callers {
		c.stop()
		if err := c.proxy.Rejected(t.Context()); err != nil {
			t.Errorf("%s has rejected something: %v", c.proxy.Name, err)
		}
	}
}

const localObjects = `
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: local}
  spec: {internalTrafficPolicy: Local, ports: [{name: http, port: 80, targetPort: 8080}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: near}
  spec: {trafficDistribution: PreferSameNode, ports: [{name: http, port: 80, targetPort: 8080}]}
`

// A Service whose traffic stays on the node is called there, and nowhere else; one that
// prefers the node is called elsewhere when nobody is left there.
func TestServicesAreCalledOnTheNode(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	c := own(t)
	client := connect(t, c)
	if err := client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, localObjects) {
		if err := client.Apply(t.Context(), services, o); err != nil {
			t.Fatal(err)
		}
	}
	listen(t, "one", "10.77.3.1:8080")
	listen(t, "two", "10.77.3.2:8080")
	apply := func(oneIsReady bool) {
		t.Helper()
		for _, service := range []string{"local", "near"} {
			slice := object(t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: shop, name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}},
ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.77.3.1], nodeName: node-1, conditions: {ready: %[2]t}}, {addresses: [10.77.3.2], nodeName: node-2}]}`, service, oneIsReady)
			if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(true)
	i := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources: [{name: here, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, c.API, cluster.Admin)))
	proxies := map[string]*proxy.Proxy{}
	for node, delta := range map[string]bool{"node-1": true, "node-2": false} {
		proxies[node] = connectEnvoy(t, i, proxy.Config{Delta: delta, Workload: node, Flags: []string{"--node-name", node}})
	}
	answers := func(node, service string, names ...string) {
		t.Helper()
		c := keepCalling(t, proxies[node], "outbound|80||"+service+".shop.svc.cluster.local")
		defer c.stop()
		c.mustBeAnsweredBy(names...)
	}
	for _, service := range []string{"local", "near"} {
		answers("node-1", service, "one")
		answers("node-2", service, "two")
	}
	apply(false)
	answers("node-1", "near", "two")
	answers("node-2", "local", "two")
	await(t, "nobody to be left on node-1", func() error {
		list, err := proxies["node-1"].Endpoints(t.Context(), "outbound|80||local.shop.svc.cluster.local")
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("there is %v", list)
		}
		return err
	})
	apply(true)
	answers("node-1", "local", "one")
	answers("node-1", "near", "one")
}
