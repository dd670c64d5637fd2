package istio_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// away is how long an Isthmus is killed for: far longer than anything waits that could
// give up on it.
const away = time.Minute

// proxyless is a service that is called by gRPC's own xDS client of an istiod, and is
// shown by Envoys, too.
type proxyless struct {
	*feed

	port string // of the backends
}

// Set has the service have some backends as its endpoints, each an address and a version.
func (p proxyless) Set(backends ...[2]string) {
	p.api.t.Helper()
	var endpoints []string
	for _, b := range backends {
		endpoints = append(endpoints, fmt.Sprintf("{address: %s, weight: 1, ports: {grpc: %s}, labels: {version: %s}}", b[0], p.port, b[1]))
	}
	p.WriteFile("web.yaml", fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: %s}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [%s]
`, p.namespace, strings.Join(endpoints, ", ")))
}

// MustKeep is that for some time the Envoys have these endpoints of the service, whenever
// they are asked.
func (p proxyless) MustKeep(d time.Duration, want ...string) {
	p.api.t.Helper()
	end, again := time.NewTimer(d), time.NewTicker(time.Second)
	defer end.Stop()
	defer again.Stop()
	for {
		for _, envoy := range p.proxies {
			clusters, err := envoy.Clusters(p.api.t.Context())
			if got := endpointsOf(clusters, clusterOf("web")); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				p.api.t.Fatalf("%s has %v, want %v (%v)", envoy.Name, got, want, err)
			}
		}
		select {
		case <-again.C:
		case <-end.C:
			return
		}
	}
}

// TestProxylessClientsBehindIstiodLoseNothing has gRPC's own xDS client call a service
// that an istiod takes from an Isthmus, by a rule that comes from a source of MCP. No call
// fails while endpoints and rules change, and while the Isthmus is restarted, and dead
// for a minute.
func TestProxylessClientsBehindIstiodLoseNothing(t *testing.T) {
	t.Parallel()
	rules := serveRules(t)
	f := proxyless{startFeed(t, "proxyless", fmt.Sprintf("- name: rules\n  required: true\n  mcp: {address: %q, collections: [%s]}\n", rules.address, destinationRules)), freePort(t)}
	rules.Set(t, f.namespace, "")
	one, two, three := [2]string{"127.0.0.1", "one"}, [2]string{"127.0.0.2", "two"}, [2]string{"127.0.0.3", "three"}
	for _, b := range [][2]string{one, two, three} {
		startBackend(t, b[1], b[0]+":"+f.port)
	}
	shown := func(backends ...[2]string) (list []string) {
		for _, b := range backends {
			list = append(list, fmt.Sprintf("%s:%s 1", b[0], f.port))
		}
		return list
	}
	f.Set(one)
	f.Follow()
	client := dial(t, f.istiod, f.namespace, "web.example:80")
	client.Pace = 20 * time.Millisecond
	client.AwaitAnswers("one")
	traffic := client.KeepCalling()
	f.Set(one, two)
	client.AwaitAnswers("one", "two")

	rules.Set(t, f.namespace, "one")
	f.Await("outbound|80|chosen|web.example", shown(one))
	f.Apply(cluster.VirtualServices, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: %s}
spec: {hosts: [web.example], http: [{route: [{destination: {host: web.example, subset: chosen}}]}]}
`, f.namespace))
	client.AwaitAnswers("one")
	rules.Set(t, f.namespace, "two")
	client.AwaitAnswers("two")
	if err := f.client.Delete(t.Context(), cluster.VirtualServices, f.namespace, "web"); err != nil {
		t.Fatal(err)
	}
	client.AwaitAnswers("one", "two")
	rules.Set(t, f.namespace, "")
	f.Await("outbound|80|chosen|web.example", nil)

	f.Kill()
	f.Restart()
	f.awaitIstiod()
	f.Set(two, three)
	client.AwaitAnswers("two", "three")
	f.Await(clusterOf("web"), shown(two, three))

	f.Kill()
	f.Set(one, three)
	f.MustKeep(away, shown(two, three)...)
	client.AwaitAnswers("two", "three")
	f.Restart()
	client.AwaitAnswers("one", "three")
	f.Await(clusterOf("web"), shown(one, three))
	traffic.MustNotHaveFailed()

	f.Write("other", "10.0.0.1") // a source that loses everything is not believed at once
	f.Await(clusterOf("other"), []string{"10.0.0.1:80 1"})
	f.Remove("web")
	client.AwaitAnyFailure()
	f.Await(clusterOf("web"), nil)
	f.MustHaveRejectedNothing()
}
