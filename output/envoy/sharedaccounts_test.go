package envoy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// runs is a workload behind an endpoint.
type runs struct {
	namespace, account string
	sidecar            bool
}

// drawShared draws a host of the namespace a and another one of b, and the workloads by address.
func drawShared(t *rapid.T) (events []model.Event, workloads map[string]runs) {
	workloads = map[string]runs{}
	for i, namespace := range []string{"a", "b"} {
		owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: namespace}}
		events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
			Hosts: model.ListOf(namespace + ".example"), Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}), Resolution: model.ResolutionStatic,
		}}})
		for n := range rapid.IntRange(0, 3).Draw(t, "endpoints of "+namespace) {
			address, e := fmt.Sprintf("10.0.%d.%d", i, n+1), model.Endpoint{}
			e.Address = address
			e.ServiceAccount = rapid.SampledFrom([]string{"", "web", "bad", "spiffe://cluster.local/ns/b/sa/web", "spiffe://other.example/ns/a/sa/web", "web\nspiffe://cluster.local/ns/c/sa/web"}).Draw(t, "account")
			runs := runs{namespace, e.ServiceAccount, rapid.Bool().Draw(t, "sidecar")}
			if runs.sidecar {
				e.Labels = meshLabels
			}
			ref := owner
			ref.Kind, ref.Name = model.KindEndpoint, namespace+"/"+address
			events, workloads[address] = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}}), runs
		}
	}
	return events, workloads
}

// A split gives a host endpoints of another namespace. They stay under the accounts and the modes
// of their own namespace: each is called as its sidecar takes calls, its identity is accepted,
// and no identity is that no endpoint may have.
func TestSharedEndpointsKeepTheirAccountsAndModes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMTLS(rt)
		m.Ports = append(m.Ports, policy.MTLSPort{Namespace: "b", Port: 80, Mode: rapid.SampledFrom([]string{policy.DisableMTLS, policy.StrictMTLS}).Draw(rt, "port of b")})
		events, workloads := drawShared(rt)
		share := rapid.SampledFrom([]uint32{0, 1, 50}).Draw(rt, "share of b")
		order := catalog.Order{Sources: []string{"first"}, Splits: map[catalog.ServiceKey]*split.Split{{Namespace: "a", Host: "a.example"}: {Backends: []model.Backend{
			{Source: "first", Weight: 50}, {Service: model.ServiceName{Namespace: "b", Host: "b.example"}, Weight: share},
		}}}}
		builder := catalog.NewBuilderIn(order)
		builder.Apply(1, events)
		settings := policy.New()
		settings.MTLS = m
		w := worldUnder(settings.Prepare(), builder.Snapshot(), true, "istio-system", nil)
		c := world.Client{Namespace: "a", Kind: reach.KindEnvoy, Account: "spiffe://cluster.local/ns/a/sa/client"}
		at := names.Cluster("a.example", 80)
		assigned, cluster := &endpointv3.ClusterLoadAssignment{}, &clusterv3.Cluster{}
		if !readInto(t, w, EndpointType, c, at, assigned) || !readInto(t, w, ClusterType, c, at, cluster) {
			rt.Fatal("the service is missing")
		}
		want := map[string]bool{} // accepted identities, or prefixes of them with an asterisk
		of := map[string]bool{"a": false}
		if share > 0 {
			of["b"] = false
		}
		anyMutual := modeOf(m, "a", 80) != policy.DisableMTLS
		for _, group := range assigned.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				runs := workloads[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()]
				mutual := e.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue() == "istio"
				if want := runs.sidecar && modeOf(m, runs.namespace, 80) != policy.DisableMTLS; mutual != want {
					rt.Errorf("%+v: mutual %t, want %t", runs, mutual, want)
				}
				anyMutual = anyMutual || mutual
				if runs.account == "" {
					continue
				}
				identity := strings.ReplaceAll(runs.account, "\n", "\uFFFD")
				if !strings.Contains(identity, "://") {
					identity = "spiffe://cluster.local/ns/" + runs.namespace + "/sa/" + identity
				}
				want[identity], of[runs.namespace] = true, true
			}
		}
		for namespace, known := range of {
			if !known {
				want["spiffe://cluster.local/ns/"+namespace+"/*"] = true
			}
		}
		if len(cluster.GetTransportSocketMatches()) == 0 {
			if anyMutual {
				rt.Errorf("no mutual TLS in %v", cluster)
			}
			return
		}
		tls := &tlsv3.UpstreamTlsContext{}
		if err := cluster.GetTransportSocketMatches()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, n := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			text := n.GetMatcher().GetExact()
			if prefix := n.GetMatcher().GetPrefix(); prefix != "" {
				text = prefix + "*"
			}
			got = append(got, text)
		}
		for _, name := range got {
			if !want[name] {
				rt.Errorf("%q is accepted, want %v", name, want)
			}
		}
		for name := range want {
			if !slices.Contains(got, name) {
				rt.Errorf("%q is not accepted, of %q", name, got)
			}
		}
	})
}
