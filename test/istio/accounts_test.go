package istio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// acceptedNames reads which names an istiod has a workload of a namespace accept of the endpoints
// of a cluster.
func acceptedNames(t *testing.T, i *cluster.Istiod, namespace, name string) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, err := grpc.NewClient(i.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusters, Node: &corev3.Node{Id: fmt.Sprintf("sidecar~10.77.0.1~client.%[1]s~%[1]s.svc.cluster.local", namespace)}})
	if err != nil {
		return nil, err
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	for _, resource := range response.GetResources() {
		var c clusterv3.Cluster
		if err := resource.UnmarshalTo(&c); err != nil {
			return nil, err
		}
		if c.GetName() != name {
			continue
		}
		var tls tlsv3.UpstreamTlsContext
		if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
			return nil, fmt.Errorf("it has no TLS: %w", err)
		}
		var names []string
		for _, n := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchSubjectAltNames() { //nolint:staticcheck // istiod's field
			names = append(names, n.GetExact())
		}
		for _, n := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			names = append(names, n.GetMatcher().GetExact())
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	return nil, errors.New("there is no such cluster")
}

// TestIstiodAcceptsTheAccountsOfEndpoints has Isthmus write a host whose endpoints have accounts of
// its own namespace, some of them written as whole identities, and a share of the endpoints of another
// namespace. An istiod has callers accept all of these identities and no other, whether the
// endpoints are inline, in several objects, or WorkloadEntry objects.
func TestIstiodAcceptsTheAccountsOfEndpoints(t *testing.T) {
	t.Parallel()
	a := connect(t, shared)
	own, other, folder := a.NewNamespace("accounts"), a.NewNamespace("partner"), t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := a.server.WriteKubeconfig(kubeconfig, own, group); err != nil {
		t.Fatal(err)
	}
	host := "reviews." + own + ".example"
	write := func(accounts, others []string) {
		t.Helper()
		entry := func(namespace, host, network string, accounts []string) string {
			var endpoints []string
			for i, account := range accounts {
				endpoints = append(endpoints, fmt.Sprintf("{address: %s.%d, serviceAccount: %q}", network, i+1, account))
			}
			return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: %s}
spec:
  hosts: [%s]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%s]
`, namespace, host, strings.Join(endpoints, ", "))
		}
		text := entry(own, host, "10.8.0", accounts) + "---\n" + entry(other, "reviews."+other+".example", "10.8.1", others)
		if err := os.WriteFile(filepath.Join(folder, "next"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, "next"), filepath.Join(folder, "reviews.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	a.Apply(cluster.DestinationRules, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: mutual, namespace: %s}
spec: {host: %s, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
`, own, host))
	identity := func(namespace, account string) string {
		return "spiffe://cluster.local/ns/" + namespace + "/sa/" + account
	}
	accept := func(form string, want ...string) {
		t.Helper()
		slices.Sort(want)
		await(t, fmt.Sprintf("%s: istiod to accept %q", form, want), func() error {
			names, err := acceptedNames(t, istiod, own, "outbound|80||"+host)
			if err == nil && !slices.Equal(names, want) {
				err = fmt.Errorf("it accepts %q", names)
			}
			return err
		})
	}
	accounts := []string{"web", "web", identity(own, "db"), "spiffe://other.example/ns/" + own + "/sa/web"}
	write(accounts, []string{"bad", "worse"})
	var isthmus *isthmus
	for _, form := range []string{"shardSize: 100", "shardSize: 1", "endpoints: workloadEntries"} {
		if isthmus != nil {
			isthmus.Kill()
		}
		isthmus = serveConfig(t, own, fmt.Sprintf(`
instance: %[1]s
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
splits:
- {host: %[2]s, namespace: %[1]s, backends: [{source: files, weight: 1}, {host: reviews.%[3]s.example, namespace: %[3]s, weight: 1}]}
sources:
- {name: files, required: true, hold: {share: 1}, file: {path: %[4]s}}
outputs:
  istio:
    kubeconfig: %[5]s
    debounce: {quiet: 50ms, max: 500ms}
    leaderElection: {enabled: false, name: %[1]s}
    %[6]s
`, own, host, other, folder, kubeconfig, form))
		all := []string{identity(own, "web"), identity(own, "db"), "spiffe://other.example/ns/" + own + "/sa/web", identity(other, "bad"), identity(other, "worse")}
		accept(form, all...)
		write(accounts[:2], []string{"worse", "worse"}) // the names of the service go
		accept(form, identity(own, "web"), identity(other, "worse"))
		write(accounts, []string{"bad", "worse"})
		accept(form, all...)
	}
}
