package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"istio.io/istio/pilot/pkg/networking/core"
)

// configuration is what a sidecar holds.
type configuration struct {
	listeners []*listenerv3.Listener
	clusters  []*clusterv3.Cluster
	routes    []*routev3.RouteConfiguration
}

// configurationFrom asks an Isthmus for it as the Envoy of a workload does.
func configurationFrom(t testing.TB, address string, w workload) (c configuration) {
	t.Helper()
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(channel).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := sidecar{t, stream, w.node()}
	c.clusters = ask[clusterv3.Cluster](s)
	c.listeners = ask[listenerv3.Listener](s)
	if names := core.ExtractRoutesFromListeners(c.listeners); len(names) > 0 {
		c.routes = ask[routev3.RouteConfiguration](s, names...)
	}
	withoutHeaders(c.routes)
	return c
}

// withoutHeaders removes routes that need a header. The model does not look at headers, and no
// call here has any: only listeners write them, for requests to blocks of addresses.
func withoutHeaders(all []*routev3.RouteConfiguration) {
	for _, routes := range all {
		for _, host := range routes.GetVirtualHosts() {
			host.Routes = slices.DeleteFunc(host.GetRoutes(), func(r *routev3.Route) bool { return len(r.GetMatch().GetHeaders()) > 0 })
		}
	}
}

// sidecar is a stream of all types, state of the world.
type sidecar struct {
	t      testing.TB
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	node   *corev3.Node
}

// ask subscribes to resources of a type, all of them if there are no names, and
// accepts the answer.
func ask[R any, P interface {
	*R
	proto.Message
}](s sidecar, names ...string,
) (list []P) {
	s.t.Helper()
	empty, err := anypb.New(P(new(R)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(&discoveryv3.DiscoveryRequest{Node: s.node, TypeUrl: empty.GetTypeUrl(), ResourceNames: names})
	r, err := s.stream.Recv()
	if err != nil {
		s.t.Fatalf("%s: %v", empty.GetTypeUrl(), err)
	}
	if r.GetTypeUrl() != empty.GetTypeUrl() {
		s.t.Fatalf("asked for %s, and was sent %s", empty.GetTypeUrl(), r.GetTypeUrl())
	}
	for _, resource := range r.GetResources() {
		m := P(new(R))
		if err := resource.UnmarshalTo(m); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, m)
	}
	s.send(&discoveryv3.DiscoveryRequest{
		TypeUrl: r.GetTypeUrl(), ResourceNames: names, ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(),
	})
	return list
}

func (s sidecar) send(r *discoveryv3.DiscoveryRequest) {
	s.t.Helper()
	if err := s.stream.Send(r); err != nil {
		s.t.Fatal(err)
	}
}

// workload is what a sidecar stands beside.
type workload struct {
	namespace string
	addresses []string
}

// node is how it names itself to Isthmus.
func (w workload) node() *corev3.Node {
	return &corev3.Node{
		Id:            "sidecar~" + w.addresses[0] + "~app." + w.namespace + "~" + w.namespace + ".svc.cluster.local",
		UserAgentName: "envoy",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"NAMESPACE":    structpb.NewStringValue(w.namespace),
			"INSTANCE_IPS": structpb.NewStringValue(strings.Join(w.addresses, ",")),
		}},
	}
}
