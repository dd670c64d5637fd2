package envoy

import (
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

const apiHost = "kubernetes.default.svc.cluster.local"

// apiServers are the Services of the API servers of some clusters, each with its address and
// its one endpoint.
func apiServers(clusters ...string) *catalog.Snapshot {
	var events []model.Event
	for i, cluster := range clusters {
		u := edgeService(apiHost, time.Duration(10-i)*time.Minute, model.ResolutionStatic, model.Port{Number: 443, Name: "https", Protocol: "HTTPS", TargetPort: 6443}).(model.Upsert)
		u.Record.Source, u.Record.Namespace = "source-"+cluster, "default"
		spec := u.Record.Spec.(model.Service)
		spec.Addresses, spec.Cluster, spec.Traffic = model.ListOf("10.96."+string(rune('1'+i))+".1"), cluster, model.Traffic{ClusterLocal: true}
		u.Record.Spec = spec
		e := on("192.0.2."+string(rune('1'+i)), "", cluster)
		ref := model.Ref{Kind: model.KindEndpoint, Key: u.Record.Key}
		ref.Name += "/" + e.Address
		events = append(events, u, model.Upsert{Record: model.Record{Ref: ref, Owner: u.Record.Ref, Spec: e}})
	}
	b := catalog.NewBuilder([]string{"source-east", "source-west"})
	b.Apply(1, events)
	return b.Snapshot()
}

// apiServersOf are the API servers that a client is given.
func apiServersOf(t *testing.T, w world.World, c world.Client) (addresses []string) {
	t.Helper()
	subject, ok := w.Find(w.View(EndpointType, c), EndpointType, names.Cluster(apiHost, 443))
	if !ok {
		t.Fatal("there is no assignment")
	}
	for _, g := range encoded(t, subject).Endpoints {
		for _, e := range g.LbEndpoints {
			addresses = append(addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return addresses
}

// Whoever chooses an API server is given those of the own cluster, and never another's.
func TestAPIServersAreThoseOfTheClientsCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clusters []string
		want     map[string][]string // by the cluster of the client
	}{
		"two":     {[]string{"east", "west"}, map[string][]string{"east": {"192.0.2.1"}, "west": {"192.0.2.2"}, "north": nil, "": nil}},
		"one":     {[]string{"east"}, map[string][]string{"east": {"192.0.2.1"}, "west": nil, "": nil}},
		"unnamed": {[]string{""}, map[string][]string{"": {"192.0.2.1"}, "east": nil}},
	} {
		w := answeringSettings().Begin(nil)(apiServers(test.clusters...), catalog.Change{}, true, "istio-system").World
		for cluster, want := range test.want {
			for _, client := range []world.Client{{Kind: reach.KindGRPC, Cluster: cluster}, {Kind: reach.KindEnvoy, Cluster: cluster}, {Kind: reach.KindEnvoy, Cluster: cluster, Node: "node-1"}} {
				if got := apiServersOf(t, w, client); !slices.Equal(got, want) {
					t.Errorf("%s, %s of %q: %v, want %v", name, client.Kind, cluster, got, want)
				}
			}
		}
	}
}

// The connections of a sidecar's workload go to the address that they were made to, which
// its own cluster leads to its API servers. That is right whether the sidecar says its
// cluster or not. Addresses of other clusters are neither listened at, nor answered.
func TestSidecarsLeaveCallsOfTheAPIServerToTheirCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clusters []string
		want     map[string]string // the address, by the cluster of the client
	}{
		"two":     {[]string{"east", "west"}, map[string]string{"east": "10.96.1.1", "west": "10.96.2.1", "north": "", "": ""}},
		"one":     {[]string{"east"}, map[string]string{"east": "10.96.1.1", "": "10.96.1.1"}},
		"unnamed": {[]string{""}, map[string]string{"": "10.96.1.1", "east": "10.96.1.1"}},
	} {
		w := answeringSettings().Begin(nil)(apiServers(test.clusters...), catalog.Change{}, true, "istio-system").World
		for cluster, address := range test.want {
			client := sidecarOf(cluster)
			subject, ok := w.Find(w.View(ClusterType, client), ClusterType, names.Cluster(apiHost, 443))
			if !ok {
				t.Fatal("there is no cluster")
			}
			if m := message(t, subject.Encode().Joined().Body).(*clusterv3.Cluster); m.GetType() != clusterv3.Cluster_ORIGINAL_DST || m.GetOriginalDstLbConfig().GetUpstreamPortOverride() != nil {
				t.Errorf("%s, of %q: the cluster is %v", name, cluster, m)
			}
			var listeners []string
			v := w.View(ListenerType, client)
			for at := range w.Names(v, ListenerType) {
				if strings.HasPrefix(at, "10.") {
					listeners = append(listeners, strings.TrimSuffix(at, "_443"))
				}
			}
			answers, _ := answersTo(t, w, client)
			var want []string
			if address != "" {
				want = []string{address}
			}
			if diff := gocmp.Diff([][]string{want, want}, [][]string{listeners, answers[apiHost]}); diff != "" {
				t.Errorf("%s, of %q: listeners and answers: -want +got:\n%s", name, cluster, diff)
			}
		}
	}
}

// An edge, and a gateway of the mesh, lead nobody to an API server, whatever the policy of
// its host. Sidecars add no TLS of the mesh to the caller's.
func TestAPIServersAreNotReachedFromOutside(t *testing.T) {
	t.Parallel()
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{{Number: 443, Protocol: policy.EdgeTLS, Hosts: []string{"*"}}, {Number: 15443, Protocol: "AUTO_PASSTHROUGH", Hosts: []string{"*"}}}
	s.Hosts = []policy.HostPolicy{{Host: "*.cluster.local", Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.IstioMutualTLS}}}}
	w := s.Begin(nil)(apiServers("east"), catalog.Change{}, true, "istio-system").World
	gateway := world.Client{Kind: reach.KindEnvoy, Cluster: "east", Proxy: world.Proxy{Role: "router"}}
	for _, r := range []world.Row{ListenerType, ClusterType} {
		v := w.View(r, gateway)
		for name := range w.Names(v, r) {
			subject, ok := w.Find(v, r, name)
			if !ok {
				t.Fatalf("there is no %s", name)
			}
			if strings.HasPrefix(name, "outbound_.") {
				t.Errorf("the gateway has %s", name)
			}
			if referrer, refers := subject.(world.Referrer); refers && r == ListenerType {
				for to := range referrer.Refers(wire.ClusterURL) {
					if strings.Contains(to, apiHost) {
						t.Errorf("%s leads to %s", name, to)
					}
				}
			}
		}
	}
	for _, client := range []world.Client{gateway, sidecarOf("east"), {Kind: reach.KindEnvoy, Cluster: "east"}} {
		subject, ok := w.Find(w.View(ClusterType, client), ClusterType, names.Cluster(apiHost, 443))
		if !ok {
			t.Fatal("there is no cluster")
		}
		if m := message(t, subject.Encode().Joined().Body).(*clusterv3.Cluster); m.GetTransportSocket() != nil {
			t.Errorf("%+v: TLS is added: %v", client, m.GetTransportSocket())
		}
	}
}
