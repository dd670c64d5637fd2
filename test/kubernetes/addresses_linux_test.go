package kubernetes_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// Addresses of Services, in the one range that both clusters have.
const (
	firstIP, secondIP, thirdIP, fourthIP = "10.0.7.1", "10.0.7.2", "10.0.7.3", "10.0.7.4"
	beforeSidecar                        = "10.77.6.9" // from which connections are not redirected
)

const addressedService = `
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: %[1]s}
  spec: {clusterIP: %[2]s, ports: [{name: %[4]s, port: 9000, targetPort: 8080}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
  addressType: IPv4
  ports: [{name: %[4]s, port: 8080}]
  endpoints: [{addresses: [%[3]q]}]
`

// Two clusters give the same addresses to different Services. A sidecar that calls an
// address reaches the Service that has it in its own cluster, and one of no cluster reaches
// the one that has it in the first. That holds if the one takes requests and the other any
// connection. A Service that is headless in one cluster is reached at its address in another.
func TestSidecarCallsTheAddressesOfItsCluster(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	pods := map[string]string{"db": "10.77.6.1", "mail": "10.77.6.2", "eastern": "10.77.6.3", "western": "10.77.6.4", "half": "10.77.6.5"}
	for name, address := range pods {
		listen(t, name, address+":8080")
	}
	clusters := map[string]*cluster.Cluster{"east": own(t), "west": own(t)}
	for name, addresses := range map[string]map[string]string{
		"east": {"db": firstIP, "mail": secondIP, "eastern": thirdIP, "half": "None"},
		"west": {"db": secondIP, "mail": firstIP, "western": thirdIP, "half": fourthIP},
	} {
		client := connect(t, clusters[name])
		if err := client.Namespace(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		for service, address := range addresses {
			for _, o := range objects(t, addressedService, service, address, pods[service], cmp.Or(map[string]string{"western": "http"}[service], "tcp")) {
				if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	isthmus := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources:
- {name: east, kubernetes: {kubeconfig: %s, cluster: east}}
- {name: west, kubernetes: {kubeconfig: %s, cluster: west}}
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, clusters["east"].API, cluster.Admin), kubeconfig(t, clusters["west"].API, cluster.Admin)))
	for _, address := range []string{firstIP, secondIP, thirdIP, fourthIP} {
		ip := netip.MustParseAddr(address)
		if err := netns.AddAddress(ip); err != nil {
			t.Fatal(err)
		}
		if err := netns.Redirect(ip, 15001, netip.MustParseAddr(beforeSidecar)); err != nil {
			t.Fatal(err)
		}
	}
	for of, c := range map[string]struct {
		delta bool
		want  map[string]string
	}{
		"east": {true, map[string]string{firstIP: "db", secondIP: "mail", thirdIP: "eastern"}},
		"west": {false, map[string]string{firstIP: "mail", secondIP: "db", thirdIP: "western", fourthIP: "half"}},
		"":     {true, map[string]string{firstIP: "db", secondIP: "mail"}},
	} {
		p := connectEnvoy(t, isthmus, proxy.Config{Delta: c.delta, Redirected: true, Workload: "sidecar" + of, Flags: []string{"--cluster", of}})
		for address, service := range c.want {
			await(t, fmt.Sprintf("%s to be reached at %s in %q", service, address, of), func() error {
				return answeredBy(t.Context(), address+":9000", service)
			})
		}
		if err := p.Rejected(t.Context()); err != nil {
			t.Errorf("%s has rejected something: %v", p.Name, err)
		}
		p.Stop() // the next one listens at the same ports
	}
}

// answeredBy checks who answers a request to an address, over a connection of its own.
func answeredBy(ctx context.Context, address, want string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && string(body) != want {
		err = fmt.Errorf("%q answered at %s, not %s", body, address, want)
	}
	return err
}
